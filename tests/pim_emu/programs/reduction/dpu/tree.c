/* Reduction over a binomial tree of handshakes, for any number of tasklets. */
#include <handshake.h>

#include "tree.h"

static T message[NR_TASKLETS];

T tree_reduce(unsigned int tasklet_id, T value) {
    message[tasklet_id] = value;
#pragma unroll
    for (unsigned int offset = 1; offset < NR_TASKLETS; offset <<= 1) {
        if ((tasklet_id & (2 * offset - 1)) == 0) {
            if (tasklet_id + offset < NR_TASKLETS) {
                handshake_wait_for(tasklet_id + offset);
                message[tasklet_id] += message[tasklet_id + offset];
            }
        } else if ((tasklet_id & (offset - 1)) == 0) {
            handshake_notify();
        }
    }
    return message[tasklet_id];
}
