/* A few mutexes that guard many elements: element `id` by mutex `id` modulo their number. */
#ifndef DPU_MUTEX_POOL_H
#define DPU_MUTEX_POOL_H

#include <assert.h>
#include <mutex.h>
#include <stdint.h>

struct mutex_pool {
    uint8_t *hw_mutexes;
    uint8_t hw_mutexes_mask; /* their number less one */
};

#define MUTEX_POOL_INIT(NAME, NB_MUTEXES)                                                          \
    _Static_assert((NB_MUTEXES) > 0 && ((NB_MUTEXES) & ((NB_MUTEXES) - 1)) == 0,                   \
                   "the number of mutexes in a pool must be a power of two");                      \
    uint8_t __atomic_bit hw_mutexes_##NAME[NB_MUTEXES];                                            \
    struct mutex_pool NAME = {hw_mutexes_##NAME, (NB_MUTEXES) - 1};

void mutex_pool_lock(struct mutex_pool *mp, uint16_t id);
void mutex_pool_unlock(struct mutex_pool *mp, uint16_t id);

#endif
