/* Transfers between the host and DPUs: the same data to all, or a prepared buffer for each. */
#include <stdlib.h>
#include <string.h>

#include "host.h"

#define ALL_FLAGS (DPU_XFER_NO_RESET | DPU_XFER_ASYNC | DPU_XFER_PARALLEL)

/* What a host program calls the symbol. */
static const char *shown(const char *name) {
    const bool heap = strcmp(name, DPU_MRAM_HEAP_POINTER_NAME) == 0;
    return heap ? "DPU_MRAM_HEAP_POINTER_NAME" : name;
}

dpu_error_t host_check_range(const struct scope *scope, const char *name,
                             struct dpu_symbol_t symbol, uint32_t offset, size_t length,
                             struct range *range) {
    const uint64_t address = (uint64_t)symbol.address + offset;
    name = shown(name);
    if (length > symbol.size || offset > symbol.size - length)
        return host_refuse(DPU_ERR_INVALID_SYMBOL_ACCESS,
                           "symbol \"%s\": offset %u + length %zu exceeds its %u bytes", name,
                           offset, length, symbol.size);
    if (address > UINT32_MAX)
        return host_refuse(DPU_ERR_INVALID_SYMBOL_ACCESS, "symbol \"%s\": there is no address 0x%llx",
                           name, (unsigned long long)address);
    if (address & HOST_IRAM_AT)
        return host_refuse(DPU_ERR_INVALID_IRAM_ACCESS, "symbol \"%s\" is code", name);
    range->mram = (address & HOST_MRAM_AT) != 0;
    range->offset = (uint32_t)address & ~HOST_MRAM_AT;
    range->bytes = length;
    const uint32_t unit = range->mram ? 8 : 4;
    const dpu_error_t code = range->mram ? DPU_ERR_INVALID_MRAM_ACCESS
                                         : DPU_ERR_INVALID_WRAM_ACCESS;
    if (range->offset % unit != 0 || length % unit != 0)
        return host_refuse(code, "symbol \"%s\": address 0x%x and length %zu must be multiples of "
                           "%u in %s", name, range->offset, length, unit,
                           range->mram ? "MRAM" : "WRAM");
    const uint32_t most = range->mram ? scope->machine->mram_bytes : scope->machine->wram_bytes;
    if (range->offset > most || length > most - range->offset)
        return host_refuse(code, "symbol \"%s\": address 0x%x + length %zu exceeds the %u bytes of "
                           "%s", name, range->offset, length, most, range->mram ? "MRAM" : "WRAM");
    return DPU_OK;
}

struct transfer {
    struct job job;
    struct range range;
    dpu_xfer_t direction;
    uint32_t first, only; /* `only`: 0, or this many DPUs of a rank from `first` on */
    const void *source;   /* the same for all; NULL: buffers */
    uint32_t stride;      /* of `buffers` between ranks */
    void **buffers;
};

static void move(struct emu_dpu *dpu, const struct range *range, dpu_xfer_t direction,
                 void *buffer) {
    if (range->mram) {
        if (direction == DPU_XFER_TO_DPU)
            emu_write_mram(dpu, range->offset, buffer, range->bytes);
        else
            memcpy(buffer, emu_mram(dpu) + range->offset, range->bytes);
    } else if (direction == DPU_XFER_TO_DPU) {
        emu_write_wram(dpu, range->offset, buffer, range->bytes);
    } else {
        emu_read_wram(dpu, range->offset, buffer, range->bytes);
    }
}

static dpu_error_t run_transfer(struct job *job, struct rank *rank, uint32_t position) {
    struct transfer *transfer = (struct transfer *)job;
    void **buffers = NULL;
    if (transfer->source == NULL) buffers = transfer->buffers + (size_t)position * transfer->stride;
    const uint32_t count = transfer->only != 0 ? transfer->only : rank->nr_dpus;
    uint32_t moved = 0;
    for (uint32_t i = 0; i < count; ++i) {
        void *buffer = buffers == NULL ? (void *)(uintptr_t)transfer->source : buffers[i];
        if (buffer == NULL) continue;
        move(rank->members[transfer->first + i].engine, &transfer->range, transfer->direction,
             buffer);
        ++moved;
    }
    if (buffers == NULL && transfer->only == 0)
        host_count_broadcast(rank, moved, transfer->range.bytes);
    else
        host_count_transfer(rank, transfer->direction, moved, transfer->range.bytes);
    return DPU_OK;
}

static void end_transfer(struct job *job) {
    free(((struct transfer *)job)->buffers);
    free(job);
}

