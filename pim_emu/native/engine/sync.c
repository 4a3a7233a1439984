/* Barriers, mutexes, semaphores and handshakes. They lie in the program's memory; who waits, and who
 * holds what, is known here. Waiting tasklets are woken in the order in which they came. */
#include "internal.h"

static struct emu_run *enter(const void *pc) {
    struct emu_run *run = emu_current;
    emu_account(run, pc);
    return run;
}

/* All tasklets that ever come to a barrier of a size must be that many, or they pass out of step. */
static void check_meeting(struct emu_run *run, const struct emu_barrier *barrier, const void *pc) {
    if (!run->settings.checks) return;
    char name[64];
    if (barrier->size == 0 || barrier->size > run->count)
        emu_fail(run, EMU_FAULT_BARRIER, pc, "%s is for %u tasklets, the program has %u",
                 emu_name_object(run, barrier, name), barrier->size, run->count);
    for (uint32_t i = 0; i < EMU_MOST_BARRIERS; ++i) {
        if (run->meetings[i].barrier == NULL) run->meetings[i].barrier = barrier;
        if (run->meetings[i].barrier != barrier) continue;
        if (run->meetings[i].size != barrier->size) run->meetings[i].tasklets = 0; /* made anew */
        run->meetings[i].size = barrier->size;
        run->meetings[i].tasklets |= 1u << run->current;
        if (__builtin_popcount(run->meetings[i].tasklets) > barrier->size)
            emu_fail(run, EMU_FAULT_BARRIER, pc,
                     "one tasklet too many comes to %s, which is for %u: others already have "
                     "(PIM_EMU_CHECKS=0 lets groups share a barrier)",
                     emu_name_object(run, barrier, name), barrier->size);
        return;
    }
}

void emu_barrier_wait(struct emu_barrier *barrier, const void *pc) {
    struct emu_run *run = enter(pc);
    check_meeting(run, barrier, pc);
    emu_race_release(run, barrier, run->current);
    if (++barrier->waiting < barrier->size) {
        emu_wait(run, EMU_ON_BARRIER, barrier);
        return;
    }
    barrier->waiting = 0;
    emu_race_acquire(run, barrier, run->current);
    for (int other; (other = emu_first_waiting(run, EMU_ON_BARRIER, barrier)) >= 0;) {
        emu_race_acquire(run, barrier, (uint32_t)other);
        emu_wake(run, (uint32_t)other);
    }
}

/* The number of a mutex: its place among the hardware's bits. */
static uint32_t number_of(struct emu_run *run, const uint8_t *mutex, const void *pc) {
    const struct emu_image *image = run->image;
    if (mutex < image->atomic || mutex >= image->atomic_end ||
        mutex - image->atomic >= EMU_MOST_MUTEXES)
        emu_fail(run, EMU_FAULT_MUTEX, pc, "%p was not made by MUTEX_INIT or MUTEX_POOL_INIT",
                 (const void *)mutex);
    return (uint32_t)(mutex - image->atomic);
}

void emu_mutex_lock(uint8_t *mutex, const void *pc) {
    struct emu_run *run = enter(pc);
    const uint32_t number = number_of(run, mutex, pc);
    if (*mutex) /* whoever unlocks it hands it over */
        emu_wait(run, EMU_ON_MUTEX, mutex);
    *mutex = 1;
    run->owner[number] = (uint8_t)run->current;
    emu_race_acquire(run, mutex, run->current);
}

int emu_mutex_trylock(uint8_t *mutex, const void *pc) {
    struct emu_run *run = enter(pc);
    const uint32_t number = number_of(run, mutex, pc);
    if (*mutex) return 0;
    *mutex = 1;
    run->owner[number] = (uint8_t)run->current;
    emu_race_acquire(run, mutex, run->current);
    return 1;
}

/* Any tasklet may clear the bit, as on the hardware. */
void emu_mutex_unlock(uint8_t *mutex, const void *pc) {
    struct emu_run *run = enter(pc);
    const uint32_t number = number_of(run, mutex, pc);
    emu_race_release(run, mutex, run->current);
    run->owner[number] = EMU_NOBODY;
    const int next = emu_first_waiting(run, EMU_ON_MUTEX, mutex);
    *mutex = next >= 0; /* stays taken where it is handed over */
    if (next >= 0) emu_wake(run, (uint32_t)next);
}

void emu_semaphore_take(struct emu_semaphore *semaphore, const void *pc) {
    struct emu_run *run = enter(pc);
    if (semaphore->count > 0)
        --semaphore->count;
    else /* whoever gives it leaves the count alone */
        emu_wait(run, EMU_ON_SEMAPHORE, semaphore);
    emu_race_acquire(run, semaphore, run->current);
}

void emu_semaphore_give(struct emu_semaphore *semaphore, const void *pc) {
    struct emu_run *run = enter(pc);
    emu_race_release(run, semaphore, run->current);
    const int next = emu_first_waiting(run, EMU_ON_SEMAPHORE, semaphore);
    if (next >= 0)
        emu_wake(run, (uint32_t)next);
    else if (semaphore->count < INT16_MAX)
        ++semaphore->count;
    else
        emu_fail(run, EMU_FAULT_SEMAPHORE, pc, "more than %d have been given", INT16_MAX);
}

/* Notifier and waiter meet: each goes on when the other has come. The notifier's tasklet stands for
 * the meeting. */
static void meet(struct emu_run *run, const void *meeting, uint32_t other) {
    emu_race_release(run, meeting, run->current);
    emu_race_release(run, meeting, other);
    emu_race_acquire(run, meeting, run->current);
    emu_race_acquire(run, meeting, other);
    emu_wake(run, other);
}

void emu_handshake_wait(uint32_t tasklet, const void *pc) {
    struct emu_run *run = enter(pc);
    if (tasklet >= run->count || tasklet == run->current)
        emu_fail(run, EMU_FAULT_HANDSHAKE, pc, "waits for tasklet %u, must be another of 0 to %u",
                 tasklet, run->count - 1);
    struct emu_tasklet *notifier = &run->tasklets[tasklet];
    const int rival = emu_first_waiting(run, EMU_ON_NOTIFIER, notifier);
    if (rival >= 0)
        emu_fail(run, EMU_FAULT_HANDSHAKE, pc,
                 "waits for tasklet %u, for which tasklet %d already waits", tasklet, rival);
    if (notifier->waiting == EMU_ON_WAITER)
        meet(run, notifier, tasklet);
    else
        emu_wait(run, EMU_ON_NOTIFIER, notifier);
}

void emu_handshake_notify(const void *pc) {
    struct emu_run *run = enter(pc);
    struct emu_tasklet *self = &run->tasklets[run->current];
    const int waiter = emu_first_waiting(run, EMU_ON_NOTIFIER, self);
    if (waiter >= 0)
        meet(run, self, (uint32_t)waiter);
    else
        emu_wait(run, EMU_ON_WAITER, self);
}
