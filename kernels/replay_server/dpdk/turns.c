// Lock between users of a port and DPDK's interrupt thread.

#include <rte_interrupts.h>
#include <rte_rwlock.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

enum { REST_NS = 1000000 };

static rte_rwlock_t turns = RTE_RWLOCK_INITIALIZER;
static int guarded;

// Runs in the interrupt thread, whenever it has looked at all else: what it does between two of
// these calls, it does with the lock held, and nobody else does anything meanwhile.
static void rest(void *locked) {
  const struct timespec pause = {0, REST_NS};
  int *const is_locked = locked;
  if (*is_locked) rte_rwlock_write_unlock(&turns);
  nanosleep(&pause, NULL);
  rte_rwlock_write_lock(&turns);
  *is_locked = 1;
}

int arl_guard_turns(void) {
  static int locked;
  if (guarded) return 0;
  // Nobody reads it, so there is always something: the thread never waits with the lock held.
  const int file = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  struct rte_intr_handle *handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  if (file >= 0 && handle && rte_intr_fd_set(handle, file) == 0 &&
      rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) == 0 &&
      rte_intr_callback_register(handle, rest, &locked) == 0) {
    guarded = 1;
    return 0;
  }
  if (file >= 0) close(file);
  rte_intr_instance_free(handle);
  return -1;
}

void arl_begin_turn(void) {
  while (!arl_try_turn()) sched_yield();  // it may be the one thread that wants this core
}

int arl_try_turn(void) { return rte_rwlock_read_trylock(&turns) == 0; }

void arl_end_turn(void) { rte_rwlock_read_unlock(&turns); }