/* `transfer` is copied where it is queued; it owns its buffers. */
static dpu_error_t start(const struct scope *scope, struct transfer *transfer,
                         dpu_xfer_flags_t flags) {
    transfer->job = (struct job){.kind = JOB_TRANSFER, .run = run_transfer, .end = end_transfer};
    transfer->first = host_first(scope);
    transfer->only = scope->only < 0 ? 0 : 1;
    if (flags & DPU_XFER_ASYNC && !(flags & DPU_XFER_PARALLEL)) {
        struct transfer *queued = malloc(sizeof *queued);
        if (queued == NULL) {
            free(transfer->buffers);
            return DPU_ERR_SYSTEM;
        }
        *queued = *transfer;
        return host_enqueue(scope, &queued->job);
    }
    const dpu_error_t status = flags & DPU_XFER_PARALLEL ? host_do_beside(scope, &transfer->job)
                                                         : host_do(scope, &transfer->job);
    free(transfer->buffers);
    return status;
}

static dpu_error_t check_flags(const struct range *range, dpu_xfer_flags_t flags) {
    if ((uint32_t)flags & ~(uint32_t)ALL_FLAGS)
        return host_refuse(DPU_ERR_INVALID_MEMORY_TRANSFER, "transfer: unknown flags 0x%x", flags);
    if (flags & DPU_XFER_PARALLEL && range->mram)
        return host_refuse(DPU_ERR_INVALID_PARALLEL_MEMORY_TRANSFER,
                           "transfer: DPU_XFER_PARALLEL is for WRAM only");
    return DPU_OK;
}

struct prepared *host_prepared(struct rank *rank, uint32_t dpu) {
    return &rank->members[dpu].prepared[host_holds(rank)];
}

dpu_error_t dpu_prepare_xfer(struct dpu_set_t dpu_set, void *buffer) {
    struct scope scope;
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    pthread_mutex_lock(&host_lock);
    for (uint32_t i = 0; i < scope.nr_ranks; ++i) {
        struct rank *rank = scope.ranks[i];
        for (uint32_t dpu = host_first(&scope); dpu < host_end(&scope, rank); ++dpu) {
            struct prepared *prepared = host_prepared(rank, dpu);
            if (buffer != NULL && prepared->buffer != NULL && !prepared->used)
                status = DPU_ERR_TRANSFER_ALREADY_SET;
            *prepared = (struct prepared){.buffer = buffer};
        }
    }
    pthread_mutex_unlock(&host_lock);
    host_leave(&scope);
    return status;
}

/* The prepared buffers, rank by rank. They are cleared, or kept for more transfers. */
static bool take_buffers(const struct scope *scope, struct transfer *transfer, const char *name,
                         bool keep) {
    transfer->stride = scope->only < 0 ? scope->machine->dpus_per_rank : 1;
    transfer->buffers = calloc((size_t)scope->nr_ranks * transfer->stride,
                               sizeof *transfer->buffers);
    if (transfer->buffers == NULL) return false;
    const uint32_t first = host_first(scope);
    bool any = false;
    pthread_mutex_lock(&host_lock);
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) {
        void **buffers = transfer->buffers + (size_t)i * transfer->stride;
        for (uint32_t dpu = first; dpu < host_end(scope, scope->ranks[i]); ++dpu) {
            struct prepared *prepared = host_prepared(scope->ranks[i], dpu);
            buffers[dpu - first] = prepared->buffer;
            any = any || prepared->buffer != NULL;
            if (keep)
                prepared->used = true;
            else
                prepared->buffer = NULL;
        }
    }
    pthread_mutex_unlock(&host_lock);
    if (!any) emu_complain("symbol \"%s\": nothing moves, for no DPU is a buffer prepared",
                           shown(name));
    return true;
}

/* `name`: of the symbol in messages; where `symbol` is NULL, it is looked up. */
static dpu_error_t push(const struct scope *scope, dpu_xfer_t direction, const char *name,
                        const struct dpu_symbol_t *symbol, uint32_t offset, size_t length,
                        dpu_xfer_flags_t flags) {
    struct dpu_symbol_t found;
    struct transfer transfer = {.direction = direction};
    dpu_error_t status = DPU_OK;
    if (symbol == NULL) status = host_symbol_of_set(scope, name, &found);
    if (status == DPU_OK)
        status = host_check_range(scope, name, symbol != NULL ? *symbol : found, offset, length,
                                  &transfer.range);
    if (status == DPU_OK && direction != DPU_XFER_TO_DPU && direction != DPU_XFER_FROM_DPU)
        status = host_refuse(DPU_ERR_INVALID_MEMORY_TRANSFER, "transfer: unknown direction %d",
                             (int)direction);
    if (status == DPU_OK) status = check_flags(&transfer.range, flags);
    if (status != DPU_OK) return status;
    if (!take_buffers(scope, &transfer, name, (flags & DPU_XFER_NO_RESET) != 0))
        return DPU_ERR_SYSTEM;
    return start(scope, &transfer, flags);
}

