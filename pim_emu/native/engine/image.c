/* Images: a program relocated to an address of its own for each worker, so that several DPUs can
 * run at a time in one process. All but MRAM moves; MRAM addresses are the same everywhere. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "elf_file.h"
#include "internal.h"

/* Guard pages keep what runs off an end from reaching a neighbour. */
#define GUARD (16u * EMU_PAGE)

/* What is relocated: link addresses from `start` to `end` lie at `base`. */
struct place {
    const struct emu_program *program;
    uint8_t *base;
    uint64_t start, end;
    ptrdiff_t delta; /* by which the image has moved */
};

static bool moves(const struct emu_program *program, uint64_t address) {
    return address >= program->image_start && address <= program->image_end;
}

/* The linker has resolved everything for the link address; only differences remain. False: the entry
 * is none that the driver lets through. */
static bool relocate(const struct place *place, const Elf64_Rela *entry, const Elf64_Sym *symbol) {
    if (entry->r_offset < place->start || entry->r_offset >= place->end) return true;
    const bool place_moves = moves(place->program, entry->r_offset);
    const bool target_moves =
        symbol->st_shndx != SHN_ABS && moves(place->program, symbol->st_value);
    size_t bytes = 4;
    ptrdiff_t change = 0;
    switch (ELF64_R_TYPE(entry->r_info)) {
    case R_X86_64_NONE:
        return true;
    case R_X86_64_64:
        bytes = 8;
        /* fall through */
    case R_X86_64_32:
    case R_X86_64_32S:
        if (target_moves) change = place->delta;
        break;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
        if (place_moves && !target_moves) change = -place->delta;
        break;
    default:
        return false;
    }
    if (place->end - entry->r_offset < bytes) return false;
    uint8_t *at = place->base + (entry->r_offset - place->start);
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    value += (uint64_t)change;
    memcpy(at, &value, bytes);
    return true;
}

static bool relocate_all(const struct place *place) {
    const uint8_t *elf = place->program->elf;
    const Elf64_Ehdr *header = emu_elf_header(elf);
    const Elf64_Shdr *sections = emu_elf_sections(elf);
    const Elf64_Sym *symbols;
    const char *names;
    const size_t count = emu_elf_symbols(elf, &symbols, &names);
    for (uint32_t i = 0; i < header->e_shnum; ++i) {
        if (sections[i].sh_type != SHT_RELA ||
            !(sections[sections[i].sh_info].sh_flags & SHF_ALLOC))
            continue;
        const Elf64_Rela *entries = (const Elf64_Rela *)(elf + sections[i].sh_offset);
        for (size_t k = 0; k < sections[i].sh_size / sizeof *entries; ++k) {
            const size_t index = ELF64_R_SYM(entries[k].r_info);
            if (index >= count || !relocate(place, &entries[k], &symbols[index]))
                return false;
        }
    }
    return true;
}

void emu_relocate_mram(const struct emu_program *program, const struct emu_image *image,
                       uint8_t *window) {
    const uint64_t end = EMU_MRAM_BASE + (uint64_t)program->machine->mram_bytes;
    const struct place place = {program, window + EMU_MRAM_BASE, EMU_MRAM_BASE, end, image->delta};
    relocate_all(&place); /* the image was made of the same entries */
}

static void copy_segments(const struct place *place) {
    const uint8_t *elf = place->program->elf;
    const Elf64_Phdr *segments = emu_elf_segments(elf);
    for (uint32_t i = 0; i < emu_elf_header(elf)->e_phnum; ++i)
        if (segments[i].p_type == PT_LOAD && moves(place->program, segments[i].p_vaddr))
            memcpy(place->base + (segments[i].p_vaddr - place->program->image_start),
                   elf + segments[i].p_offset, segments[i].p_filesz);
}

/* The address at which the image was linked, if it is free: debuggers then know where they are. */
static uint8_t *map_image(const struct emu_program *program, size_t bytes) {
    uint8_t *at = emu_map_at(program->image_start - GUARD, bytes);
    return at != NULL ? at : emu_map_low(bytes);
}

/* Where a symbol's object of so many bytes lies, or NULL. */
static uint8_t *resolve(const struct place *place, const char *name, uint32_t needed) {
    uint32_t address, bytes;
    if (!emu_symbol_address(place->program, name, &address, &bytes) ||
        !moves(place->program, address) || place->program->image_end - address < needed)
        return NULL;
    return place->base + (address - place->program->image_start);
}

