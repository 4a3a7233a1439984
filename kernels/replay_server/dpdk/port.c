// One port: a queue for each direction.

#include <net/if.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "driver.h"

enum {
  BURST = ACCEL_RL_DPDK_BURST,
  DESCRIPTORS = 1024,
  BUFFERS = 4095,  // full queues of both directions, and what is held meanwhile
  USUAL_MTU = ACCEL_RL_DPDK_USUAL_MTU,
  LEAST_PACKET = 60,
  TRIES = 8,  // to send, while the peer takes nothing: what is lost is asked for again
};

struct accel_rl_dpdk_port {
  uint16_t number, mtu;
  struct rte_mempool *pool;
  struct rte_mbuf *received[BURST], *sent[BURST];
  uint16_t received_count, sent_count;
};

static _Atomic(accel_rl_dpdk_port *) ports[RTE_MAX_ETHPORTS];

int arl_is_open(uint16_t number) { return ports[number] != NULL; }

static int is_af_packet(const struct rte_eth_dev_info *info) {
  return strcmp(info->driver_name, "net_af_packet") == 0;
}

static uint32_t kernel_mtu(unsigned device) {
  struct ifreq request;
  memset(&request, 0, sizeof request);
  const int any_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (any_socket < 0) return 0;
  const int known = if_indextoname(device, request.ifr_name) != NULL &&
                    ioctl(any_socket, SIOCGIFMTU, &request) == 0;
  close(any_socket);
  return known ? (uint32_t)request.ifr_mtu : 0;
}

static uint32_t most_mtu(const struct rte_eth_dev_info *info) {
  // DPDK 22.11 knows no other MTU of it than 1,500, although it carries what the kernel's device
  // does.
  if (is_af_packet(info)) return kernel_mtu(info->if_index);
  const uint32_t most = info->max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN;
  return info->max_mtu < most ? info->max_mtu : most;
}

static int set_up(accel_rl_dpdk_port *port, int promiscuous, int sets_mtu) {
  const uint16_t number = port->number;
  struct rte_eth_conf configuration;
  uint16_t receives = DESCRIPTORS, sends = DESCRIPTORS;
  memset(&configuration, 0, sizeof configuration);
  const int node = rte_eth_dev_socket_id(number);
  int result = rte_eth_dev_configure(number, 1, 1, &configuration);
  if (result == 0 && sets_mtu) result = rte_eth_dev_set_mtu(number, port->mtu);
  if (result == 0) result = rte_eth_dev_adjust_nb_rx_tx_desc(number, &receives, &sends);
  if (result == 0)
    result = rte_eth_rx_queue_setup(number, 0, receives, (unsigned)node, NULL, port->pool);
  if (result == 0) result = rte_eth_tx_queue_setup(number, 0, sends, (unsigned)node, NULL);
  if (result == 0) result = rte_eth_dev_start(number);
  if (result == 0 && promiscuous) {
    result = rte_eth_promiscuous_enable(number);
    if (result == -ENOTSUP) result = 0;  // of two peers: there is nobody else
  }
  // Neighbour solicitations of IPv6 come to multicast groups.
  if (result == 0) result = rte_eth_allmulticast_enable(number);
  if (result == -ENOTSUP) result = 0;
  uint16_t mtu;
  if (result == 0) result = rte_eth_dev_get_mtu(number, &mtu);
  if (result == 0 && port->mtu <= USUAL_MTU && mtu < port->mtu) port->mtu = mtu;
  return result;
}

static void discard(accel_rl_dpdk_port *port) {  // locked, in a turn
  const uint16_t number = port->number;
  rte_pktmbuf_free_bulk(port->received, port->received_count);
  rte_pktmbuf_free_bulk(port->sent, port->sent_count);
  rte_eth_dev_stop(number);
  ports[number] = NULL;  // before its number may be another's
  if (arl_attached(number)) arl_detach(number);
  rte_mempool_free(port->pool);
  free(port);
}

static accel_rl_dpdk_port *open_locked(uint16_t number, int promiscuous, uint16_t mtu, char *why,
                                       size_t why_bytes) {
  accel_rl_dpdk_port *port = calloc(1, sizeof *port);
  if (!port) {
    if (arl_attached(number)) arl_detach(number);
    arl_fail(why, why_bytes, "no memory for a port");
    return NULL;
  }
  char name[RTE_MEMPOOL_NAMESIZE];
  snprintf(name, sizeof name, "accel_rl_%u", number);
  port->number = number;
  port->mtu = mtu;
  ports[number] = port;
  const int is_jumbo = mtu > USUAL_MTU;
  struct rte_eth_dev_info info;
  if (rte_eth_dev_info_get(number, &info) != 0 || (is_jumbo && mtu > most_mtu(&info))) {
    arl_fail(why, why_bytes, "dpdk_mtu must be at most %u, which DPDK's port %u takes, got %u",
             most_mtu(&info), number, mtu);
    discard(port);
    return NULL;
  }
  // A stack, so that the few buffers that are in use stay in the caches.
  const uint16_t room = is_jumbo ? (uint16_t)(RTE_PKTMBUF_HEADROOM + accel_rl_dpdk_room(mtu))
                                 : RTE_MBUF_DEFAULT_BUF_SIZE;
  port->pool = rte_pktmbuf_pool_create_by_ops(name, BUFFERS, 0, 0, room, SOCKET_ID_ANY, "stack");
  const int error =
      port->pool ? set_up(port, promiscuous, is_jumbo && !is_af_packet(&info)) : -rte_errno;
  if (error != 0) {
    arl_fail(why, why_bytes, "DPDK's port %u cannot be opened: %s", number, rte_strerror(-error));
    discard(port);
    port = NULL;
  }
  return port;
}

