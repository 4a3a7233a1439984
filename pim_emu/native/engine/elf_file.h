/* Reading an ELF file that lies in memory, with every offset checked once. */
#ifndef EMU_ELF_FILE_H
#define EMU_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether it is a complete x86-64 executable whose tables and sections lie within the file. */
bool emu_elf_valid(const uint8_t *elf, size_t bytes);

static inline const Elf64_Ehdr *emu_elf_header(const uint8_t *elf) {
    return (const Elf64_Ehdr *)elf;
}

static inline const Elf64_Shdr *emu_elf_sections(const uint8_t *elf) {
    return (const Elf64_Shdr *)(elf + emu_elf_header(elf)->e_shoff);
}

static inline const Elf64_Phdr *emu_elf_segments(const uint8_t *elf) {
    return (const Elf64_Phdr *)(elf + emu_elf_header(elf)->e_phoff);
}

/* The section of that name, or NULL. */
const Elf64_Shdr *emu_elf_section(const uint8_t *elf, const char *name);

/* The symbols, their number and names; 0 where there are none. */
size_t emu_elf_symbols(const uint8_t *elf, const Elf64_Sym **symbols, const char **names);

#endif
