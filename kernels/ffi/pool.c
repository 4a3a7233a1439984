#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

// The pool may be busy with callers that wait as this one does, so a task may start late or after
// everything is done. The caller therefore takes parts itself, waits for parts, never for tasks,
// and leaves what late tasks look at to the last of them.
typedef struct {
  atomic_int_fast64_t next;  // first item that nobody has taken
  atomic_int_fast64_t users;
  int64_t items, grain;
  int (*work)(void *argument, int64_t first, int64_t last);
  void *argument;
  pthread_mutex_t lock;
  pthread_cond_t all_done;
  int64_t done;  // items, under the lock
  int status;    // under the lock
} shared_t;

static void take_parts(shared_t *shared) {
  for (;;) {
    int64_t first = atomic_fetch_add(&shared->next, shared->grain);
    if (first >= shared->items) return;
    int64_t last = first + shared->grain < shared->items ? first + shared->grain : shared->items;
    int status = shared->work(shared->argument, first, last);
    pthread_mutex_lock(&shared->lock);
    if (status && !shared->status) shared->status = status;
    shared->done += last - first;
    if (shared->done == shared->items) pthread_cond_signal(&shared->all_done);
    pthread_mutex_unlock(&shared->lock);
  }
}

// Sequentially consistent, so that the last to leave sees what all others did before it frees.
static void leave(shared_t *shared) {
  if (atomic_fetch_sub(&shared->users, 1) > 1) return;
  pthread_cond_destroy(&shared->all_done);
  pthread_mutex_destroy(&shared->lock);
  free(shared);
}

static void help(void *data) {
  take_parts(data);
  leave(data);
}

static shared_t *share(int64_t items, int64_t grain,
                       int (*work)(void *argument, int64_t first, int64_t last), void *argument) {
  shared_t *shared = calloc(1, sizeof *shared);
  if (!shared) return NULL;
  atomic_init(&shared->next, 0);
  atomic_init(&shared->users, 1);
  pthread_mutex_init(&shared->lock, NULL);
  pthread_cond_init(&shared->all_done, NULL);
  shared->items = items;
  shared->grain = grain;
  shared->work = work;
  shared->argument = argument;
  return shared;
}

int arl_share(const arl_pool *pool, int64_t items, int64_t grain,
              int (*work)(void *argument, int64_t first, int64_t last), void *argument) {
  int64_t helpers = (items + grain - 1) / grain - 1, threads = pool->num_threads(pool->context);
  if (helpers > threads) helpers = threads;
  shared_t *shared = helpers > 0 ? share(items, grain, work, argument) : NULL;
  if (!shared) return items > 0 ? work(argument, 0, items) : 0;
  for (int64_t k = 0; k < helpers; ++k) {
    // Counted before it is scheduled: a task may run and leave before schedule() returns.
    atomic_fetch_add(&shared->users, 1);
    if (pool->schedule(pool->context, help, shared)) {
      atomic_fetch_sub(&shared->users, 1);
      break;
    }
  }
  take_parts(shared);
  pthread_mutex_lock(&shared->lock);
  while (shared->done < items) pthread_cond_wait(&shared->all_done, &shared->lock);
  int status = shared->status;
  pthread_mutex_unlock(&shared->lock);
  leave(shared);
  return status;
}