accel_rl_dpdk_port *arl_open(uint16_t number, int promiscuous, uint16_t mtu, char *why,
                             size_t why_bytes) {
  if (arl_was_forked(why, why_bytes)) return NULL;
  arl_lock();
  arl_begin_turn();
  accel_rl_dpdk_port *port = open_locked(number, promiscuous, mtu, why, why_bytes);
  arl_end_turn();
  arl_unlock();
  return port;
}

void arl_close(accel_rl_dpdk_port *port) {
  if (arl_was_forked(NULL, 0)) return;
  arl_lock();
  arl_begin_turn();
  discard(port);
  arl_end_turn();
  arl_unlock();
}

void arl_mac(const accel_rl_dpdk_port *port, uint8_t *mac) {
  struct rte_ether_addr address;
  memset(&address, 0, sizeof address);
  rte_eth_macaddr_get(port->number, &address);
  memcpy(mac, address.addr_bytes, sizeof address.addr_bytes);
}

uint16_t arl_mtu(const accel_rl_dpdk_port *port) { return port->mtu; }

static int is_up(uint16_t number) {  // in a turn
  struct rte_eth_link link;
  memset(&link, 0, sizeof link);
  return rte_eth_link_get_nowait(number, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

int arl_link(accel_rl_dpdk_port *port) {
  if (arl_was_forked(NULL, 0)) return 0;
  arl_begin_turn();
  const int result = is_up(port->number);
  arl_end_turn();
  return result;
}

size_t arl_receive(accel_rl_dpdk_port *port, accel_rl_dpdk_part *packets) {
  if (arl_was_forked(NULL, 0)) return 0;
  rte_pktmbuf_free_bulk(port->received, port->received_count);
  port->received_count = 0;
  if (!arl_try_turn()) return 0;
  const uint16_t count = rte_eth_rx_burst(port->number, 0, port->received, BURST);
  arl_end_turn();
  port->received_count = count;
  size_t whole = 0;
  for (uint16_t k = 0; k < count; ++k) {
    const struct rte_mbuf *each = port->received[k];
    if (each->nb_segs != 1) continue;  // above the MTU
    packets[whole].bytes = rte_pktmbuf_mtod(each, const uint8_t *);
    packets[whole++].count = rte_pktmbuf_data_len(each);
  }
  return whole;
}

void arl_flush(accel_rl_dpdk_port *port) {
  if (arl_was_forked(NULL, 0)) return;
  uint16_t done = 0;
  for (int tries = 0; done < port->sent_count && tries < TRIES;) {
    arl_begin_turn();
    const uint16_t now =
        rte_eth_tx_burst(port->number, 0, port->sent + done, (uint16_t)(port->sent_count - done));
    const int there = now > 0 || is_up(port->number);
    arl_end_turn();
    done = (uint16_t)(done + now);
    if (!there) break;
    if (now > 0) continue;
    ++tries;
    sched_yield();  // the peer may need this core to take them
  }
  rte_pktmbuf_free_bulk(port->sent + done, (unsigned)(port->sent_count - done));
  port->sent_count = 0;
}

int arl_send(accel_rl_dpdk_port *port, const accel_rl_dpdk_part *parts, size_t count) {
  if (arl_was_forked(NULL, 0)) return 0;
  size_t bytes = 0;
  for (size_t k = 0; k < count; ++k) bytes += parts[k].count;
  if (bytes > port->mtu + (size_t)RTE_ETHER_HDR_LEN) return 0;
  if (port->sent_count == BURST) arl_flush(port);
  struct rte_mbuf *packet = rte_pktmbuf_alloc(port->pool);
  if (!packet) return 0;
  char *to = rte_pktmbuf_append(packet, (uint16_t)(bytes < LEAST_PACKET ? LEAST_PACKET : bytes));
  for (size_t k = 0; k < count; ++k) {
    memcpy(to, parts[k].bytes, parts[k].count);
    to += parts[k].count;
  }
  if (bytes < LEAST_PACKET) memset(to, 0, LEAST_PACKET - bytes);
  port->sent[port->sent_count++] = packet;
  return 1;
}
