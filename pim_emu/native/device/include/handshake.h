/* One tasklet notifies, another waits for it: whoever comes first waits for the other. */
#ifndef DPU_HANDSHAKE_H
#define DPU_HANDSHAKE_H

#include <sysdef.h>

void handshake_notify(void);
int handshake_wait_for(sysname_t notifier); /* returns 0 */

#endif
