/* Which tasklet runs. A tasklet gives up the worker only in services, so what happens on a DPU
 * depends on nothing but the program, its input and the seed.
 *
 * In time: tasklets run in the order of their modelled clocks, as the pipeline would serve them. A
 * clock advances by the instructions counted, each of which takes as many cycles as tasklets issue,
 * at least the reissue interval of the pipeline. At random: any tasklet that can run may, at each
 * service; in a traced program at each load and store too. */
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

static bool can_run(const struct emu_tasklet *tasklet) {
    return !tasklet->ended && tasklet->waiting == EMU_NOTHING;
}

static bool sooner(const struct emu_run *run, uint32_t a, uint32_t b) {
    const double x = run->tasklets[a].time, y = run->tasklets[b].time;
    return x < y || (x == y && run->rank[a] < run->rank[b]);
}

/* The tasklet to run next, or -1 if none can. */
static int choose(struct emu_run *run) {
    int chosen = -1;
    const bool by_chance = run->settings.schedule == EMU_AT_RANDOM;
    uint32_t candidates = 0;
    for (uint32_t i = 0; i < run->count; ++i) {
        if (!can_run(&run->tasklets[i])) continue;
        ++candidates;
        if (by_chance ? emu_random(run) % candidates == 0
                      : chosen < 0 || sooner(run, i, (uint32_t)chosen))
            chosen = (int)i;
    }
    return chosen;
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
    uint32_t issuing = run->issuing;
    for (uint32_t i = 0; i < run->count; ++i) {
        const struct emu_tasklet *other = &run->tasklets[i];
        if (can_run(other) && other->dma_start <= now && now < other->dma_end) --issuing;
    }
    return issuing > reissue ? issuing : reissue;
}

void emu_account(struct emu_run *run, const void *pc) {
    struct emu_tasklet *tasklet = &run->tasklets[run->current];
    const uint64_t total = run->image->environment->instructions;
    uint64_t instructions = total - tasklet->instructions;
    if (instructions == 0) instructions = 1; /* time never stands still: a loop of calls ends */
    tasklet->instructions = total;
    tasklet->pc = pc;
    tasklet->time += (double)instructions * cycles_each(run, tasklet->time);
    run->counters.instructions += instructions;
    ++run->heartbeat;
    if (run->settings.schedule == EMU_AT_RANDOM && emu_random(run) % 2 == 0) return;
    const int next = choose(run);
    resume(run, (uint32_t)next);
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
    --run->issuing;
    run_another(run);
}

void emu_wake(struct emu_run *run, uint32_t woken) {
    struct emu_tasklet *tasklet = &run->tasklets[woken];
    const double now = run->tasklets[run->current].time;
    tasklet->waiting = EMU_NOTHING;
    if (tasklet->time < now) tasklet->time = now;
    ++run->issuing;
}

int emu_first_waiting(const struct emu_run *run, enum emu_waiting waiting, const void *object) {
    int first = -1;
    for (uint32_t i = 0; i < run->count; ++i) {
        const struct emu_tasklet *tasklet = &run->tasklets[i];
        if (!tasklet->ended && tasklet->waiting == waiting && tasklet->object == object &&
            (first < 0 || sooner(run, i, (uint32_t)first)))
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
    --run->issuing;
    if (tasklet->time > (double)run->counters.cycles)
        run->counters.cycles = (uint64_t)tasklet->time;
    if (--run->alive == 0) emu_leave_run(run);
    run_another(run);
    __builtin_unreachable();
}

/* Tasklets that are ready at the same time run in an order that the seed decides. */
static void shuffle(struct emu_run *run) {
    for (uint32_t i = 0; i < run->count; ++i) run->rank[i] = (uint8_t)i;
    if (run->settings.seed == 0) return;
    for (uint32_t i = run->count; i > 1; --i) {
        const uint32_t k = (uint32_t)(emu_random(run) % i);
        const uint8_t rank = run->rank[k];
        run->rank[k] = run->rank[i - 1];
        run->rank[i - 1] = rank;
    }
}

void emu_run_tasklets(struct emu_run *run) {
    shuffle(run);
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
