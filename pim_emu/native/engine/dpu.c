/* Ranks and DPUs: their memories, the program they hold, their state. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "elf_file.h"
#include "internal.h"

struct emu_rank {
    const struct emu_machine *machine;
    uint8_t *windows;
    uint8_t *wram; /* of all DPUs, resident once it is used */
    size_t wram_bytes;
    struct emu_dpu dpus[];
};

static uint8_t *map_wram(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

struct emu_rank *emu_create_rank(const struct emu_machine *machine, uint32_t index) {
    const uint32_t count = machine->dpus_per_rank;
    struct emu_rank *rank = calloc(1, sizeof *rank + count * sizeof rank->dpus[0]);
    if (rank == NULL) return NULL;
    rank->machine = machine;
    rank->windows = emu_map_windows(count);
    rank->wram_bytes = (size_t)count * machine->wram_bytes;
    rank->wram = map_wram(rank->wram_bytes);
    for (uint32_t i = 0; i < count; ++i) {
        struct emu_dpu *dpu = &rank->dpus[i];
        dpu->rank = rank;
        dpu->index = index * count + i;
        dpu->worker = dpu->index % emu_settings()->workers;
        pthread_mutex_init(&dpu->live_lock, NULL);
    }
    bool good = rank->windows != NULL && rank->wram != NULL;
    for (uint32_t i = 0; good && i < count; ++i) {
        struct emu_dpu *dpu = &rank->dpus[i];
        dpu->window = rank->windows + i * EMU_WINDOW_STEP;
        dpu->mram = dpu->window + EMU_MRAM_BASE;
        dpu->wram = rank->wram + (size_t)i * machine->wram_bytes;
        good = emu_map_mram(dpu->mram, machine->mram_bytes);
    }
    if (good) return rank;
    emu_destroy_rank(rank);
    return NULL;
}

static void forget_launch(struct emu_dpu *dpu) {
    free(dpu->fault_message);
    dpu->fault_message = NULL;
    dpu->fault = EMU_FAULT_NONE;
    dpu->log_bytes = 0;
    dpu->log_truncated = false;
    dpu->counters = (struct emu_counters){0};
}

void emu_destroy_rank(struct emu_rank *rank) {
    for (uint32_t i = 0; i < rank->machine->dpus_per_rank; ++i) {
        struct emu_dpu *dpu = &rank->dpus[i];
        if (dpu->program != NULL) emu_release_program(dpu->program);
        forget_launch(dpu);
        free(dpu->log);
        pthread_mutex_destroy(&dpu->live_lock);
    }
    if (rank->windows != NULL) emu_unmap_windows(rank->windows, rank->machine->dpus_per_rank);
    if (rank->wram != NULL) munmap(rank->wram, rank->wram_bytes);
    free(rank);
}

struct emu_dpu *emu_rank_dpu(struct emu_rank *rank, uint32_t index) {
    return &rank->dpus[index];
}

/* Initialised MRAM variables; what is not initialised keeps its contents. */
static void copy_mram(struct emu_dpu *dpu, const struct emu_program *program) {
    const Elf64_Phdr *segments = emu_elf_segments(program->elf);
    for (uint32_t i = 0; i < emu_elf_header(program->elf)->e_phnum; ++i)
        if (segments[i].p_type == PT_LOAD && segments[i].p_filesz > 0 &&
            segments[i].p_vaddr < program->image_start)
            memcpy(dpu->window + segments[i].p_vaddr, program->elf + segments[i].p_offset,
                   segments[i].p_filesz);
}

enum emu_load_status emu_load(struct emu_dpu *dpu, struct emu_program *program) {
    struct emu_image *image = emu_image_of(program, dpu->worker);
    if (image == NULL) return EMU_OUT_OF_MEMORY;
    emu_retain_program(program);
    if (dpu->program != NULL) emu_release_program(dpu->program);
    dpu->program = program;
    dpu->image = image;
    forget_launch(dpu);
    memcpy(dpu->wram, image->initial_wram, program->static_bytes);
    if (dpu->wram_used > program->static_bytes)
        emu_fill_pattern(dpu->wram + program->static_bytes,
                         dpu->wram_used - program->static_bytes);
    dpu->wram_used = program->static_bytes;
    copy_mram(dpu, program);
    emu_relocate_mram(program, image, dpu->window);
    atomic_store(&dpu->state, EMU_IDLE);
    return EMU_LOADED;
}

struct emu_program *emu_dpu_program(const struct emu_dpu *dpu) {
    return dpu->program;
}

uint8_t *emu_mram(struct emu_dpu *dpu) {
    return dpu->mram;
}

void emu_write_mram(struct emu_dpu *dpu, uint32_t offset, const void *from, size_t bytes) {
    emu_make_whole(dpu->mram, offset, bytes, &dpu->whole);
    memcpy(dpu->mram + offset, from, bytes);
}

void emu_use_wram(struct emu_dpu *dpu, size_t bytes) {
    const uint32_t most = dpu->rank->machine->wram_bytes;
    const uint32_t used = bytes < most ? (uint32_t)bytes : most;
    if (used <= dpu->wram_used) return;
    if (dpu->live != NULL) emu_open_wram(dpu->image, dpu->rank->machine, used);
    emu_fill_pattern(dpu->wram + dpu->wram_used, used - dpu->wram_used);
    dpu->wram_used = used;
}

void emu_write_wram(struct emu_dpu *dpu, uint32_t offset, const void *from, size_t bytes) {
    pthread_mutex_lock(&dpu->live_lock);
    emu_use_wram(dpu, offset + bytes);
    memcpy((dpu->live != NULL ? dpu->live : dpu->wram) + offset, from, bytes);
    pthread_mutex_unlock(&dpu->live_lock);
}

void emu_read_wram(struct emu_dpu *dpu, uint32_t offset, void *to, size_t bytes) {
    pthread_mutex_lock(&dpu->live_lock);
    emu_use_wram(dpu, offset + bytes);
    memcpy(to, (dpu->live != NULL ? dpu->live : dpu->wram) + offset, bytes);
    pthread_mutex_unlock(&dpu->live_lock);
}

enum emu_state emu_dpu_state(const struct emu_dpu *dpu) {
    return atomic_load(&dpu->state);
}

const struct emu_counters *emu_dpu_counters(const struct emu_dpu *dpu) {
    return &dpu->counters;
}

enum emu_fault_kind emu_dpu_fault(const struct emu_dpu *dpu, const char **message) {
    *message = dpu->fault_message != NULL ? dpu->fault_message : "";
    return dpu->fault;
}

const char *emu_dpu_log(const struct emu_dpu *dpu, size_t *bytes, bool *truncated) {
    *bytes = dpu->log_bytes;
    *truncated = dpu->log_truncated;
    return dpu->log_bytes > 0 ? dpu->log : "";
}
