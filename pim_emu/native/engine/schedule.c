/* Which tasklet runs. A tasklet gives up the worker only in services, so what happens on a DPU
 * depends on nothing but the program, its input and the seed.
 *
 * In time: tasklets run in the order of their modelled clocks, as the pipeline would serve them. A
 * clock advances by the instructions counted, each of which takes as many cycles as tasklets issue,
 * at least the reissue interval of the pipeline. At random: any tasklet that can run may, at each
 * service; in a traced program at each load and store too. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "fiber.h"
#include "internal.h"

/* Functions of programs compare their stack with what lies here; glibc reserves it for that. */
static void set_stack_limit(const void *limit) {
    __asm__ volatile("movq %0, %%fs:0x70" : : "r"(limit) : "memory");
}

/* To a tasklet, or to the host where it is NULL. */
static void switch_to(struct emu_run *run, void **save, struct emu_tasklet *to) {
    set_stack_limit(to != NULL ? to->stack_limit : NULL);
    emu_fiber_leave(to);
    emu_switch(save, to != NULL ? to->stack_pointer : run->host_stack_pointer);
    emu_fiber_enter();
}

static void begin_tasklet(void) {
    emu_fiber_enter();
    emu_call_program(emu_current->image->entry);
    __builtin_unreachable(); /* it ends by a service */
}

