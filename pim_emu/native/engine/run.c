/* One launch of one DPU: its WRAM goes into the worker's image, its tasklets run, and WRAM comes
 * back. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

/* x86-64 saves registers and pointers in 8 bytes where a DPU takes 4, so that a frame is at most
 * twice as large, and instrumented code keeps more; what a function needs below its own check is
 * beyond that. */
#define STACK_FACTOR 2u
#define TRACED_STACK_FACTOR 4u
#define STACK_SLACK 256u
#define HOST_STACK (384u * 1024u) /* of a tasklet: services run on it too */
#define STAGGER 320u /* so that the tops of the stacks share no set of the host's caches */

__thread struct emu_run *emu_current __attribute__((tls_model("initial-exec"))) = NULL;

bool emu_make_stacks(struct emu_worker *worker) {
    if (worker->stacks != NULL) return true;
    worker->stacks_bytes = EMU_MOST_TASKLETS * (size_t)HOST_STACK;
    worker->stacks = emu_map_stacks(worker->stacks_bytes);
    if (worker->stacks == NULL) return false;
    for (uint32_t i = 0; i < EMU_MOST_TASKLETS; ++i) {
        struct emu_tasklet *tasklet = &worker->run.tasklets[i];
        tasklet->stack_bottom = worker->stacks + i * (size_t)HOST_STACK;
        tasklet->stack_top = tasklet->stack_bottom + HOST_STACK - i * STAGGER;
        if (mprotect(tasklet->stack_bottom, EMU_PAGE, PROT_NONE) != 0) return false;
    }
    return true;
}

/* %gs is where programs find MRAM. */
static void set_window(const uint8_t *window) {
    const unsigned long instruction_allowed = 2; /* HWCAP2_FSGSBASE */
    if (getauxval(AT_HWCAP2) & instruction_allowed)
        __asm__ volatile("wrgsbase %0" : : "r"(window));
    else
        syscall(SYS_arch_prctl, ARCH_SET_GS, window);
}

static void swap_in(struct emu_image *image, struct emu_dpu *dpu) {
    pthread_mutex_lock(&dpu->live_lock);
    emu_open_wram(image, dpu->program->machine, dpu->wram_used);
    emu_use_wram(dpu, image->open);
    memcpy(image->wram, dpu->wram, dpu->wram_used);
    dpu->live = image->wram;
    pthread_mutex_unlock(&dpu->live_lock);
}

static void swap_out(struct emu_image *image, struct emu_dpu *dpu) {
    pthread_mutex_lock(&dpu->live_lock);
    emu_use_wram(dpu, image->open);
    memcpy(dpu->wram, image->wram, dpu->wram_used);
    dpu->live = NULL;
    pthread_mutex_unlock(&dpu->live_lock);
}

static void begin(struct emu_run *run, struct emu_dpu *dpu) {
    struct emu_image *image = dpu->image;
    const struct emu_info *info = &dpu->program->info;
    const uint32_t factor = info->build & EMU_TRACED ? TRACED_STACK_FACTOR : STACK_FACTOR;
    run->dpu = dpu;
    run->program = dpu->program;
    run->image = image;
    run->machine = dpu->program->machine;
    run->settings = *emu_settings();
    run->count = run->alive = info->nr_tasklets;
    run->current = 0;
    /* Each DPU draws its own interleaving. */
    run->random = run->settings.seed * 0x9e3779b97f4a7c15u + dpu->index;
    run->time = run->turns = run->dma_free = run->dma_busy = 0;
    run->dma_smallest = run->machine->clock_hz * run->machine->dma_min_bytes /
                        run->machine->random_read_bandwidth;
    run->counters = (struct emu_counters){0};
    run->heap_end = image->wram + dpu->program->static_bytes;
    run->fault = EMU_FAULT_NONE;
    atomic_store(&run->overdue, 0);
    run->waits = 0;
    run->races = NULL;
    memset(run->owner, (int)EMU_NOBODY, sizeof run->owner);
    memset(run->meetings, 0, sizeof run->meetings);
    memset(image->atomic, 0, (size_t)(image->atomic_end - image->atomic));
    image->environment->instructions = 0;
    for (uint32_t i = 0; i < run->count; ++i) {
        struct emu_tasklet *tasklet = &run->tasklets[i];
        tasklet->stack_limit =
            tasklet->stack_top - (size_t)factor * info->stack_bytes[i] - STACK_SLACK;
        if (!(info->build & EMU_STACKS)) tasklet->stack_limit = tasklet->stack_bottom;
        tasklet->ended = false;
        tasklet->waiting = EMU_NOTHING;
        tasklet->transfers = false;
        tasklet->object = tasklet->pc = NULL;
        tasklet->instructions = 0;
    }
}

static void finish(struct emu_run *run, struct emu_dpu *dpu) {
    const uint32_t heap = (uint32_t)(run->heap_end - run->image->wram);
    run->counters.heap_bytes = heap - dpu->program->static_bytes;
    run->counters.cycles = (uint64_t)run->time;
    run->counters.dma_cycles = (uint64_t)run->dma_busy;
    swap_out(run->image, dpu);
    dpu->counters = run->counters;
    dpu->fault = run->fault;
    if (run->fault != EMU_FAULT_NONE) dpu->fault_message = strdup(run->message);
}

void emu_run_dpu(struct emu_worker *worker, struct emu_dpu *dpu) {
    struct emu_run *run = &worker->run;
    /* Floating point as C has it, whatever the calling thread prefers. */
    const unsigned control = _mm_getcsr();
    _mm_setcsr(0x1f80);
    free(dpu->fault_message);
    dpu->fault_message = NULL;
    dpu->log_bytes = 0;
    dpu->log_truncated = false;
    begin(run, dpu);
    swap_in(run->image, dpu);
    set_window(dpu->window);
    emu_current = run;
    emu_call_program(run->image->boot);
    run->image->environment->instructions = 0;
    if (run->program->info.build & EMU_TRACED) {
        worker->races = emu_make_races(worker->races, run->machine);
        run->races = worker->races;
        if (run->races != NULL) emu_begin_races(run);
    }
    emu_run_tasklets(run);
    emu_current = NULL;
    finish(run, dpu);
    _mm_setcsr(control);
    atomic_store(&dpu->state, dpu->fault != EMU_FAULT_NONE ? EMU_FAULTED : EMU_DONE);
}
