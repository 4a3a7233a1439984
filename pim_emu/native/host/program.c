/* Loading programs, and their symbols. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host.h"

static struct program *programs; /* that a DPU holds */

void host_drop_program(struct program *program) {
    if (program == NULL || --program->references > 0) return;
    struct program **link = &programs;
    while (*link != program) link = &(*link)->next;
    *link = program->next;
    emu_release_program(program->engine);
    free(program->shown.program_path);
    free(program);
}

static struct program *make_program(struct emu_program *engine, const struct emu_machine *machine,
                                    const char *path) {
    struct program *program = calloc(1, sizeof *program);
    if (program == NULL) return NULL;
    if (path != NULL && (program->shown.program_path = strdup(path)) == NULL) {
        free(program);
        return NULL;
    }
    program->shown.nr_threads_enabled = (uint8_t)emu_program_info(engine)->nr_tasklets;
    program->engine = engine;
    program->machine = machine;
    program->references = 1; /* the loading call's */
    pthread_mutex_lock(&host_lock);
    program->next = programs;
    programs = program;
    pthread_mutex_unlock(&host_lock);
    return program;
}

static dpu_error_t code_of(enum emu_load_status status) {
    switch (status) {
    case EMU_LOADED: return DPU_OK;
    case EMU_NOT_A_PROGRAM: return DPU_ERR_ELF_INVALID_FILE;
    case EMU_TOO_MANY_TASKLETS: return DPU_ERR_TOO_MANY_TASKLETS;
    case EMU_DOES_NOT_FIT: return DPU_ERR_INVALID_WRAM_ACCESS;
    case EMU_OUT_OF_MEMORY: return DPU_ERR_SYSTEM;
    }
    return DPU_ERR_INTERNAL;
}

static dpu_error_t load_rank(const struct scope *scope, struct rank *rank,
                             struct program *program) {
    for (uint32_t i = host_first(scope); i < host_end(scope, rank); ++i) {
        struct member *member = &rank->members[i];
        const enum emu_load_status status = emu_load(member->engine, program->engine);
        if (status != EMU_LOADED) return code_of(status);
        pthread_mutex_lock(&host_lock);
        ++program->references;
        host_drop_program(member->program);
        member->program = program;
        pthread_mutex_unlock(&host_lock);
    }
    return DPU_OK;
}

static dpu_error_t load_scope(const struct scope *scope, const void *elf, size_t bytes,
                              const char *path, struct dpu_program_t **shown) {
    struct emu_program *engine;
    const enum emu_load_status opened =
        emu_open_program(elf, bytes, path != NULL ? path : "(memory)", scope->machine, &engine);
    if (opened != EMU_LOADED) return code_of(opened);
    struct program *program = make_program(engine, scope->machine, path);
    if (program == NULL) {
        emu_release_program(engine);
        return DPU_ERR_SYSTEM;
    }
    dpu_error_t status = host_acquire(scope, HOST_STOP_AT_ERROR);
    if (status == DPU_OK) {
        for (uint32_t i = 0; i < scope->nr_ranks && status == DPU_OK; ++i)
            status = load_rank(scope, scope->ranks[i], program);
        host_release(scope);
    }
    if (status == DPU_OK && shown != NULL) *shown = &program->shown;
    pthread_mutex_lock(&host_lock);
    host_drop_program(program);
    pthread_mutex_unlock(&host_lock);
    return status;
}

static dpu_error_t load(struct dpu_set_t dpu_set, const void *elf, size_t bytes, const char *path,
                        struct dpu_program_t **program) {
    struct scope scope;
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    status = load_scope(&scope, elf, bytes, path, program);
    host_leave(&scope);
    return status;
}

/* The file's contents, for the caller to free; or NULL and an error. */
static void *read_file(const char *path, size_t *bytes, dpu_error_t *status) {
    struct stat about;
    *status = DPU_ERR_ELF_NO_SUCH_FILE;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &about) != 0 || !S_ISREG(about.st_mode)) {
        host_refuse(*status, "dpu_load: cannot read \"%s\": %s", path,
                    file == NULL ? strerror(errno) : "not a file");
        if (file != NULL) fclose(file);
        return NULL;
    }
    *bytes = (size_t)about.st_size;
    void *contents = malloc(*bytes + 1);
    *status = contents == NULL ? DPU_ERR_SYSTEM : DPU_OK;
    if (contents != NULL) *bytes = fread(contents, 1, *bytes, file);
    fclose(file);
    return contents;
}

