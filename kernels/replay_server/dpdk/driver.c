// DPDK's environment and its devices.

#define _GNU_SOURCE  // of sched.h

#include <pthread.h>
#include <rte_config.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_version.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

#define EXPORT __attribute__((visibility("default")))

enum { MOST_ARGUMENTS = 64, MOST_BYTES = 4096, MOST_CPUS_BYTES = 8192 };

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static int started;
static volatile int forked;
static char given[MOST_BYTES];  // arguments that it was started with
static char attached[RTE_MAX_ETHPORTS][RTE_DEV_NAME_MAX_LEN];

int arl_fail(char *why, size_t why_bytes, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(why, why_bytes, format, values);
  va_end(values);
  return -1;
}

void arl_lock(void) { pthread_mutex_lock(&starting); }

void arl_unlock(void) { pthread_mutex_unlock(&starting); }

static void remember_fork(void) { forked = 1; }

int arl_was_forked(char *why, size_t why_bytes) {
  if (forked && why)
    arl_fail(why, why_bytes, "DPDK was started before fork(): start processes by spawn");
  return forked;
}

struct start {
  int count, result, error, unshared;
  char *arguments[MOST_ARGUMENTS + 16];
};

static void *initialise(void *from) {
  struct start *start = from;
  start->result = rte_eal_init(start->count, start->arguments);
  start->error = rte_errno;
  return NULL;
}

// "0@(0,1,2)": one lcore, free to run wherever the process may. DPDK's own choice would be an idle
// thread for each core, and one core for all that this library does.
static void describe_cores(char *out, size_t bytes) {
  cpu_set_t mine;
  size_t at = (size_t)snprintf(out, bytes, "--lcores=0@(");
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  const char *comma = "";
  for (int cpu = 0; cpu < CPU_SETSIZE && at + 16 < bytes; ++cpu) {
    if (!CPU_ISSET(cpu, &mine)) continue;
    at += (size_t)snprintf(out + at, bytes - at, "%s%d", comma, cpu);
    comma = ",";
  }
  snprintf(out + at, bytes - at, ")");
}

