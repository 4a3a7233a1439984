// Work shared by the calling thread and XLA's thread pool.

#ifndef ACCEL_RL_FFI_POOL_H
#define ACCEL_RL_FFI_POOL_H

#include <stdint.h>

// Where tasks go: XLA's pool, or a stand-in. `schedule` returns 0, or -1 where it cannot.
typedef struct {
  void *context;
  int64_t (*num_threads)(void *context);
  int (*schedule)(void *context, void (*task)(void *data), void *data);
} arl_pool;

// Call `work(argument, first, last)` until all of 0 ... items - 1 are done, in parts of `grain`
// items. Returns 0, or the first nonzero value of `work`.
int arl_share(const arl_pool *pool, int64_t items, int64_t grain,
              int (*work)(void *argument, int64_t first, int64_t last), void *argument);

#endif