dpu_error_t dpu_load(struct dpu_set_t dpu_set, const char *binary_path,
                     struct dpu_program_t **program) {
    if (binary_path == NULL)
        return host_refuse(DPU_ERR_ELF_NO_SUCH_FILE, "dpu_load: binary_path is NULL");
    size_t bytes = 0;
    dpu_error_t status;
    void *elf = read_file(binary_path, &bytes, &status);
    if (elf != NULL) status = load(dpu_set, elf, bytes, binary_path, program);
    free(elf);
    return status;
}

dpu_error_t dpu_load_from_memory(struct dpu_set_t dpu_set, uint8_t *buffer, size_t buffer_size,
                                 struct dpu_program_t **program) {
    if (buffer == NULL)
        return host_refuse(DPU_ERR_ELF_INVALID_FILE, "dpu_load_from_memory: buffer is NULL");
    return load(dpu_set, buffer, buffer_size, NULL, program);
}

dpu_error_t dpu_load_from_incbin(struct dpu_set_t dpu_set, struct dpu_incbin_t *incbin,
                                 struct dpu_program_t **program) {
    if (incbin == NULL || incbin->buffer == NULL)
        return host_refuse(DPU_ERR_ELF_INVALID_FILE, "dpu_load_from_incbin: incbin is NULL");
    return load(dpu_set, incbin->buffer, incbin->size, incbin->path, program);
}

static dpu_error_t find_symbol(const struct program *program, const char *name,
                               struct dpu_symbol_t *symbol) {
    struct emu_symbol found;
    if (name == NULL || !emu_find_symbol(program->engine, name, &found))
        return host_refuse(DPU_ERR_UNKNOWN_SYMBOL, "the program has no symbol \"%s\"",
                           name != NULL ? name : "(NULL)");
    static const uint32_t bases[] = {
        [EMU_IRAM] = HOST_IRAM_AT, [EMU_WRAM] = 0, [EMU_MRAM] = HOST_MRAM_AT};
    symbol->address = bases[found.memory] + found.offset;
    symbol->size = found.bytes;
    if (strcmp(name, DPU_MRAM_HEAP_POINTER_NAME) == 0)
        symbol->size = program->machine->mram_bytes - found.offset;
    return DPU_OK;
}

dpu_error_t dpu_get_symbol(struct dpu_program_t *program, const char *symbol_name,
                           struct dpu_symbol_t *symbol) {
    if (symbol == NULL) return host_refuse(DPU_ERR_INTERNAL, "dpu_get_symbol: symbol is NULL");
    dpu_error_t status = DPU_ERR_NO_PROGRAM_LOADED;
    pthread_mutex_lock(&host_lock);
    for (const struct program *known = programs; known != NULL; known = known->next)
        if (&known->shown == program) {
            status = find_symbol(known, symbol_name, symbol);
            break;
        }
    pthread_mutex_unlock(&host_lock);
    return status;
}

/* The program of all DPUs of the scope, under the lock. */
static dpu_error_t common_program(const struct scope *scope, struct program **program) {
    *program = scope->ranks[0]->members[host_first(scope)].program;
    for (uint32_t i = 0; i < scope->nr_ranks; ++i)
        for (uint32_t dpu = host_first(scope); dpu < host_end(scope, scope->ranks[i]); ++dpu)
            if (scope->ranks[i]->members[dpu].program != *program)
                return DPU_ERR_DIFFERENT_DPU_PROGRAMS;
    return *program != NULL ? DPU_OK : DPU_ERR_NO_PROGRAM_LOADED;
}

dpu_error_t host_symbol_of_set(const struct scope *scope, const char *name,
                               struct dpu_symbol_t *symbol) {
    struct program *program;
    pthread_mutex_lock(&host_lock);
    dpu_error_t status = common_program(scope, &program);
    if (status == DPU_OK) status = find_symbol(program, name, symbol);
    pthread_mutex_unlock(&host_lock);
    return status;
}

dpu_error_t dpu_get_common_program(struct dpu_set_t *dpu_set, struct dpu_program_t **program) {
    struct scope scope;
    if (dpu_set == NULL || program == NULL)
        return host_refuse(DPU_ERR_INTERNAL, "dpu_get_common_program: an argument is NULL");
    struct program *found;
    dpu_error_t status = host_enter(*dpu_set, &scope);
    if (status != DPU_OK) return status;
    pthread_mutex_lock(&host_lock);
    status = common_program(&scope, &found);
    if (status == DPU_OK) *program = &found->shown;
    pthread_mutex_unlock(&host_lock);
    host_leave(&scope);
    return status;
}

struct dpu_program_t *dpu_get_program(struct dpu_t *dpu) {
    uint32_t index;
    pthread_mutex_lock(&host_lock);
    const struct rank *rank = host_dpu_of(dpu, &index);
    struct program *program = rank != NULL ? rank->members[index].program : NULL;
    pthread_mutex_unlock(&host_lock);
    return program != NULL ? &program->shown : NULL;
}