static int begins(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

// What its user did not choose. Nobody shares what it maps, so none of it outlives the process.
static const struct {
  const char *unless[4], *argument;
} usual[] = {
    {{"--file-prefix", "--no-shconf"}, "--no-shconf"},
    {{"--file-prefix", "--no-huge", "--in-memory", "--huge-unlink"}, "--huge-unlink"},
    // That nobody is at a socket, callers say. Of what fits a name, DPDK takes the first.
    {{"--log-level"}, "--log-level=pmd.net.memif:critical"},
    {{"--log-level"}, "--log-level=*:error"},
    {{"--no-telemetry", "--telemetry"}, "--no-telemetry"},
};
enum { USUAL = sizeof usual / sizeof *usual };

static int any_begins(const char *const *arguments, size_t count, const char *const *with,
                      size_t most) {
  for (size_t k = 0; k < count; ++k)
    for (size_t each = 0; each < most && with[each]; ++each)
      if (begins(arguments[k], with[each])) return 1;
  return 0;
}

static int start_once(const char *const *arguments, size_t count, char *why, size_t why_bytes) {
  static char cores[MOST_CPUS_BYTES], copy[MOST_BYTES], prefix[64];
  static struct start start;
  static const char *const choices_of_cores[] = {"-l", "-c", "--lcores"};
  static const char *const choices_of_prefix[] = {"--file-prefix"};
  size_t at = 0;
  start.count = 0;
  start.arguments[start.count++] = (char *)"accel_rl";
  for (size_t k = 0; k < count; ++k) {  // DPDK may change them
    start.arguments[start.count++] = memcpy(copy + at, arguments[k], strlen(arguments[k]) + 1);
    at += strlen(arguments[k]) + 1;
  }
  describe_cores(cores, sizeof cores);
  if (!any_begins(arguments, count, choices_of_cores, 3)) start.arguments[start.count++] = cores;
  snprintf(prefix, sizeof prefix, "--file-prefix=accel_rl_%d", (int)getpid());
  start.unshared = !any_begins(arguments, count, choices_of_prefix, 1);
  if (start.unshared) start.arguments[start.count++] = prefix;
  for (size_t k = 0; k < USUAL; ++k)
    if (!any_begins(arguments, count, usual[k].unless, 4))
      start.arguments[start.count++] = (char *)usual[k].argument;
  start.arguments[start.count] = NULL;
  pthread_t thread;
  static int watched;
  if (!watched && pthread_atfork(NULL, NULL, remember_fork) != 0)
    return arl_fail(why, why_bytes, "no memory for DPDK's environment");
  watched = 1;
  // rte_eal_init() binds the thread that calls it to its main lcore's cores.
  if (pthread_create(&thread, NULL, initialise, &start) != 0)
    return arl_fail(why, why_bytes, "no thread for DPDK's environment");
  pthread_join(thread, NULL);
  if (start.result < 0)
    return arl_fail(why, why_bytes, "DPDK's environment does not start: %s; it printed more",
                    rte_strerror(start.error));
  if (start.unshared) rmdir(rte_eal_get_runtime_dir());  // DPDK makes it, and puts nothing there
  return 0;
}

int arl_start(const char *const *arguments, size_t count, char *why, size_t why_bytes) {
  char joined[MOST_BYTES];
  size_t at = 0;
  if (arl_was_forked(why, why_bytes)) return -1;
  if (count > MOST_ARGUMENTS)
    return arl_fail(why, why_bytes, "DPDK takes at most %d arguments here, got %zu", MOST_ARGUMENTS,
                    count);
  joined[0] = 0;
  for (size_t k = 0; k < count; ++k) {
    const size_t bytes = strlen(arguments[k]);
    if (at + bytes + 2 > sizeof joined)
      return arl_fail(why, why_bytes, "DPDK's arguments must have less than %d bytes together",
                      MOST_BYTES);
    at += (size_t)snprintf(joined + at, sizeof joined - at, "%s ", arguments[k]);
  }
  arl_lock();
  int result = 0;
  if (!started) {
    result = start_once(arguments, count, why, why_bytes);
    started = result == 0;
    if (started) memcpy(given, joined, sizeof given);
  } else if (count > 0 && strcmp(joined, given) != 0) {
    result = arl_fail(why, why_bytes,
                      "DPDK runs in this process already, once and for all with: %s", given);
  }
  arl_unlock();
  return result;
}

int arl_is_running(void) {
  if (arl_was_forked(NULL, 0)) return 1;  // who uses it is told
  arl_lock();
  const int running = started;
  arl_unlock();
  return running;
}

int arl_attach(const char *device, const char *arguments, uint16_t *number, char *why,
               size_t why_bytes) {
  if (arl_was_forked(why, why_bytes)) return -1;
  if (strlen(device) >= RTE_DEV_NAME_MAX_LEN)
    return arl_fail(why, why_bytes, "a device's name has at most %d bytes",
                    RTE_DEV_NAME_MAX_LEN - 1);
  arl_lock();
  arl_begin_turn();
  int result = rte_eal_hotplug_add("vdev", device, arguments);
  if (result != 0) {
    arl_fail(why, why_bytes, "DPDK cannot make %s with \"%s\": %s", device, arguments,
             rte_strerror(-result));
  } else if (rte_eth_dev_get_port_by_name(device, number) != 0) {
    rte_eal_hotplug_remove("vdev", device);
    result = arl_fail(why, why_bytes, "%s is no port of a network", device);
  } else {
    snprintf(attached[*number], RTE_DEV_NAME_MAX_LEN, "%s", device);
    if (begins(device, "net_memif") && arl_guard_turns() != 0) {
      arl_detach(*number);
      result = arl_fail(why, why_bytes, "DPDK's interrupt thread takes no callback for %s", device);
    }
  }
  arl_end_turn();
  arl_unlock();
  return result == 0 ? 0 : -1;
}

const char *arl_attached(uint16_t number) {
  return number < RTE_MAX_ETHPORTS && attached[number][0] ? attached[number] : NULL;
}

void arl_detach(uint16_t number) {
  rte_eal_hotplug_remove("vdev", attached[number]);
  attached[number][0] = 0;
}

size_t arl_list(uint16_t *numbers, size_t most) {
  size_t count = 0;
  uint16_t each;
  if (arl_was_forked(NULL, 0)) return 0;
  arl_lock();
  RTE_ETH_FOREACH_DEV(each) {
    if (!arl_attached(each) && !arl_is_open(each) && count < most) numbers[count++] = each;
  }
  arl_unlock();
  return count;
}

EXPORT const accel_rl_dpdk_driver *accel_rl_dpdk(uint32_t interface) {
  static accel_rl_dpdk_driver driver = {
      .drivers = RTE_EAL_PMD_PATH,
      .start = arl_start,
      .is_running = arl_is_running,
      .attach = arl_attach,
      .list = arl_list,
      .open = arl_open,
      .close = arl_close,
      .mac = arl_mac,
      .mtu = arl_mtu,
      .link = arl_link,
      .receive = arl_receive,
      .send = arl_send,
      .flush = arl_flush,
  };
  driver.version = rte_version();
  return interface == ACCEL_RL_DPDK_INTERFACE ? &driver : NULL;
}
