/* Symbols of a program by name and by address. */
#include <string.h>

#include "elf_file.h"
#include "internal.h"

/* A global symbol before a local one: names of the runtime's own functions hide nothing. */
bool emu_symbol_address(const struct emu_program *program, const char *name, uint32_t *address,
                        uint32_t *bytes) {
    const Elf64_Sym *symbols, *found = NULL;
    const char *names;
    const size_t count = emu_elf_symbols(program->elf, &symbols, &names);
    for (size_t i = 0; i < count; ++i) {
        const int type = ELF64_ST_TYPE(symbols[i].st_info);
        if (symbols[i].st_shndx == SHN_UNDEF || type == STT_SECTION || type == STT_FILE ||
            strcmp(names + symbols[i].st_name, name) != 0)
            continue;
        const bool global = ELF64_ST_BIND(symbols[i].st_info) != STB_LOCAL;
        if (found == NULL || global) found = &symbols[i];
        if (global) break;
    }
    if (found == NULL) return false;
    *address = (uint32_t)found->st_value;
    *bytes = (uint32_t)found->st_size;
    return true;
}

const char *emu_symbol_at(const struct emu_program *program, uint32_t address) {
    const Elf64_Sym *symbols;
    const char *names;
    const size_t count = emu_elf_symbols(program->elf, &symbols, &names);
    for (size_t i = 0; i < count; ++i) {
        const int type = ELF64_ST_TYPE(symbols[i].st_info);
        if ((type == STT_OBJECT || type == STT_FUNC) && address >= symbols[i].st_value &&
            address - symbols[i].st_value < symbols[i].st_size)
            return names + symbols[i].st_name;
    }
    return NULL;
}

bool emu_find_symbol(const struct emu_program *program, const char *name,
                     struct emu_symbol *symbol) {
    uint32_t address, bytes;
    if (!emu_symbol_address(program, name, &address, &bytes)) return false;
    const uint32_t mram_end = EMU_MRAM_BASE + program->machine->mram_bytes;
    if (address >= EMU_MRAM_BASE && address <= mram_end) {
        /* The heap has no size of its own: it is what the variables leave. */
        const bool heap = strcmp(name, "__sys_used_mram_end") == 0;
        *symbol = (struct emu_symbol){EMU_MRAM, address - EMU_MRAM_BASE,
                                      heap ? mram_end - address : bytes};
        return true;
    }
    const uint32_t wram_end = program->wram_start + program->machine->wram_bytes;
    if (address >= program->wram_start && address < wram_end) {
        *symbol = (struct emu_symbol){EMU_WRAM, address - program->wram_start, bytes};
        return true;
    }
    if (address >= program->image_start && address < program->wram_start) {
        *symbol = (struct emu_symbol){EMU_IRAM, address - program->image_start, bytes};
        return true;
    }
    return false;
}
