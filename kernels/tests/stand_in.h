// Stand-ins for XLA's thread pool, the well-behaved and the awkward.

#ifndef ACCEL_RL_TESTS_STAND_IN_H
#define ACCEL_RL_TESTS_STAND_IN_H

#include <pthread.h>
#include <stdbool.h>

#include "pool.h"

typedef enum {
  THREADS,  // threads of its own run tasks, in order
  AT_ONCE,  // the thread that schedules a task runs it, before `schedule` returns
  LATE,     // keeps tasks until it is stopped
} conduct_t;

enum { MOST_THREADS = 8, MOST_TASKS = 4096 };

typedef struct {
  conduct_t conduct;
  int64_t num_threads;  // what it says
  int64_t accepts;      // tasks that it takes before it refuses; -1: all
  pthread_t threads[MOST_THREADS];
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct {
    void (*run)(void *data);
    void *data;
  } tasks[MOST_TASKS];
  int64_t first, last;  // tasks that wait
  int64_t scheduled;    // in all
  bool stopping;
} stand_in_t;

void stand_in_start(stand_in_t *pool, conduct_t conduct, int64_t num_threads);

// Run what still waits, and end the threads.
void stand_in_stop(stand_in_t *pool);

arl_pool stand_in_pool(stand_in_t *pool);

#endif
