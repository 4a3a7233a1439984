// Shared work on pools of every conduct: each item is done once, by the time the call returns, and
// nothing that a late task does matters.

#include <string.h>

#include "check.h"
#include "stand_in.h"

enum { MOST_ITEMS = 200, CALLERS = 3, ROUNDS = 300, NONE = -1, ALL = -2 };

// What a call works on. Items are marked without atomics: two threads at one would be a race.
typedef struct {
  int64_t items, grain, fails;  // the item at which work fails, NONE or ALL
  uint8_t times[MOST_ITEMS];
  bool is_torn;  // a part was empty, or not one that the grain makes
} job_t;

static int work(void *argument, int64_t first, int64_t last) {
  job_t *job = argument;
  const bool whole = first == 0 && last == job->items;
  const bool part = first % job->grain == 0 && (last - first == job->grain || last == job->items);
  if (first >= last || !(whole || part)) job->is_torn = true;
  for (int64_t item = first; item < last; ++item) ++job->times[item];
  const bool fails = first <= job->fails && job->fails < last;
  return fails || job->fails == ALL ? 1 + (int)first : 0;
}

static job_t *make_job(int64_t items, int64_t grain, int64_t fails) {
  job_t *job = must_allocate(sizeof *job);
  *job = (job_t){.items = items, .grain = grain, .fails = fails};
  return job;
}

// Whether all is as it should be after a call. The job is freed: late tasks must not look at it.
static bool ends_well(job_t *job, int status) {
  const bool whole = status == 1;  // by one part, or by that of the first item
  bool good = (status > 0) == (job->fails != NONE && job->items > 0) && !job->is_torn;
  if (job->fails >= 0) good &= whole || status == 1 + job->fails / job->grain * job->grain;
  for (int64_t item = 0; item < MOST_ITEMS; ++item) good &= job->times[item] == (item < job->items);
  free(job);
  return good;
}

static bool share(stand_in_t *stand_in, int64_t items, int64_t grain, int64_t fails) {
  const arl_pool pool = stand_in_pool(stand_in);
  job_t *job = make_job(items, grain, fails);
  return ends_well(job, arl_share(&pool, items, grain, work, job));
}

static void test_conduct(conduct_t conduct, int64_t threads, int64_t accepts) {
  static const int64_t numbers[] = {0, 1, 2, 3, 7, 16, 100, MOST_ITEMS}, grains[] = {1, 2, 7, 1000};
  stand_in_t stand_in;
  for (int i = 0; i < 8; ++i)
    for (int g = 0; g < 4; ++g)
      for (int64_t fails = ALL; fails < numbers[i]; fails += fails < 0 ? 1 : 1 + numbers[i] / 2) {
        const int64_t parts = (numbers[i] + grains[g] - 1) / grains[g];
        stand_in_start(&stand_in, conduct, threads);
        stand_in.accepts = accepts;
        CHECK(share(&stand_in, numbers[i], grains[g], fails),
              "conduct %d, %lld threads, %lld accepted: %lld items by %lld, failing at %lld",
              (int)conduct, (long long)threads, (long long)accepts, (long long)numbers[i],
              (long long)grains[g], (long long)fails);
        const int64_t useful = parts - 1 < threads ? parts - 1 : threads;
        CHECK(stand_in.scheduled <= (useful > 0 ? useful : 0), "%lld tasks for %lld parts",
              (long long)stand_in.scheduled, (long long)parts);
        stand_in_stop(&stand_in);
      }
}

// One pool for many calls, one after the other, whose tasks overlap with later calls.
static void test_rounds(conduct_t conduct) {
  stand_in_t stand_in;
  uint64_t state = 0x9001ull;
  stand_in_start(&stand_in, conduct, 4);
  for (int round = 0; round < ROUNDS; ++round) {
    const int64_t items = random_between(&state, 0, MOST_ITEMS);
    const int64_t grain = random_between(&state, 1, 20);
    CHECK(share(&stand_in, items, grain, round % 2 ? ALL : NONE), "round %d: %lld items by %lld",
          round, (long long)items, (long long)grain);
  }
  stand_in_stop(&stand_in);
}

// Callers that share one pool, each itself a task of that pool: all its threads wait in a call.
typedef struct {
  stand_in_t *pool;
  int good;
  bool is_done;
} caller_t;

static void call_often(void *argument) {
  caller_t *caller = argument;
  int good = 0;
  for (int round = 0; round < ROUNDS; ++round) good += share(caller->pool, 50, 3, NONE);
  pthread_mutex_lock(&caller->pool->lock);
  caller->good = good;
  caller->is_done = true;
  pthread_cond_broadcast(&caller->pool->changed);
  pthread_mutex_unlock(&caller->pool->lock);
}

static void test_callers_within_the_pool(void) {
  stand_in_t stand_in;
  caller_t callers[CALLERS];
  stand_in_start(&stand_in, THREADS, CALLERS);
  const arl_pool pool = stand_in_pool(&stand_in);
  for (int k = 0; k < CALLERS; ++k) {
    callers[k] = (caller_t){.pool = &stand_in};
    CHECK(pool.schedule(pool.context, call_often, callers + k) == 0, "caller %d", k);
  }
  pthread_mutex_lock(&stand_in.lock);
  for (int k = 0; k < CALLERS; ++k)
    while (!callers[k].is_done) pthread_cond_wait(&stand_in.changed, &stand_in.lock);
  pthread_mutex_unlock(&stand_in.lock);
  stand_in_stop(&stand_in);
  for (int k = 0; k < CALLERS; ++k)
    CHECK(callers[k].good == ROUNDS, "caller %d: %d of %d", k, callers[k].good, ROUNDS);
}

int main(void) {
  for (int64_t threads = 0; threads <= MOST_THREADS; threads += 1 + threads) {
    test_conduct(THREADS, threads, -1);
    test_conduct(AT_ONCE, threads, -1);
    test_conduct(LATE, threads, -1);
    test_conduct(LATE, threads, 0);
    test_conduct(THREADS, threads, 2);
  }
  test_rounds(THREADS);
  test_rounds(AT_ONCE);
  test_rounds(LATE);
  test_callers_within_the_pool();
  return finish();
}
