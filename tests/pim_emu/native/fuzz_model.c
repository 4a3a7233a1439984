/* The model: which codes a call may return, and what DPUs then hold. */
#include <stdarg.h>
#include <string.h>

#include "fuzz.h"

const char *const variable_names[VARIABLES] = {"mode", "words", "runs", "buffer"};

uint32_t variable_bytes(enum variable variable, int program) {
    static const uint32_t bytes[][VARIABLES] = {{0}, {4, 64, 8, 4096}, {4, 16, 8, 512}};
    return bytes[program][variable];
}

uint32_t draw(struct fuzz *fuzz, uint32_t below) { /* splitmix64 */
    uint64_t z = fuzz->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) % below);
}

bool chance(struct fuzz *fuzz, uint32_t percent) { return draw(fuzz, 100) < percent; }

_Noreturn void fail(const struct fuzz *fuzz, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "fuzz: seed %llu, operation %u: ", (unsigned long long)fuzz->seed,
            fuzz->operation);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

/* --- Sets as arguments --- */

/* Sets that every function refuses. */
static void choose_bad(struct fuzz *fuzz, struct target *target, const struct set *set) {
    target->owner = NULL;
    target->errors = E(INVALID_DPU_SET);
    const uint32_t kind = draw(fuzz, set != NULL ? 8 : 3);
    const uint32_t slot = fuzz->nr_stale > 0 ? draw(fuzz, fuzz->nr_stale) : 0;
    target->handle = (struct dpu_set_t){.kind = DPU_SET_RANKS};
    if (kind == 0) {
        target->handle.kind = (dpu_set_kind_t)(2 + draw(fuzz, 3));
        target->errors = E(INTERNAL);
    } else if (kind == 1 && fuzz->nr_stale > 0) {
        target->handle = fuzz->stale[slot];
    } else if (kind == 2 && fuzz->nr_stale > 0) {
        target->handle = fuzz->stale_dpu[slot];
    } else if (kind == 3) { /* more ranks than there are */
        target->handle = set->handle;
        target->handle.list.nr_ranks += 1 + draw(fuzz, 3000);
    } else if (kind == 4) { /* a rank twice */
        target->ranks[0] = target->ranks[1] = set->handle.list.ranks[0];
        target->handle.list.ranks = target->ranks;
        target->handle.list.nr_ranks = 2;
    } else if (kind == 5) {
        target->handle = dpu_set_from_dpu(NULL);
    } else if (kind == 6 && set->ranks[0].count < 64) {
        target->handle = dpu_set_from_dpu(dpu_get(set->handle.list.ranks[0], 7, 7));
        target->errors = E(DPU_DISABLED);
    } else if (kind == 7) { /* ranks of two sets */
        for (uint32_t i = 0; i < SETS; ++i) {
            if (!fuzz->sets[i].live || &fuzz->sets[i] == set) continue;
            target->ranks[0] = set->handle.list.ranks[0];
            target->ranks[1] = fuzz->sets[i].handle.list.ranks[0];
            target->handle.list.ranks = target->ranks;
            target->handle.list.nr_ranks = 2;
        }
    }
}

void choose_target(struct fuzz *fuzz, struct target *target, uint32_t bad_percent) {
    memset(target, 0, sizeof *target);
    struct set *set = &fuzz->sets[draw(fuzz, SETS)];
    if (!set->live || chance(fuzz, bad_percent)) {
        choose_bad(fuzz, target, set->live ? set : NULL);
        return;
    }
    *target = (struct target){.handle = set->handle, .owner = set, .nr_ranks = set->nr_ranks,
                              .only = -1};
    const uint32_t kind = draw(fuzz, 4);
    if (kind < 2) return;
    target->first_rank = draw(fuzz, set->nr_ranks);
    target->nr_ranks = 1 + draw(fuzz, set->nr_ranks - target->first_rank);
    target->handle.list.ranks += target->first_rank;
    target->handle.list.nr_ranks = target->nr_ranks;
    if (kind == 2) return;
    const struct rank *rank = &set->ranks[target->first_rank];
    const uint32_t dpu = draw(fuzz, rank->count);
    target->nr_ranks = 1;
    target->only = (int)(rank->first + dpu);
    target->handle = dpu_set_from_dpu(
        dpu_get(set->handle.list.ranks[target->first_rank], (uint8_t)(dpu / 8), (uint8_t)(dpu % 8)));
}

uint32_t first_dpu(const struct target *target) {
    return target->only >= 0 ? (uint32_t)target->only
                             : target->owner->ranks[target->first_rank].first;
}

uint32_t end_dpu(const struct target *target) {
    const struct rank *last = &target->owner->ranks[target->first_rank + target->nr_ranks - 1];
    return target->only >= 0 ? (uint32_t)target->only + 1 : last->first + last->count;
}

struct rank *rank_of(struct set *set, uint32_t dpu) {
    struct rank *rank = set->ranks;
    while (dpu >= rank->first + rank->count) ++rank;
    return rank;
}

bool was_queued(const struct target *target) {
    bool queued = false;
    for (uint32_t i = 0; i < target->nr_ranks; ++i)
        queued |= target->owner->ranks[target->first_rank + i].queued;
    return queued;
}

bool has_error(const struct target *target) {
    bool error = false;
    for (uint32_t i = 0; i < target->nr_ranks; ++i)
        error |= target->owner->ranks[target->first_rank + i].error != DPU_OK;
    return error;
}

