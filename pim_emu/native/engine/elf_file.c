#include "elf_file.h"

#include <string.h>

static bool within(uint64_t offset, uint64_t bytes, size_t file) {
    return offset <= file && bytes <= file - offset;
}

/* A string table ends with NUL, so that every name in it does. */
static bool table_ends(const uint8_t *elf, const Elf64_Shdr *table) {
    return table->sh_type == SHT_STRTAB && table->sh_size > 0 &&
           elf[table->sh_offset + table->sh_size - 1] == '\0';
}

static bool section_valid(const uint8_t *elf, const Elf64_Shdr *section) {
    const Elf64_Ehdr *header = emu_elf_header(elf);
    const Elf64_Shdr *sections = emu_elf_sections(elf);
    if (section->sh_type == SHT_SYMTAB)
        return section->sh_offset % 8 == 0 && section->sh_entsize == sizeof(Elf64_Sym) &&
               section->sh_link < header->e_shnum && table_ends(elf, &sections[section->sh_link]);
    if (section->sh_type == SHT_RELA)
        return section->sh_offset % 8 == 0 && section->sh_entsize == sizeof(Elf64_Rela) &&
               section->sh_info < header->e_shnum && section->sh_link < header->e_shnum;
    return true;
}

static bool names_valid(const uint8_t *elf) {
    const Elf64_Ehdr *header = emu_elf_header(elf);
    const Elf64_Shdr *sections = emu_elf_sections(elf);
    const uint64_t name_bytes = sections[header->e_shstrndx].sh_size;
    if (!table_ends(elf, &sections[header->e_shstrndx])) return false;
    for (uint32_t i = 0; i < header->e_shnum; ++i)
        if (sections[i].sh_name >= name_bytes) return false;
    const Elf64_Sym *symbols;
    const char *names;
    const size_t count = emu_elf_symbols(elf, &symbols, &names);
    const Elf64_Shdr *table = NULL;
    for (uint32_t i = 0; i < header->e_shnum; ++i)
        if (sections[i].sh_type == SHT_SYMTAB && table == NULL) table = &sections[i];
    for (size_t i = 0; i < count; ++i)
        if (symbols[i].st_name >= sections[table->sh_link].sh_size) return false;
    return true;
}

bool emu_elf_valid(const uint8_t *elf, size_t bytes) {
    const Elf64_Ehdr *header = emu_elf_header(elf);
    if (bytes < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_type != ET_EXEC || header->e_machine != EM_X86_64 ||
        header->e_shentsize != sizeof(Elf64_Shdr) || header->e_phentsize != sizeof(Elf64_Phdr) ||
        header->e_shoff % 8 != 0 || header->e_phoff % 8 != 0 ||
        header->e_shstrndx >= header->e_shnum ||
        !within(header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr), bytes) ||
        !within(header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr), bytes))
        return false;
    const Elf64_Shdr *sections = emu_elf_sections(elf);
    for (uint32_t i = 0; i < header->e_shnum; ++i)
        if (sections[i].sh_type != SHT_NOBITS && sections[i].sh_type != SHT_NULL &&
            !within(sections[i].sh_offset, sections[i].sh_size, bytes))
            return false;
    for (uint32_t i = 0; i < header->e_shnum; ++i)
        if (!section_valid(elf, &sections[i])) return false;
    const Elf64_Phdr *segments = emu_elf_segments(elf);
    for (uint32_t i = 0; i < header->e_phnum; ++i)
        if (segments[i].p_type == PT_LOAD &&
            (!within(segments[i].p_offset, segments[i].p_filesz, bytes) ||
             segments[i].p_filesz > segments[i].p_memsz || segments[i].p_memsz > UINT32_MAX ||
             segments[i].p_vaddr > UINT32_MAX - segments[i].p_memsz))
            return false;
    return names_valid(elf);
}

const Elf64_Shdr *emu_elf_section(const uint8_t *elf, const char *name) {
    const Elf64_Ehdr *header = emu_elf_header(elf);
    const Elf64_Shdr *sections = emu_elf_sections(elf);
    const char *names = (const char *)elf + sections[header->e_shstrndx].sh_offset;
    for (uint32_t i = 0; i < header->e_shnum; ++i)
        if (strcmp(names + sections[i].sh_name, name) == 0) return &sections[i];
    return NULL;
}

size_t emu_elf_symbols(const uint8_t *elf, const Elf64_Sym **symbols, const char **names) {
    const Elf64_Ehdr *header = emu_elf_header(elf);
    const Elf64_Shdr *sections = emu_elf_sections(elf);
    for (uint32_t i = 0; i < header->e_shnum; ++i) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        *symbols = (const Elf64_Sym *)(elf + sections[i].sh_offset);
        *names = (const char *)elf + sections[sections[i].sh_link].sh_offset;
        return sections[i].sh_size / sizeof(Elf64_Sym);
    }
    return 0;
}
