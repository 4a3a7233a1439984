/* Programs: what an ELF file made by the emulator's compiler says, and whether it can be run. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "elf_file.h"
#include "internal.h"

static bool required(const struct emu_program *program, const char *name, uint32_t *address) {
    uint32_t bytes;
    return emu_symbol_address(program, name, address, &bytes);
}

/* The segments outside MRAM span what a worker maps. */
static bool find_extent(struct emu_program *program) {
    const Elf64_Ehdr *header = emu_elf_header(program->elf);
    const Elf64_Phdr *segments = emu_elf_segments(program->elf);
    uint32_t start = UINT32_MAX, end = 0;
    for (uint32_t i = 0; i < header->e_phnum; ++i) {
        if (segments[i].p_type != PT_LOAD || segments[i].p_memsz == 0) continue;
        const uint32_t low = (uint32_t)segments[i].p_vaddr;
        const uint32_t high = low + (uint32_t)segments[i].p_memsz;
        if (low >= EMU_MRAM_BASE && high <= EMU_MRAM_BASE + program->machine->mram_bytes) continue;
        if (low < EMU_MRAM_BASE + program->machine->mram_bytes) return false;
        if (low < start) start = low;
        if (high > end) end = high;
    }
    program->image_start = start;
    program->image_end = end;
    return start < end && start % EMU_PAGE == 0;
}

static bool read_info(struct emu_program *program) {
    const Elf64_Shdr *info = emu_elf_section(program->elf, ".emu.info");
    uint32_t wram_end, mram_end;
    if (info == NULL || info->sh_type == SHT_NOBITS || info->sh_size < sizeof program->info)
        return false;
    memcpy(&program->info, program->elf + info->sh_offset, sizeof program->info);
    if (program->info.magic != EMU_MAGIC || program->info.abi != EMU_ABI) return false;
    if (!required(program, "__emu_wram_start", &program->wram_start) ||
        !required(program, "__emu_wram_end", &wram_end) ||
        !required(program, "__sys_used_mram_end", &mram_end))
        return false;
    program->static_bytes = (wram_end - program->wram_start + 7u) & ~7u;
    program->mram_used = mram_end - EMU_MRAM_BASE;
    return program->wram_start % EMU_PAGE == 0 && program->wram_start >= program->image_start &&
           program->wram_start <= wram_end && wram_end <= program->image_end &&
           program->image_end <= program->wram_start + program->static_bytes &&
           mram_end >= EMU_MRAM_BASE;
}

static enum emu_load_status check_limits(struct emu_program *program) {
    const struct emu_machine *machine = program->machine;
    const uint32_t tasklets = program->info.nr_tasklets;
    if (tasklets < 1 || tasklets > machine->max_tasklets || tasklets > EMU_MOST_TASKLETS) {
        emu_complain("too many tasklets: %s has NR_TASKLETS %u, machine %s has 1 to %u",
                     program->name, tasklets, machine->name, machine->max_tasklets);
        return EMU_TOO_MANY_TASKLETS;
    }
    uint64_t stacks = 0;
    for (uint32_t i = 0; i < tasklets; ++i) stacks += program->info.stack_bytes[i];
    if (program->static_bytes + stacks > machine->wram_bytes) {
        emu_complain("WRAM overflow: %s needs %u B of variables and %llu B of stacks, machine %s "
                     "has %u B",
                     program->name, program->static_bytes, (unsigned long long)stacks,
                     machine->name, machine->wram_bytes);
        return EMU_DOES_NOT_FIT;
    }
    program->stack_bytes = (uint32_t)stacks;
    if (program->mram_used > machine->mram_bytes) {
        emu_complain("MRAM overflow: %s needs %u B of variables, machine %s has %u B",
                     program->name, program->mram_used, machine->name, machine->mram_bytes);
        return EMU_DOES_NOT_FIT;
    }
    return EMU_LOADED;
}

enum emu_load_status emu_open_program(const void *elf, size_t bytes, const char *name,
                                      const struct emu_machine *machine,
                                      struct emu_program **opened) {
    struct emu_program *program = calloc(1, sizeof *program);
    if (program == NULL) return EMU_OUT_OF_MEMORY;
    atomic_init(&program->references, 1);
    pthread_mutex_init(&program->lock, NULL);
    program->machine = machine;
    program->name = strdup(name);
    program->elf = malloc(bytes ? bytes : 1);
    program->image_count = emu_settings()->workers;
    program->images = calloc(program->image_count, sizeof(struct emu_image *));
    enum emu_load_status status = EMU_OUT_OF_MEMORY;
    if (program->name != NULL && program->elf != NULL && program->images != NULL) {
        memcpy(program->elf, elf, bytes);
        program->elf_bytes = bytes;
        if (!emu_elf_valid(program->elf, bytes) || !find_extent(program) || !read_info(program)) {
            emu_complain("%s is not a DPU program made by dpu-upmem-dpurte-clang", name);
            status = EMU_NOT_A_PROGRAM;
        } else {
            status = check_limits(program);
        }
    }
    if (status == EMU_LOADED)
        *opened = program;
    else
        emu_release_program(program);
    return status;
}

void emu_retain_program(struct emu_program *program) {
    atomic_fetch_add(&program->references, 1);
}

void emu_release_program(struct emu_program *program) {
    if (atomic_fetch_sub(&program->references, 1) != 1) return;
    for (uint32_t i = 0; program->images != NULL && i < program->image_count; ++i)
        if (program->images[i] != NULL) emu_free_image(program->images[i]);
    free(program->images);
    emu_free_warnings(program);
    emu_free_lines(program->lines);
    free(program->elf);
    free(program->name);
    pthread_mutex_destroy(&program->lock);
    free(program);
}

const struct emu_info *emu_program_info(const struct emu_program *program) {
    return &program->info;
}
