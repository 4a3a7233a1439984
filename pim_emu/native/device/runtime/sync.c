/* Mutexes, barriers, semaphores, handshakes: the engine blocks and wakes tasklets. */
#include <barrier.h>
#include <handshake.h>
#include <mutex.h>
#include <mutex_pool.h>
#include <sem.h>

#include "runtime.h"

/* Published programs lock mutexes that they never assigned: on a DPU, address 0 is a bit too. */
static uint8_t __atomic_bit bit_at_zero;

static uint8_t *bit_of(mutex_id_t mutex) { return mutex != NULL ? mutex : &bit_at_zero; }

void mutex_lock(mutex_id_t mutex) { engine_after(COST_MUTEX)->mutex_lock(bit_of(mutex), CALLER); }

bool mutex_trylock(mutex_id_t mutex) {
    return engine_after(COST_MUTEX + 1)->mutex_trylock(bit_of(mutex), CALLER);
}

void mutex_unlock(mutex_id_t mutex) {
    engine_after(COST_MUTEX)->mutex_unlock(bit_of(mutex), CALLER);
}

void __emu_atomic_bit_acquire(uint8_t *bit) { engine_after(COST_MUTEX)->mutex_lock(bit, CALLER); }

void __emu_atomic_bit_release(uint8_t *bit) {
    engine_after(COST_MUTEX)->mutex_unlock(bit, CALLER);
}

void mutex_pool_lock(struct mutex_pool *mp, uint16_t id) {
    engine_after(COST_MUTEX + 2)->mutex_lock(&mp->hw_mutexes[id & mp->hw_mutexes_mask], CALLER);
}

void mutex_pool_unlock(struct mutex_pool *mp, uint16_t id) {
    engine_after(COST_MUTEX + 2)->mutex_unlock(&mp->hw_mutexes[id & mp->hw_mutexes_mask], CALLER);
}

_Static_assert(sizeof((barrier_t){0}.__emu) == sizeof(struct emu_barrier), "one layout");
_Static_assert(sizeof((sem_t){0}.__emu) == sizeof(struct emu_semaphore), "one layout");

void barrier_wait(barrier_t *barrier) {
    /* Whoever fills in a barrier at run time says its size only in the vendor's members. */
    if (barrier->__emu.waiting == 0) barrier->__emu.size = barrier->initial_count;
    engine_after(COST_BARRIER)->barrier_wait((struct emu_barrier *)&barrier->__emu, CALLER);
}

/* `count` holds what the vendor's would. Where the program has set it, the engine must know. */
static struct emu_semaphore *adjust(sem_t *sem, int by) {
    if (sem->count != sem->__emu.known) sem->__emu.count = (int8_t)sem->count;
    sem->__emu.known = sem->count = (uint8_t)(sem->count + by);
    return (struct emu_semaphore *)&sem->__emu;
}

void sem_take(sem_t *sem) {
    struct emu_semaphore *const semaphore = adjust(sem, -1);
    engine_after(COST_SEMAPHORE)->semaphore_take(semaphore, CALLER);
}

void sem_give(sem_t *sem) {
    struct emu_semaphore *const semaphore = adjust(sem, +1);
    engine_after(COST_SEMAPHORE)->semaphore_give(semaphore, CALLER);
}

void handshake_notify(void) { engine_after(COST_HANDSHAKE)->handshake_notify(CALLER); }

int handshake_wait_for(sysname_t notifier) {
    engine_after(COST_HANDSHAKE)->handshake_wait(notifier, CALLER);
    return 0;
}
