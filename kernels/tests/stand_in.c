#include "stand_in.h"

#include <stdlib.h>
#include <string.h>

// Run one waiting task. The lock is held, but not while the task runs.
static void run_next(stand_in_t *pool) {
  const int64_t at = pool->first++ % MOST_TASKS;
  void (*run)(void *data) = pool->tasks[at].run;
  void *data = pool->tasks[at].data;
  pthread_mutex_unlock(&pool->lock);
  run(data);
  pthread_mutex_lock(&pool->lock);
}

static void *serve(void *argument) {
  stand_in_t *pool = argument;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    if (pool->first < pool->last)
      run_next(pool);
    else if (pool->stopping)
      break;
    else
      pthread_cond_wait(&pool->changed, &pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

static int64_t num_threads(void *context) { return ((stand_in_t *)context)->num_threads; }

static int schedule(void *context, void (*task)(void *data), void *data) {
  stand_in_t *pool = context;
  pthread_mutex_lock(&pool->lock);
  const bool refused = pool->accepts >= 0 && pool->scheduled >= pool->accepts;
  if (!refused) {
    ++pool->scheduled;
    const int64_t at = pool->last++ % MOST_TASKS;
    if (pool->last - pool->first > MOST_TASKS) abort();
    pool->tasks[at].run = task;
    pool->tasks[at].data = data;
    if (pool->conduct == AT_ONCE) run_next(pool);
    pthread_cond_broadcast(&pool->changed);
  }
  pthread_mutex_unlock(&pool->lock);
  return refused ? -1 : 0;
}

void stand_in_start(stand_in_t *pool, conduct_t conduct, int64_t threads) {
  memset(pool, 0, sizeof *pool);
  pool->conduct = conduct;
  pool->num_threads = threads;
  pool->accepts = -1;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->changed, NULL);
  for (int64_t k = 0; conduct == THREADS && k < threads; ++k)
    if (pthread_create(pool->threads + k, NULL, serve, pool)) abort();
}

void stand_in_stop(stand_in_t *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->stopping = true;
  pthread_cond_broadcast(&pool->changed);
  while (pool->conduct != THREADS && pool->first < pool->last) run_next(pool);
  pthread_mutex_unlock(&pool->lock);
  for (int64_t k = 0; pool->conduct == THREADS && k < pool->num_threads; ++k)
    pthread_join(pool->threads[k], NULL);
  pthread_cond_destroy(&pool->changed);
  pthread_mutex_destroy(&pool->lock);
}

arl_pool stand_in_pool(stand_in_t *pool) {
  return (arl_pool){.context = pool, .num_threads = num_threads, .schedule = schedule};
}
