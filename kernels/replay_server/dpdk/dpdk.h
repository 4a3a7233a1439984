// What libaccel_rl_dpdk.so offers: ports driven by DPDK, behind a C interface that needs nothing of
// DPDK's. The library is loaded at run time, so that whoever uses it runs without DPDK, too.
//
// Functions return 0, or -1 with the reason in `why` [why_bytes]. Different ports may be used by
// different threads at once, a port by one at a time.

#ifndef ACCEL_RL_DPDK_H
#define ACCEL_RL_DPDK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ACCEL_RL_DPDK_INTERFACE = 2, ACCEL_RL_DPDK_BURST = 32, ACCEL_RL_DPDK_USUAL_MTU = 1500 };

typedef struct accel_rl_dpdk_port accel_rl_dpdk_port;

// A packet from its Ethernet header on, or a part of one.
typedef struct {
  const uint8_t *bytes;
  size_t count;
} accel_rl_dpdk_part;

typedef struct {
  // DPDK's version, as "DPDK 22.11.11", and the folder of its drivers ("" if none is known).
  const char *version, *drivers;

  // Start DPDK's environment, once per process, with its arguments as they stand in a command line
  // behind the program's name; without --vdev. It runs in threads of its own: the caller's affinity
  // stays as it is. Once it runs, only the same arguments or none will do.
  int (*start)(const char *const *arguments, size_t count, char *why, size_t why_bytes);
  int (*is_running)(void);
  // Make a virtual device, as "net_memif0" with its own arguments; it goes when its port closes.
  int (*attach)(const char *device, const char *arguments, uint16_t *number, char *why,
                size_t why_bytes);
  // Numbers [most] of the ports that are there and neither attached nor open: real devices.
  size_t (*list)(uint16_t *numbers, size_t most);
  // `promiscuous`: take what is for others, too. `mtu`: most bytes of what follows the Ethernet
  // header. On failure an attached device goes.
  accel_rl_dpdk_port *(*open)(uint16_t number, int promiscuous, uint16_t mtu, char *why,
                              size_t why_bytes);
  void (*close)(accel_rl_dpdk_port *port);

  void (*mac)(const accel_rl_dpdk_port *port, uint8_t *mac);  // [6]
  uint16_t (*mtu)(const accel_rl_dpdk_port *port);            // of what follows the Ethernet header
  // Whether there is a peer. Of a memif client that has none, it also tries to connect.
  int (*link)(accel_rl_dpdk_port *port);
  // Up to ACCEL_RL_DPDK_BURST packets that came, good until the next call.
  size_t (*receive)(accel_rl_dpdk_port *port, accel_rl_dpdk_part *packets);
  // Take a packet to be sent by flush(); 0 if there was no room.
  int (*send)(accel_rl_dpdk_port *port, const accel_rl_dpdk_part *parts, size_t count);
  void (*flush)(accel_rl_dpdk_port *port);
} accel_rl_dpdk_driver;

// Room for a packet in one buffer, with its headers and what af_packet puts before them in a frame
// of its rings. Some 300 bytes more must fit a page of memory, for af_xdp at its largest MTU.
static inline uint16_t accel_rl_dpdk_room(uint16_t mtu) {
  return (uint16_t)((mtu + 128u + 63u) / 64u * 64u);
}

// Null if the library has another interface than the one that was asked for.
const accel_rl_dpdk_driver *accel_rl_dpdk(uint32_t interface);

#ifdef __cplusplus
}
#endif

#endif
