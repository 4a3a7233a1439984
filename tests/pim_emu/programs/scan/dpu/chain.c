#include <handshake.h>

#include "chain.h"

static T message[NR_TASKLETS];

T handshake_chain(unsigned int tasklet_id, T value) {
    T before = 0;
    if (tasklet_id != 0) {
        handshake_wait_for(tasklet_id - 1);
        before = message[tasklet_id];
    }
    if (tasklet_id + 1 < NR_TASKLETS) {
        message[tasklet_id + 1] = before + value;
        handshake_notify();
    }
    return before;
}