/* The parts of the image by name. The heap's limit is for the program's allocators to know. */
static bool find_parts(const struct place *place, struct emu_image *image) {
    const struct emu_program *program = place->program;
    uint8_t *limit = resolve(place, "__emu_heap_limit", sizeof(uint8_t *));
    image->text = resolve(place, "__emu_text_start", 0);
    image->library = resolve(place, "__emu_text_library", 0);
    image->text_end = resolve(place, "__emu_text_end", 0);
    image->wram = resolve(place, "__emu_wram_start", 0);
    image->atomic = resolve(place, "__emu_atomic_start", 0);
    image->atomic_end = resolve(place, "__emu_atomic_end", 0);
    image->environment = (struct emu_environment *)resolve(
        place, "__emu_environment", sizeof *image->environment);
    image->entry = (void (*)(void))(uintptr_t)resolve(place, "__emu_entry", 0);
    image->boot = (void (*)(void))(uintptr_t)resolve(place, "__emu_boot", 0);
    if (limit == NULL || image->text == NULL || image->text_end == NULL || image->wram == NULL ||
        image->atomic == NULL || image->atomic_end == NULL || image->environment == NULL ||
        image->entry == NULL || image->boot == NULL || image->library < image->text ||
        image->text_end < image->library || image->text_end > image->wram ||
        (uintptr_t)image->environment % _Alignof(struct emu_environment) != 0 ||
        image->atomic_end < image->atomic)
        return false;
    const uint32_t gap = -program->static_bytes % EMU_HEAP_ALIGNMENT; /* before the heap */
    const uint32_t stacks = program->stack_bytes; /* their bytes here are free: they lie elsewhere */
    const uint8_t *end =
        image->wram + program->machine->wram_bytes - (stacks > gap ? stacks - gap : 0);
    memcpy(limit, &end, sizeof end);
    /* Only programs that ask for it have it. */
    uint8_t *clock = resolve(place, "CLOCKS_PER_SEC", sizeof(uint32_t));
    const uint32_t hertz = (uint32_t)program->machine->clock_hz;
    if (clock != NULL) memcpy(clock, &hertz, sizeof hertz);
    image->environment->services = &emu_all_services;
    image->environment->traced = (program->info.build & EMU_TRACED) != 0;
    return true;
}

static uint32_t whole_pages(uint32_t bytes) {
    return (bytes + EMU_PAGE - 1) / EMU_PAGE * EMU_PAGE;
}

bool emu_open_wram(struct emu_image *image, const struct emu_machine *machine, uint32_t bytes) {
    const uint32_t wanted = whole_pages(bytes);
    uint32_t open = atomic_load(&image->open);
    if (wanted <= open || wanted > whole_pages(machine->wram_bytes) ||
        mprotect(image->wram, wanted, PROT_READ | PROT_WRITE) != 0)
        return false;
    while (open < wanted && !atomic_compare_exchange_weak(&image->open, &open, wanted)) continue;
    return true;
}

static bool protect(const struct emu_image *image, const struct place *place) {
    uint8_t *text_end = image->text + whole_pages((uint32_t)(image->text_end - image->text));
    uint8_t *closed = image->wram + image->open;
    return mprotect(image->base, GUARD, PROT_NONE) == 0 &&
           mprotect(place->base, (size_t)(text_end - place->base), PROT_READ | PROT_EXEC) == 0 &&
           mprotect(closed, (size_t)(image->base + image->bytes - closed), PROT_NONE) == 0;
}

static struct emu_image *make_image(const struct emu_program *program) {
    struct emu_image *image = calloc(1, sizeof *image);
    if (image == NULL) return NULL;
    const uint32_t wram = whole_pages(program->machine->wram_bytes);
    const size_t span = program->wram_start - program->image_start + (size_t)wram;
    image->bytes = GUARD + span + GUARD;
    image->base = map_image(program, image->bytes);
    image->initial_wram = malloc(program->static_bytes + 1u);
    if (image->base == NULL)
        emu_complain("no %zu KiB below 2 GiB for %s: the host's heap has taken them. Load the "
                     "emulator earlier (in Python, import pim_emu first), set "
                     "PIM_EMU_WORKERS lower, or run a position-independent executable",
                     image->bytes >> 10, program->name);
    if (image->base == NULL || image->initial_wram == NULL) {
        emu_free_image(image);
        return NULL;
    }
    const struct place place = {
        program, image->base + GUARD, program->image_start, program->image_end,
        (ptrdiff_t)(image->base + GUARD) - (ptrdiff_t)program->image_start};
    image->delta = place.delta;
    copy_segments(&place);
    atomic_init(&image->open, whole_pages(program->static_bytes));
    const bool good = relocate_all(&place) && find_parts(&place, image);
    if (good)
        emu_fill_pattern(image->wram + program->static_bytes, wram - program->static_bytes);
    if (!good || !protect(image, &place)) {
        emu_complain("%s cannot be placed in memory: was it linked by dpu-upmem-dpurte-clang?",
                     program->name);
        emu_free_image(image);
        return NULL;
    }
    memcpy(image->initial_wram, image->wram, program->static_bytes);
    return image;
}

struct emu_image *emu_image_of(struct emu_program *program, uint32_t worker) {
    pthread_mutex_lock(&program->lock);
    struct emu_image *image = program->images[worker];
    if (image == NULL) image = program->images[worker] = make_image(program);
    pthread_mutex_unlock(&program->lock);
    return image;
}

void emu_free_image(struct emu_image *image) {
    if (image->base != NULL) munmap(image->base, image->bytes);
    free(image->initial_wram);
    free(image);
}
