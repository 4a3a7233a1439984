/* Virtual mutexes: one bit of WRAM each, changed under one of a few mutexes of the hardware. */
#ifndef DPU_VMUTEX_H
#define DPU_VMUTEX_H

#include <assert.h>
#include <mutex.h>
#include <stdint.h>

struct vmutex {
    uint8_t *vm;
    uint8_t *hw_mutexes;
    uint8_t hw_mutexes_mask; /* their number less one */
};

#define VMUTEX_INIT(NAME, NB_VMUTEXES, NB_MUTEXES)                                                 \
    _Static_assert((NB_MUTEXES) > 0 && ((NB_MUTEXES) & ((NB_MUTEXES) - 1)) == 0,                   \
                   "the number of hardware mutexes must be a power of two");                       \
    _Static_assert(((NB_VMUTEXES) & 7) == 0,                                                       \
                   "the number of virtual mutexes must be a multiple of 8");                       \
    uint8_t __atomic_bit hw_mutexes_##NAME[NB_MUTEXES];                                            \
    uint8_t vmutex_##NAME[(NB_VMUTEXES) >> 3];                                                     \
    struct vmutex NAME = {vmutex_##NAME, hw_mutexes_##NAME, (NB_MUTEXES) - 1};

void vmutex_lock(struct vmutex *vm, uint16_t id);
void vmutex_unlock(struct vmutex *vm, uint16_t id);

#endif
