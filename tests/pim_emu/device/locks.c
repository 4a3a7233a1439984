/* Counts under every kind of lock; between reading and writing a counter others may run. */
#include <barrier.h>
#include <defs.h>
#include <handshake.h>
#include <mutex.h>
#include <mutex_pool.h>
#include <perfcounter.h>
#include <sem.h>
#include <stdint.h>
#include <vmutex.h>

#define ROUNDS 20
#define ELEMENTS 40

MUTEX_INIT(mutex);
MUTEX_POOL_INIT(pool, 4)
VMUTEX_INIT(virtual, 64, 2)
SEMAPHORE_INIT(three, 3);
SEMAPHORE_INIT(later, 0);
BARRIER_INIT(everybody, NR_TASKLETS);
barrier_t halves[2];
sem_t made_at_run_time;
mutex_id_t unassigned; /* on a DPU, address 0 is a bit as well */

__host uint32_t plain, tried, pooled[ELEMENTS], virtually[ELEMENTS], nobody, most_inside, order;
__host uint32_t out_of_step;
static uint32_t inside, phase[NR_TASKLETS];

static void increment(uint32_t *counter) {
    const uint32_t value = *counter;
    perfcounter_get();
    *counter = value + 1;
}

static void count(void) {
    for (uint32_t i = 0; i < ROUNDS; ++i) {
        mutex_lock(mutex);
        increment(&plain);
        mutex_unlock(mutex);
        while (!mutex_trylock(MUTEX_GET(mutex)))
            ;
        increment(&tried);
        mutex_unlock(mutex);
        mutex_lock(unassigned);
        increment(&nobody);
        mutex_unlock(unassigned);
        for (uint32_t k = 0; k < ELEMENTS; k += 7) {
            mutex_pool_lock(&pool, k);
            increment(&pooled[k]);
            mutex_pool_unlock(&pool, k);
            vmutex_lock(&virtual, k);
            increment(&virtually[k]);
            vmutex_unlock(&virtual, k);
        }
    }
}

static void share(sem_t *sem) {
    sem_take(sem);
    const uint32_t now = __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
    perfcounter_get();
    if (now > __atomic_load_n(&most_inside, __ATOMIC_RELAXED))
        __atomic_store_n(&most_inside, now, __ATOMIC_RELAXED);
    perfcounter_get();
    __atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
    sem_give(sem);
}

static void keep_step(barrier_t *barrier, uint32_t first, uint32_t by) {
    for (uint32_t i = 1; i <= ROUNDS; ++i) {
        phase[me()] = i;
        barrier_wait(barrier);
        for (uint32_t other = first; other < NR_TASKLETS; other += by)
            if (phase[other] < i) __atomic_fetch_add(&out_of_step, 1, __ATOMIC_RELAXED);
        barrier_wait(barrier);
    }
}

/* Tasklet after tasklet, as each is told to go on. */
static void pass_on(void) {
    if (me() != 0) handshake_wait_for(me() - 1);
    order = order * 3 + me();
    if (me() != NR_TASKLETS - 1) handshake_notify();
}

int main(void) {
    if (me() == 0) {
        for (uint32_t i = 0; i < 2; ++i) {
            halves[i].wait_queue = 0xff;
            halves[i].count = halves[i].initial_count = (NR_TASKLETS + 1 - i) / 2;
        }
        made_at_run_time = (sem_t){.wait_queue = 0xff, .count = 3, .initial_count = 3};
    }
    barrier_wait(&everybody);
    count();
    for (uint32_t i = 0; i < ROUNDS; ++i) {
        share(&three);
        barrier_wait(&everybody);
        share(&made_at_run_time);
        barrier_wait(&everybody);
    }
    keep_step(&everybody, 0, 1);
    keep_step(&halves[me() % 2], me() % 2, 2);
    if (me() == 0)
        for (uint32_t i = 1; i < NR_TASKLETS; ++i) sem_give(&later);
    else
        sem_take(&later);
    pass_on();
    return 0;
}
