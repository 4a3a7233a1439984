/* fuzz_elf FIRST COUNT PROGRAM: load a DPU program with damage in its headers and tables, once for
 * each seed from FIRST on. It must be refused with a code, or load; a damaged program is never run,
 * but its variables are asked for, and the set must be usable afterwards. */
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <dpu.h>

static uint64_t random_state, current_seed;
static uint8_t *original;
static size_t file_bytes;

/* Sanitizers end by a signal where they are told to: see test_fuzz.py. */
static void say_seed(int number) {
    fprintf(stderr, "fuzz_elf: signal %d, seed %llu\n", number,
            (unsigned long long)current_seed);
    _exit(3);
}

static uint32_t draw(uint32_t below) { /* splitmix64 */
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) % below);
}

/* A place in the file that says how the rest is to be read. */
static size_t choose_place(void) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)original;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(original + header->e_shoff);
    const uint32_t kind = draw(10);
    if (kind == 0) return draw(sizeof *header);
    if (kind == 1) return header->e_phoff + draw(header->e_phnum * (uint32_t)sizeof(Elf64_Phdr));
    if (kind <= 3) return header->e_shoff + draw(header->e_shnum * (uint32_t)sizeof *sections);
    if (kind == 9) return draw((uint32_t)file_bytes);
    for (int tries = 0; tries < 100; ++tries) { /* symbols, relocations, names, .emu.info */
        const Elf64_Shdr *section = &sections[draw(header->e_shnum)];
        const bool table = section->sh_type == SHT_SYMTAB || section->sh_type == SHT_RELA ||
                           section->sh_type == SHT_STRTAB;
        const bool info = section->sh_type == SHT_PROGBITS && section->sh_size > 100 &&
                          section->sh_size < 200;
        if ((table || info) && section->sh_size > 0)
            return section->sh_offset + draw((uint32_t)section->sh_size);
    }
    return draw((uint32_t)file_bytes);
}

static void set_field(uint8_t *file, size_t bytes) {
    const uint64_t values[] = {0, 1, 2, 8, 24, 0x7f, 0xff, 0xffff, 0x1000, 0x08000000, 0x0c000000,
                               0x10000000, 0x10001000, 0x10010000, 0x7fffffff, 0x80000000,
                               0xfffffff8, 0xffffffff, 0x100000000, UINT64_MAX, UINT64_MAX - 7,
                               bytes, bytes - 1, bytes + 1};
    const size_t width = 1u << draw(4), at = choose_place() / width * width;
    if (at + width > bytes) return;
    uint64_t value = values[draw(sizeof values / sizeof *values)];
    if (draw(3) == 0) { /* near what it is */
        static const int64_t steps[] = {1, -1, 8, -8, 4096, -4096, 65536, -65536};
        uint64_t old = 0;
        memcpy(&old, file + at, width);
        value = old + (uint64_t)steps[draw(8)];
    }
    memcpy(file + at, &value, width);
}

static uint8_t *damage(size_t *bytes) {
    *bytes = draw(10) == 0 ? draw((uint32_t)file_bytes) : file_bytes;
    uint8_t *file = malloc(*bytes + 1); /* exactly, but for nothing at all */
    memcpy(file, original, *bytes);
    for (uint32_t left = 1 + draw(4); left > 0; --left) {
        const size_t at = choose_place();
        if (draw(2))
            set_field(file, *bytes);
        else if (at < *bytes)
            file[at] ^= (uint8_t)(1u << draw(8));
    }
    uint8_t *exact = realloc(file, *bytes > 0 ? *bytes : 1);
    return exact;
}

/* Whatever the damaged program says of its variables, transfers stay within the memories. */
static void use_symbols(struct dpu_set_t set, struct dpu_program_t *program) {
    static const char *const names[] = {"mode", "words", "runs", "buffer", "main", "nosuch",
                                        DPU_MRAM_HEAP_POINTER_NAME};
    uint8_t data[64] = {0};
    struct dpu_set_t dpu;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        struct dpu_symbol_t symbol;
        if (dpu_get_symbol(program, names[i], &symbol) != DPU_OK) continue;
        const uint32_t ends[] = {0, symbol.size - 64, 0xffffffc0u};
        for (size_t k = 0; k < sizeof ends / sizeof *ends; ++k) {
            dpu_copy_to(set, names[i], ends[k], data, sizeof data);
            DPU_FOREACH (set, dpu) dpu_copy_from(dpu, names[i], ends[k], data, sizeof data);
        }
    }
}

static void run_seed(struct dpu_set_t set, uint64_t seed, uint64_t counts[2]) {
    struct dpu_program_t *program;
    size_t bytes;
    random_state = current_seed = seed;
    alarm(20);
    uint8_t *file = damage(&bytes);
    const dpu_error_t status = dpu_load_from_memory(set, file, bytes, &program);
    switch (status) {
    case DPU_OK:
        use_symbols(set, program);
        /* fall through */
    case DPU_ERR_ELF_INVALID_FILE:
    case DPU_ERR_TOO_MANY_TASKLETS:
    case DPU_ERR_INVALID_WRAM_ACCESS:
    case DPU_ERR_INVALID_MRAM_ACCESS:
    case DPU_ERR_SYSTEM:
        ++counts[status != DPU_OK];
        break;
    default:
        fprintf(stderr, "fuzz_elf: dpu_load_from_memory returned %d\n", (int)status);
        abort();
    }
    free(file);
}

int main(int nr_arguments, char **arguments) {
    if (nr_arguments != 4) {
        fprintf(stderr, "usage: fuzz_elf FIRST COUNT PROGRAM\n");
        return 2;
    }
    const uint64_t first = strtoull(arguments[1], NULL, 10);
    const uint64_t count = strtoull(arguments[2], NULL, 10);
    FILE *stream = fopen(arguments[3], "rb");
    if (stream == NULL) return 2;
    fseek(stream, 0, SEEK_END);
    file_bytes = (size_t)ftell(stream);
    rewind(stream);
    original = malloc(file_bytes);
    if (fread(original, 1, file_bytes, stream) != file_bytes) return 2;
    fclose(stream);
    signal(SIGABRT, say_seed);
    signal(SIGALRM, say_seed);
    struct dpu_set_t set;
    uint64_t counts[2] = {0, 0};
    DPU_ASSERT(dpu_alloc(3, NULL, &set));
    for (uint64_t seed = first; seed < first + count; ++seed) {
        run_seed(set, seed, counts);
        if (seed % 64 != 0) continue;
        DPU_ASSERT(dpu_load_from_memory(set, original, file_bytes, NULL));
        DPU_ASSERT(dpu_launch(set, DPU_SYNCHRONOUS));
    }
    DPU_ASSERT(dpu_free(set));
    free(original);
    printf("%llu loaded, %llu refused\n", (unsigned long long)counts[0],
           (unsigned long long)counts[1]);
    return 0;
}
