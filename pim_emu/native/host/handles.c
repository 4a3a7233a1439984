/* Handles of ranks and DPUs, sets of them, and what they stand for.
 *
 * A handle is generation << 32 | slot << 12 | DPU. Slots are reused, generations are not, so that a
 * handle of a freed set matches nothing. Arrays of rank handles are real memory that programs and
 * this library read; they are never freed nor reused, for the same reason. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "host.h"

#define RANK_ITSELF 0xfffu /* in the place of a DPU's index */
#define CHUNK_HANDLES 8192u

pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;

static struct rank slots[HOST_MOST_RANKS];

dpu_error_t host_refuse(dpu_error_t code, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    emu_complain("%s", text);
    return code;
}

struct rank *host_slot(uint32_t slot) {
    return &slots[slot];
}

static void *encode(const struct rank *rank, uint32_t dpu) {
    const uint64_t slot = (uint64_t)(rank - slots);
    return (void *)(uintptr_t)((uint64_t)rank->generation << 32 | slot << 12 | dpu);
}

static struct rank *decode(const void *handle, uint32_t *dpu) {
    const uint64_t value = (uintptr_t)handle;
    const uint32_t slot = (uint32_t)value >> 12;
    *dpu = (uint32_t)value & RANK_ITSELF;
    if (slot >= HOST_MOST_RANKS) return NULL;
    struct rank *rank = &slots[slot];
    if (rank->owner == NULL || rank->generation != value >> 32) return NULL;
    return rank;
}

struct dpu_rank_t *host_rank_handle(const struct rank *rank) {
    return encode(rank, RANK_ITSELF);
}

struct dpu_t *host_dpu_handle(const struct rank *rank, uint32_t dpu) {
    return encode(rank, dpu);
}

struct rank *host_rank_of(const struct dpu_rank_t *handle) {
    uint32_t dpu;
    struct rank *rank = decode(handle, &dpu);
    return rank != NULL && dpu == RANK_ITSELF ? rank : NULL;
}

struct rank *host_dpu_of(const struct dpu_t *handle, uint32_t *dpu) {
    struct rank *rank = decode(handle, dpu);
    return rank != NULL && *dpu < rank->machine->dpus_per_rank ? rank : NULL;
}

/* Chunks are chained by their first element, which keeps them reachable. */
struct dpu_rank_t **host_make_handles(uint32_t count) {
    static struct dpu_rank_t **chunk;
    static uint32_t used = CHUNK_HANDLES;
    const uint32_t needed = count + 1; /* and a null, at which reading past the end stops */
    if (needed > CHUNK_HANDLES - used) {
        struct dpu_rank_t **fresh = calloc(CHUNK_HANDLES, sizeof *fresh);
        if (fresh == NULL) return NULL;
        fresh[0] = (struct dpu_rank_t *)(void *)chunk;
        chunk = fresh;
        used = 1;
    }
    struct dpu_rank_t **handles = chunk + used;
    used += needed;
    return handles;
}

static dpu_error_t resolve_ranks(struct dpu_set_t set, struct scope *scope) {
    if (set.list.nr_ranks == 0 || set.list.nr_ranks > HOST_MOST_RANKS || set.list.ranks == NULL)
        return DPU_ERR_INVALID_DPU_SET;
    uint8_t seen[HOST_MOST_RANKS / 8] = {0};
    for (uint32_t i = 0; i < set.list.nr_ranks; ++i) {
        struct rank *rank = host_rank_of(set.list.ranks[i]);
        if (rank == NULL) return DPU_ERR_INVALID_DPU_SET;
        const uint32_t slot = (uint32_t)(rank - slots);
        if (seen[slot / 8] & 1u << slot % 8) return DPU_ERR_INVALID_DPU_SET; /* twice */
        seen[slot / 8] |= (uint8_t)(1u << slot % 8);
        scope->ranks[i] = rank;
    }
    scope->nr_ranks = set.list.nr_ranks;
    scope->only = -1;
    return DPU_OK;
}

static dpu_error_t resolve_dpu(struct dpu_set_t set, struct scope *scope) {
    uint32_t dpu;
    struct rank *rank = host_dpu_of(set.dpu, &dpu);
    if (rank == NULL) return DPU_ERR_INVALID_DPU_SET;
    if (dpu >= rank->nr_dpus) return DPU_ERR_DPU_DISABLED;
    scope->ranks[0] = rank;
    scope->nr_ranks = 1;
    scope->only = (int)dpu;
    return DPU_OK;
}

static dpu_error_t resolve(struct dpu_set_t set, struct scope *scope) {
    dpu_error_t status = DPU_ERR_INTERNAL;
    if (set.kind == DPU_SET_RANKS) status = resolve_ranks(set, scope);
    if (set.kind == DPU_SET_DPU) status = resolve_dpu(set, scope);
    if (status != DPU_OK) return status;
    scope->machine = scope->ranks[0]->machine;
    for (uint32_t i = 1; i < scope->nr_ranks; ++i)
        if (scope->ranks[i]->owner != scope->ranks[0]->owner) return DPU_ERR_INVALID_DPU_SET;
    /* While a set is being freed, only its callbacks may still use it. */
    const struct allocation *owner = scope->ranks[0]->owner;
    return owner->closing && host_in_callback != owner ? DPU_ERR_INVALID_DPU_SET : DPU_OK;
}

dpu_error_t host_enter(struct dpu_set_t set, struct scope *scope) {
    pthread_mutex_lock(&host_lock);
    const dpu_error_t status = resolve(set, scope);
    for (uint32_t i = 0; status == DPU_OK && i < scope->nr_ranks; ++i) ++scope->ranks[i]->pins;
    pthread_mutex_unlock(&host_lock);
    return status;
}

void host_leave(const struct scope *scope) {
    pthread_mutex_lock(&host_lock);
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) {
        --scope->ranks[i]->pins;
        pthread_cond_broadcast(&scope->ranks[i]->changed);
    }
    pthread_mutex_unlock(&host_lock);
}

uint32_t host_first(const struct scope *scope) {
    return scope->only < 0 ? 0 : (uint32_t)scope->only;
}

uint32_t host_end(const struct scope *scope, const struct rank *rank) {
    return scope->only < 0 ? rank->nr_dpus : (uint32_t)scope->only + 1;
}

uint32_t host_count_dpus(const struct scope *scope) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < scope->nr_ranks; ++i)
        count += host_end(scope, scope->ranks[i]) - host_first(scope);
    return count;
}

dpu_error_t dpu_get_nr_ranks(struct dpu_set_t dpu_set, uint32_t *nr_ranks) {
    struct scope scope;
    if (nr_ranks == NULL) return host_refuse(DPU_ERR_INTERNAL, "dpu_get_nr_ranks: nr_ranks is NULL");
    const dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    *nr_ranks = scope.nr_ranks;
    host_leave(&scope);
    return DPU_OK;
}

dpu_error_t dpu_get_nr_dpus(struct dpu_set_t dpu_set, uint32_t *nr_dpus) {
    struct scope scope;
    if (nr_dpus == NULL) return host_refuse(DPU_ERR_INTERNAL, "dpu_get_nr_dpus: nr_dpus is NULL");
    const dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    *nr_dpus = host_count_dpus(&scope);
    host_leave(&scope);
    return DPU_OK;
}