dpu_error_t dpu_push_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name,
                          uint32_t symbol_offset, size_t length, dpu_xfer_flags_t flags) {
    struct scope scope;
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    status = push(&scope, xfer, symbol_name, NULL, symbol_offset, length, flags);
    host_leave(&scope);
    return status;
}

dpu_error_t dpu_push_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer,
                                 struct dpu_symbol_t symbol, uint32_t symbol_offset, size_t length,
                                 dpu_xfer_flags_t flags) {
    struct scope scope;
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    status = push(&scope, xfer, "(symbol)", &symbol, symbol_offset, length, flags);
    host_leave(&scope);
    return status;
}

/* One buffer for all DPUs of the set, or of one DPU. */
static dpu_error_t copy(struct dpu_set_t dpu_set, dpu_xfer_t direction, const char *name,
                        const struct dpu_symbol_t *symbol, uint32_t offset, const void *buffer,
                        size_t length, dpu_xfer_flags_t flags) {
    struct scope scope;
    struct dpu_symbol_t found;
    struct transfer transfer = {.direction = direction, .source = buffer};
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    if (direction == DPU_XFER_FROM_DPU && scope.only < 0)
        status = host_refuse(DPU_ERR_INVALID_DPU_SET, "dpu_copy_from: the set is not one DPU");
    if (status == DPU_OK && symbol == NULL) status = host_symbol_of_set(&scope, name, &found);
    if (status == DPU_OK)
        status = host_check_range(&scope, name, symbol != NULL ? *symbol : found, offset, length,
                                  &transfer.range);
    if (status == DPU_OK) status = check_flags(&transfer.range, flags);
    if (status == DPU_OK && buffer == NULL && length > 0)
        status = host_refuse(DPU_ERR_INVALID_MEMORY_TRANSFER, "symbol \"%s\": the buffer is NULL",
                             name);
    if (status == DPU_OK && length > 0) status = start(&scope, &transfer, flags);
    host_leave(&scope);
    return status;
}

dpu_error_t dpu_copy_to(struct dpu_set_t dpu_set, const char *symbol_name, uint32_t symbol_offset,
                        const void *src, size_t length) {
    return copy(dpu_set, DPU_XFER_TO_DPU, symbol_name, NULL, symbol_offset, src, length,
                DPU_XFER_DEFAULT);
}

dpu_error_t dpu_copy_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                               uint32_t symbol_offset, const void *src, size_t length) {
    return copy(dpu_set, DPU_XFER_TO_DPU, "(symbol)", &symbol, symbol_offset, src, length,
                DPU_XFER_DEFAULT);
}

dpu_error_t dpu_broadcast_to(struct dpu_set_t dpu_set, const char *symbol_name,
                             uint32_t symbol_offset, const void *src, size_t length,
                             dpu_xfer_flags_t flags) {
    return copy(dpu_set, DPU_XFER_TO_DPU, symbol_name, NULL, symbol_offset, src, length, flags);
}

dpu_error_t dpu_broadcast_to_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                                    uint32_t symbol_offset, const void *src, size_t length,
                                    dpu_xfer_flags_t flags) {
    return copy(dpu_set, DPU_XFER_TO_DPU, "(symbol)", &symbol, symbol_offset, src, length, flags);
}

dpu_error_t dpu_copy_from(struct dpu_set_t dpu_set, const char *symbol_name,
                          uint32_t symbol_offset, void *dst, size_t length) {
    return copy(dpu_set, DPU_XFER_FROM_DPU, symbol_name, NULL, symbol_offset, dst, length,
                DPU_XFER_DEFAULT);
}

dpu_error_t dpu_copy_from_symbol(struct dpu_set_t dpu_set, struct dpu_symbol_t symbol,
                                 uint32_t symbol_offset, void *dst, size_t length) {
    return copy(dpu_set, DPU_XFER_FROM_DPU, "(symbol)", &symbol, symbol_offset, dst, length,
                DPU_XFER_DEFAULT);
}