uint64_t emu_random(struct emu_run *run) { /* splitmix64 */
    uint64_t z = run->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double least(const double values[EMU_MOST_TASKLETS]) {
    __m128d low = _mm_loadu_pd(values), high = _mm_loadu_pd(values + 2);
    for (uint32_t i = 4; i < EMU_MOST_TASKLETS; i += 4) {
        low = _mm_min_pd(low, _mm_loadu_pd(values + i));
        high = _mm_min_pd(high, _mm_loadu_pd(values + i + 2));
    }
    low = _mm_min_pd(low, high);
    return _mm_cvtsd_f64(_mm_min_sd(low, _mm_unpackhi_pd(low, low)));
}

/* The tasklet to run next, or -1 if none can. At the same time, the current one goes on. */
static int choose_in_time(const struct emu_run *run) {
    const double first = least(run->ready);
    if (run->ready[run->place[run->current]] == first && first < INFINITY) return (int)run->current;
    if (first == INFINITY) return -1;
    uint32_t place = 0;
    while (run->ready[place] != first) ++place;
    return run->at_place[place];
}

static int choose_at_random(struct emu_run *run) {
    int chosen = -1;
    uint32_t candidates = 0;
    for (uint32_t place = 0; place < run->count; ++place)
        if (run->ready[place] < INFINITY && emu_random(run) % ++candidates == 0)
            chosen = run->at_place[place];
    return chosen;
}

static int choose(struct emu_run *run) {
    return run->settings.schedule == EMU_AT_RANDOM ? choose_at_random(run) : choose_in_time(run);
}

static void resume(struct emu_run *run, uint32_t next) {
    struct emu_tasklet *from = &run->tasklets[run->current];
    if (next == run->current) return;
    run->current = next;
    run->image->environment->tasklet = next;
    switch_to(run, &from->stack_pointer, &run->tasklets[next]);
}

/* Cycles from one instruction of a tasklet to its next: tasklets that wait for DMA issue none. */
static double cycles_each(const struct emu_run *run, double now) {
    const uint32_t reissue = run->machine->pipeline_reissue;
    if (run->issuing <= reissue) return reissue;
    const __m128d time = _mm_set1_pd(now);
    __m128i waiting = _mm_setzero_si128(); /* minus one for each that waits */
    for (uint32_t i = 0; i < EMU_MOST_TASKLETS; i += 2) {
        const __m128d began = _mm_cmple_pd(_mm_loadu_pd(run->dma_start + i), time);
        const __m128d lasts = _mm_cmpgt_pd(_mm_loadu_pd(run->dma_end + i), time);
        waiting = _mm_add_epi64(waiting, _mm_castpd_si128(_mm_and_pd(began, lasts)));
    }
    const int64_t waits = _mm_cvtsi128_si64(waiting) +
                          _mm_cvtsi128_si64(_mm_unpackhi_epi64(waiting, waiting));
    const int64_t issuing = (int64_t)run->issuing + waits;
    return issuing > reissue ? (double)issuing : reissue;
}

void emu_set_time(struct emu_run *run, double time) {
    run->tasklets[run->current].time = time;
    run->ready[run->place[run->current]] = time;
}

void emu_account(struct emu_run *run, const void *pc) {
    struct emu_tasklet *tasklet = &run->tasklets[run->current];
    const uint64_t total = run->image->environment->instructions;
    uint64_t instructions = total - tasklet->instructions;
    if (instructions == 0) instructions = 1; /* time never stands still: a loop of calls ends */
    tasklet->instructions = total;
    tasklet->pc = pc;
    emu_set_time(run,
                 tasklet->time + (double)instructions * cycles_each(run, tasklet->time));
    run->counters.instructions += instructions;
    ++run->heartbeat;
    if (run->settings.schedule == EMU_AT_RANDOM && emu_random(run) % 2 == 0) return;
    resume(run, (uint32_t)choose(run));
}

static void run_another(struct emu_run *run) {
    const int next = choose(run);
    if (next < 0) emu_fail_deadlock(run);
    resume(run, (uint32_t)next);
}

void emu_wait(struct emu_run *run, enum emu_waiting waiting, const void *object) {
    struct emu_tasklet *tasklet = &run->tasklets[run->current];
    tasklet->waiting = waiting;
    tasklet->object = object;
    run->ready[run->place[run->current]] = INFINITY;
    --run->issuing;
    run_another(run);
}

void emu_wake(struct emu_run *run, uint32_t woken) {
    struct emu_tasklet *tasklet = &run->tasklets[woken];
    const double now = run->tasklets[run->current].time;
    tasklet->waiting = EMU_NOTHING;
    if (tasklet->time < now) tasklet->time = now;
    run->ready[run->place[woken]] = tasklet->time;
    ++run->issuing;
}

int emu_first_waiting(const struct emu_run *run, enum emu_waiting waiting, const void *object) {
    int first = -1;
    for (uint32_t i = 0; i < run->count; ++i) {
        const struct emu_tasklet *tasklet = &run->tasklets[i];
        if (!tasklet->ended && tasklet->waiting == waiting && tasklet->object == object &&
            (first < 0 || tasklet->time < run->tasklets[first].time))
            first = (int)i;
    }
    return first;
}

_Noreturn void emu_leave_run(struct emu_run *run) {
    switch_to(run, &run->tasklets[run->current].stack_pointer, NULL);
    __builtin_unreachable();
}

_Noreturn void emu_end_tasklet(struct emu_run *run) {
    struct emu_tasklet *tasklet = &run->tasklets[run->current];
    tasklet->ended = true;
    run->ready[run->place[run->current]] = INFINITY;
    --run->issuing;
    if (tasklet->time > (double)run->counters.cycles)
        run->counters.cycles = (uint64_t)tasklet->time;
    if (--run->alive == 0) emu_leave_run(run);
    run_another(run);
    __builtin_unreachable();
}

/* Tasklets that are ready at the same time run in an order that the seed decides. */
static void take_places(struct emu_run *run) {
    uint8_t *order = run->at_place;
    for (uint32_t i = 0; i < run->count; ++i) order[i] = (uint8_t)i;
    for (uint32_t i = run->count; run->settings.seed != 0 && i > 1; --i) {
        const uint32_t k = (uint32_t)(emu_random(run) % i);
        const uint8_t tasklet = order[k];
        order[k] = order[i - 1];
        order[i - 1] = tasklet;
    }
    for (uint32_t place = 0; place < EMU_MOST_TASKLETS; ++place) {
        run->ready[place] = place < run->count ? 0 : INFINITY;
        run->dma_start[place] = run->dma_end[place] = 0;
        if (place < run->count) run->place[order[place]] = (uint8_t)place;
    }
}

void emu_run_tasklets(struct emu_run *run) {
    take_places(run);
    run->current = run->at_place[0];
    for (uint32_t i = 0; i < run->count; ++i) {
        struct emu_tasklet *tasklet = &run->tasklets[i];
        uint64_t *frame = (uint64_t *)tasklet->stack_top - 7;
        emu_fiber_renew(tasklet);
        memset(frame, 0, 7 * sizeof *frame);
        frame[4] = (uint64_t)(uintptr_t)begin_tasklet; /* rbx */
        frame[6] = (uint64_t)(uintptr_t)emu_tasklet_start;
        tasklet->stack_pointer = frame;
    }
    run->current = (uint32_t)choose(run);
    run->image->environment->tasklet = run->current;
    switch_to(run, &run->host_stack_pointer, &run->tasklets[run->current]);
}
