/* Which tasklet runs. A tasklet gives up the worker only in services, so what happens on a DPU
 * depends on nothing but the program, its input and the seed.
 *
 * In time: services happen in the order in which the pipeline reaches them. It serves the tasklets
 * that compute in turn, one instruction of each in as many cycles as they are, at least the reissue
 * interval; tasklets that wait, for each other or for a transfer, take no turns. So one number tells
 * how far all have come: the instructions that each has issued since the launch, if it computed all
 * the time. What a tasklet does between two services runs at once, the time it takes is settled when
 * it asks for the second. At random: any tasklet that can run may, at each service; in a traced
 * program at each load and store too. */
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

/* Cycles in which each tasklet that computes issues one instruction. */
static double cycles_each(const struct emu_run *run) {
    const uint32_t reissue = run->machine->pipeline_reissue;
    return run->computing > reissue ? run->computing : reissue;
}

/* The tasklet at a place computes until all have come so far. */
static void compute_until(struct emu_run *run, uint32_t place, double turns) {
    run->due[place] = turns;
    ++run->computing;
}

static void end_transfer(struct emu_run *run, uint32_t place) {
    const double time = run->transfer_end[place];
    if (time > run->time) {
        if (run->computing > 0) run->turns += (time - run->time) / cycles_each(run);
        run->time = time;
    }
    run->transfer_end[place] = INFINITY;
    compute_until(run, place, run->turns + run->after_transfer[place]);
}

static uint32_t end_computing(struct emu_run *run, uint32_t place) {
    if (run->due[place] > run->turns) {
        run->time += (run->due[place] - run->turns) * cycles_each(run);
        run->turns = run->due[place];
    }
    run->due[place] = INFINITY;
    --run->computing;
    return run->at_place[place];
}

/* The tasklet whose service comes next, or -1 if all wait. Of several, the current one goes on. */
static int next_in_time(struct emu_run *run) {
    for (;;) {
        const double due = least(run->due), end = least(run->transfer_end);
        if (end < run->time + (due - run->turns) * cycles_each(run)) {
            uint32_t place = 0;
            while (run->transfer_end[place] != end) ++place;
            end_transfer(run, place);
        } else if (due < INFINITY) {
            uint32_t place = run->place[run->current];
            if (run->due[place] != due)
                for (place = 0; run->due[place] != due;) ++place;
            return (int)end_computing(run, place);
        } else {
            return -1;
        }
    }
}

static int next_at_random(struct emu_run *run) {
    int chosen = -1;
    uint32_t candidates = 0;
    for (uint32_t place = 0; place < run->count; ++place)
        if ((run->due[place] < INFINITY || run->transfer_end[place] < INFINITY) &&
            emu_random(run) % ++candidates == 0)
            chosen = (int)place;
    if (chosen < 0) return -1;
    if (run->transfer_end[chosen] < INFINITY) end_transfer(run, (uint32_t)chosen);
    return (int)end_computing(run, (uint32_t)chosen);
}

static int next(struct emu_run *run) {
    return run->settings.schedule == EMU_AT_RANDOM ? next_at_random(run) : next_in_time(run);
}

static void resume(struct emu_run *run, uint32_t next) {
    struct emu_tasklet *from = &run->tasklets[run->current];
    if (next == run->current) return;
    run->current = next;
    run->image->environment->tasklet = next;
    switch_to(run, &from->stack_pointer, &run->tasklets[next]);
}

void emu_transfer_until(struct emu_run *run, double time) {
    run->transfer_end[run->place[run->current]] = time;
}

/* Instructions of the current tasklet since its last service. */
static uint64_t count(struct emu_run *run) {
    struct emu_tasklet *tasklet = &run->tasklets[run->current];
    const uint64_t total = run->image->environment->instructions;
    const uint64_t instructions = total - tasklet->instructions;
    tasklet->instructions = total;
    run->counters.instructions += instructions;
    return instructions;
}

void emu_settle(struct emu_run *run) {
    const uint32_t place = run->place[run->current];
    const uint64_t instructions = count(run);
    const double end = run->transfer_end[place];
    if (end < INFINITY && end > run->time) run->time = end;
    run->time += (double)instructions * cycles_each(run);
}

void emu_account(struct emu_run *run, const void *pc) {
    const uint32_t place = run->place[run->current];
    uint64_t instructions = count(run);
    if (instructions == 0) { /* time never stands still: a loop of calls ends */
        instructions = 1;
        ++run->counters.instructions;
    }
    run->tasklets[run->current].pc = pc;
    ++run->heartbeat;
    if (run->transfer_end[place] < INFINITY)
        run->after_transfer[place] = (double)instructions;
    else
        compute_until(run, place, run->turns + (double)instructions);
    resume(run, (uint32_t)next(run));
}

static void run_another(struct emu_run *run) {
    const int tasklet = next(run);
    if (tasklet < 0) emu_fail_deadlock(run);
    resume(run, (uint32_t)tasklet);
}

void emu_wait(struct emu_run *run, enum emu_waiting waiting, const void *object) {
    struct emu_tasklet *tasklet = &run->tasklets[run->current];
    tasklet->waiting = waiting;
    tasklet->object = object;
    tasklet->since = run->time;
    run_another(run);
}

void emu_wake(struct emu_run *run, uint32_t woken) {
    run->tasklets[woken].waiting = EMU_NOTHING;
    compute_until(run, run->place[woken], run->turns);
}

int emu_first_waiting(const struct emu_run *run, enum emu_waiting waiting, const void *object) {
    int first = -1;
    for (uint32_t i = 0; i < run->count; ++i) {
        const struct emu_tasklet *tasklet = &run->tasklets[i];
        if (!tasklet->ended && tasklet->waiting == waiting && tasklet->object == object &&
            (first < 0 || tasklet->since < run->tasklets[first].since))
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
        run->due[place] = place < run->count ? 0 : INFINITY;
        run->transfer_end[place] = INFINITY;
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
    run->current = (uint32_t)next(run);
    run->image->environment->tasklet = run->current;
    switch_to(run, &run->host_stack_pointer, &run->tasklets[run->current]);
}
