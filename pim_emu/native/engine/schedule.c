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

#define SLOT(events, i) ((events)->items[(i) % EMU_EVENTS])

/* Of events at the same time, the first to be added is the first. */
static void add_event(struct emu_events *events, double at, uint32_t tasklet) {
    uint32_t i = events->first + events->count++;
    for (; i != events->first && SLOT(events, i - 1).at > at; --i)
        SLOT(events, i) = SLOT(events, i - 1);
    SLOT(events, i) = (struct emu_event){at, tasklet};
}

static struct emu_event take_event(struct emu_events *events, uint32_t number) {
    const struct emu_event taken = SLOT(events, events->first + number);
    for (uint32_t i = events->first + number; i != events->first; --i)
        SLOT(events, i) = SLOT(events, i - 1);
    ++events->first;
    --events->count;
    return taken;
}

/* Cycles in which each of the tasklets that compute issues one instruction. */
static double cycles_among(const struct emu_run *run, uint32_t computing) {
    const uint32_t reissue = run->machine->pipeline_reissue;
    return computing > reissue ? computing : reissue;
}

static double cycles_each(const struct emu_run *run) {
    return cycles_among(run, run->computing.count);
}

/* A transfer ends; its tasklet computes until its next service. */
static void end_transfer(struct emu_run *run, uint32_t number) {
    const double each = cycles_each(run);
    const struct emu_event end = take_event(&run->transfers, number);
    struct emu_tasklet *tasklet = &run->tasklets[end.tasklet];
    if (end.at > run->time) {
        if (run->computing.count > 0) run->turns += (end.at - run->time) / each;
        run->time = end.at;
    }
    tasklet->transfers = false;
    add_event(&run->computing, run->turns + tasklet->then_computes, end.tasklet);
}

/* A tasklet comes to its next service. */
static int end_computing(struct emu_run *run, uint32_t number) {
    const double each = cycles_each(run);
    const struct emu_event end = take_event(&run->computing, number);
    if (end.at > run->turns) {
        run->time += (end.at - run->turns) * each;
        run->turns = end.at;
    }
    return (int)end.tasklet;
}

/* The tasklet whose service comes next, or -1 if all wait. */
static int next_in_time(struct emu_run *run) {
    const struct emu_events *transfers = &run->transfers, *computing = &run->computing;
    for (;;) {
        double due = INFINITY;
        if (computing->count > 0)
            due = run->time + (SLOT(computing, computing->first).at - run->turns) * cycles_each(run);
        if (transfers->count > 0 && SLOT(transfers, transfers->first).at < due)
            end_transfer(run, 0);
        else
            return computing->count > 0 ? end_computing(run, 0) : -1;
    }
}

static int next_at_random(struct emu_run *run) {
    const uint32_t candidates = run->computing.count + run->transfers.count;
    if (candidates == 0) return -1;
    const uint32_t chosen = (uint32_t)(emu_random(run) % candidates);
    if (chosen < run->computing.count) return end_computing(run, chosen);
    const uint32_t number = chosen - run->computing.count;
    const uint32_t tasklet = SLOT(&run->transfers, run->transfers.first + number).tasklet;
    end_transfer(run, number);
    for (uint32_t i = 0;; ++i) /* where it has been put */
        if (SLOT(&run->computing, run->computing.first + i).tasklet == tasklet)
            return end_computing(run, i);
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
    run->tasklets[run->current].transfers = true;
    add_event(&run->transfers, time, run->current);
}

/* Only one thread writes it: no locked instruction is needed. */
static void beat(struct emu_run *run) {
    const uint64_t beats = atomic_load_explicit(&run->heartbeat, memory_order_relaxed);
    atomic_store_explicit(&run->heartbeat, beats + 1, memory_order_relaxed);
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
    const uint64_t instructions = count(run);
    for (uint32_t i = 0; i < run->transfers.count; ++i) {
        const struct emu_event end = SLOT(&run->transfers, run->transfers.first + i);
        if (end.tasklet == run->current && end.at > run->time) run->time = end.at;
    }
    run->time += (double)instructions * cycles_among(run, run->computing.count + 1);
}

void emu_account(struct emu_run *run, const void *pc) {
    struct emu_tasklet *tasklet = &run->tasklets[run->current];
    uint64_t instructions = count(run);
    if (instructions == 0) { /* time never stands still: a loop of calls ends */
        instructions = 1;
        ++run->counters.instructions;
    }
    tasklet->pc = pc;
    beat(run);
    if (tasklet->transfers)
        tasklet->then_computes = (double)instructions;
    else
        add_event(&run->computing, run->turns + (double)instructions, run->current);
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
    tasklet->number = ++run->waits;
    run_another(run);
}

void emu_wake(struct emu_run *run, uint32_t woken) {
    run->tasklets[woken].waiting = EMU_NOTHING;
    add_event(&run->computing, run->turns, woken);
}

int emu_first_waiting(const struct emu_run *run, enum emu_waiting waiting, const void *object) {
    int first = -1;
    for (uint32_t i = 0; i < run->count; ++i) {
        const struct emu_tasklet *tasklet = &run->tasklets[i];
        if (!tasklet->ended && tasklet->waiting == waiting && tasklet->object == object &&
            (first < 0 || tasklet->number < run->tasklets[first].number))
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

/* All compute at first, in an order that the seed decides. */
static void line_up(struct emu_run *run) {
    struct emu_events *computing = &run->computing;
    *computing = run->transfers = (struct emu_events){.first = 0};
    for (uint32_t i = 0; i < run->count; ++i) add_event(computing, 0, i);
    for (uint32_t i = run->count; run->settings.seed != 0 && i > 1; --i) {
        const uint32_t k = (uint32_t)(emu_random(run) % i);
        const struct emu_event event = computing->items[k];
        computing->items[k] = computing->items[i - 1];
        computing->items[i - 1] = event;
    }
}

void emu_run_tasklets(struct emu_run *run) {
    line_up(run);
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