/* --- Codes --- */
void expect(struct fuzz *fuzz, const char *call, uint64_t errors, dpu_error_t got) {
    const uint32_t code = (uint32_t)got;
    if (errors == 0 ? code == DPU_OK : code < 64 && errors >> code & 1) return;
    fail(fuzz, "%s returned 0x%x, the model has errors 0x%llx", call, code,
         (unsigned long long)errors);
}

/* Whether the code says that a job failed before, and a rank of the target has such an error. */
static bool is_earlier_error(const struct target *target, dpu_error_t got) {
    for (uint32_t i = 0; i < target->nr_ranks; ++i) {
        const struct rank *rank = &target->owner->ranks[target->first_rank + i];
        const uint32_t code = (uint32_t)DPU_ERR_ASYNC_JOBS |
                              rank->error_kind << DPU_ERROR_ASYNC_JOB_TYPE_SHIFT |
                              (uint32_t)rank->error;
        if (rank->error != DPU_OK && (uint32_t)got == code) return true;
    }
    return false;
}

bool settle(struct fuzz *fuzz, const char *call, const struct target *target, enum wait wait,
            uint64_t errors, dpu_error_t got) {
    errors |= target->errors;
    const bool before = target->owner != NULL && has_error(target);
    if (before && wait != NOTHING && is_earlier_error(target, got)) return false;
    /* What is queued or goes beside a launch may be accepted before the error comes. */
    if (errors == 0 && before && wait == IDLE)
        fail(fuzz, "%s returned 0x%x in spite of an earlier error", call, (unsigned)got);
    expect(fuzz, call, errors, got);
    if (errors != 0) return false;
    for (uint32_t i = 0; i < target->nr_ranks; ++i) {
        struct rank *rank = &target->owner->ranks[target->first_rank + i];
        if (wait == IDLE) rank->queued = rank->launched = false;
        if (wait == QUEUE) rank->queued = true;
    }
    return true;
}

uint64_t program_errors(const struct target *target) {
    if (target->owner == NULL) return 0;
    const struct shadow *dpus = target->owner->dpus;
    bool same = true, none = false;
    for (uint32_t i = first_dpu(target); i < end_dpu(target); ++i) {
        same &= dpus[i].load == dpus[first_dpu(target)].load;
        none |= dpus[i].load == 0;
    }
    return (same ? 0 : E(DIFFERENT_DPU_PROGRAMS)) | (none ? E(NO_PROGRAM_LOADED) : 0);
}

int program_of(const struct target *target) {
    return target->owner != NULL ? target->owner->dpus[first_dpu(target)].program : 0;
}

/* --- Memory --- */
struct buffer *new_buffer(struct fuzz *fuzz, struct set *set, size_t size) {
    struct buffer *buffer = calloc(1, sizeof *buffer);
    buffer->size = size;
    buffer->bytes = malloc(size); /* exactly: a sanitizer sees what exceeds it */
    buffer->expected = malloc(size);
    buffer->known = malloc(size);
    for (size_t i = 0; i < size; ++i) buffer->bytes[i] = (uint8_t)draw(fuzz, 256);
    if (size > 0) memcpy(buffer->expected, buffer->bytes, size);
    if (size > 0) memset(buffer->known, 1, size);
    buffer->next = set->buffers;
    set->buffers = buffer;
    return buffer;
}

void verify(struct fuzz *fuzz, const struct buffer *buffer) {
    for (size_t i = 0; i < buffer->size; ++i)
        if (buffer->known[i] && buffer->bytes[i] != buffer->expected[i])
            fail(fuzz, "byte %zu of a buffer of %zu is 0x%02x, the model has 0x%02x", i,
                 buffer->size, buffer->bytes[i], buffer->expected[i]);
}

void verify_and_free(struct fuzz *fuzz, struct set *set) {
    for (struct buffer *buffer; (buffer = set->buffers) != NULL;) {
        verify(fuzz, buffer);
        set->buffers = buffer->next;
        free(buffer->bytes);
        free(buffer->expected);
        free(buffer->known);
        free(buffer);
    }
}

void put(struct shadow *dpu, enum variable variable, uint32_t at, const uint8_t *from,
         size_t size) {
    if (size == 0) return;
    memcpy(dpu->bytes[variable] + at, from, size);
    memset(dpu->known[variable] + at, 1, size);
}

void get(const struct shadow *dpu, enum variable variable, uint32_t at, struct buffer *into,
         size_t size) {
    if (size == 0) return;
    memcpy(into->expected, dpu->bytes[variable] + at, size);
    memcpy(into->known, dpu->known[variable] + at, size);
}

void forget(struct shadow *dpu, enum variable variable) {
    memset(dpu->known[variable], 0, sizeof dpu->known[variable]);
}

void make_idle(struct fuzz *fuzz, struct set *set) {
    uint64_t errors = 0;
    for (uint32_t i = 0; i < set->nr_ranks; ++i) {
        struct rank *rank = &set->ranks[i];
        if (rank->error != DPU_OK) errors |= 1ull << rank->error;
        rank->error = DPU_OK;
        rank->queued = rank->launched = false;
    }
    expect(fuzz, "dpu_sync", errors, dpu_sync(set->handle));
    expect(fuzz, "dpu_prepare_xfer(NULL)", 0, dpu_prepare_xfer(set->handle, NULL));
    for (uint32_t i = 0; i < set->nr_dpus; ++i) set->dpus[i].prepared = NULL;
    verify_and_free(fuzz, set);
}
