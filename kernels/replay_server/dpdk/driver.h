// What the parts of the driver share.

#ifndef ACCEL_RL_DPDK_DRIVER_H
#define ACCEL_RL_DPDK_DRIVER_H

#include "dpdk.h"

// Print the reason why something failed; returns -1.
int arl_fail(char *why, size_t why_bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Held while ports come and go, which DPDK cannot do twice at once. Before a turn, not in one.
void arl_lock(void);
void arl_unlock(void);
// Whether this process is a child of the one that started DPDK, whose threads it does not have: it
// must not wait for them. Says so in `why`, which may be null.
int arl_was_forked(char *why, size_t why_bytes);

// DPDK's own thread connects and disconnects memif ports: it unmaps their rings without asking
// whether somebody reads them. A turn keeps it away. Turns are short and do not nest.
void arl_begin_turn(void);
int arl_try_turn(void);  // 0: not now
void arl_end_turn(void);
// From the first memif port on. In a turn, or before anybody has one.
int arl_guard_turns(void);

// Name of an attached device by its port number, or null.
const char *arl_attached(uint16_t number);
void arl_detach(uint16_t number);  // locked, in a turn

int arl_start(const char *const *arguments, size_t count, char *why, size_t why_bytes);
int arl_is_running(void);
int arl_attach(const char *device, const char *arguments, uint16_t *number, char *why,
               size_t why_bytes);
size_t arl_list(uint16_t *numbers, size_t most);
int arl_is_open(uint16_t number);
accel_rl_dpdk_port *arl_open(uint16_t number, int promiscuous, uint16_t mtu, char *why,
                             size_t why_bytes);
void arl_close(accel_rl_dpdk_port *port);
void arl_mac(const accel_rl_dpdk_port *port, uint8_t *mac);
uint16_t arl_mtu(const accel_rl_dpdk_port *port);
int arl_link(accel_rl_dpdk_port *port);
size_t arl_receive(accel_rl_dpdk_port *port, accel_rl_dpdk_part *packets);
int arl_send(accel_rl_dpdk_port *port, const accel_rl_dpdk_part *parts, size_t count);
void arl_flush(accel_rl_dpdk_port *port);

#endif
