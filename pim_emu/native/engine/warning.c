/* Warnings of a program: each kind once for a source line, however many instructions the line has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct emu_warning {
    struct emu_warning *next;
    uint32_t address;       /* in the program, as linked */
    const char *place;
    _Atomic(uint32_t) told; /* kinds, a bit each */
};

static struct emu_warning *find(const struct emu_program *program, uint32_t address) {
    struct emu_warning *warning = atomic_load(&program->warnings);
    while (warning != NULL && warning->address != address) warning = warning->next;
    return warning;
}

/* The kinds that any instruction of the place has been told of. */
static uint32_t told_at(const struct emu_program *program, const char *place) {
    uint32_t told = 0;
    const struct emu_warning *warning = atomic_load(&program->warnings);
    for (; warning != NULL; warning = warning->next)
        if (strcmp(warning->place, place) == 0) told |= atomic_load(&warning->told);
    return told;
}

/* The list only grows while the program is there, so that readers need no lock. */
static bool is_news(struct emu_program *program, uint32_t address, uint32_t kind,
                    const char *place) {
    pthread_mutex_lock(&program->lock);
    const bool news = !(told_at(program, place) & kind);
    struct emu_warning *warning = find(program, address);
    if (warning == NULL && (warning = malloc(sizeof *warning)) != NULL) {
        warning->next = atomic_load(&program->warnings);
        warning->address = address;
        warning->place = place;
        atomic_init(&warning->told, 0);
        atomic_store(&program->warnings, warning);
    }
    if (warning != NULL) atomic_fetch_or(&warning->told, kind);
    pthread_mutex_unlock(&program->lock);
    return news;
}

void emu_tell_odd(struct emu_run *run, enum emu_fault_kind fault, uint32_t kind, const char *text,
                  const void *pc) {
    if (run->settings.strict_dma)
        emu_fail(run, fault, pc, "%s (PIM_EMU_DMA=hardware does the same)", text);
    if (run->settings.quiet) return;
    const uint32_t address = (uint32_t)((uintptr_t)pc - (uintptr_t)run->image->delta);
    const struct emu_warning *warning = find(run->program, address);
    if (warning != NULL && atomic_load(&warning->told) & kind) return;
    const char *place = emu_place(run, pc);
    if (is_news(run->program, address, kind, place))
        fprintf(stderr,
                "pim_emu: warning: %s: DPU %u, tasklet %u, %s: %s, and so does this run "
                "(PIM_EMU_DMA=strict makes it a fault)\n",
                emu_fault_name(fault), run->dpu->index, run->current, place, text);
}

void emu_free_warnings(struct emu_program *program) {
    for (struct emu_warning *warning = atomic_load(&program->warnings); warning != NULL;) {
        struct emu_warning *next = warning->next;
        free(warning);
        warning = next;
    }
}
