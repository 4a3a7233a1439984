/* Transfers between one MRAM range of each DPU and blocks of host memory. */
#include <stdlib.h>
#include <string.h>

#include "host.h"

#define ALL_FLAGS (DPU_SG_XFER_ASYNC | DPU_SG_XFER_DISABLE_LENGTH_CHECK)

struct scatter {
    struct job job;
    struct range range;
    dpu_xfer_t direction;
    bool exact; /* blocks have as many bytes as the range */
    get_block_func_t get_block;
    void *args;
    void *copied_args; /* NULL: none */
};

struct blocks {
    struct sg_block_info *all;
    uint32_t count, capacity;
};

static bool append(struct blocks *blocks, struct sg_block_info block) {
    if (blocks->count == blocks->capacity) {
        const uint32_t capacity = 2 * blocks->capacity + 64;
        struct sg_block_info *grown = realloc(blocks->all, capacity * sizeof *grown);
        if (grown == NULL) return false;
        blocks->all = grown;
        blocks->capacity = capacity;
    }
    blocks->all[blocks->count++] = block;
    return true;
}

/* Ask for the blocks of one DPU. Empty ones count, and are left out. */
static dpu_error_t ask_blocks(const struct scatter *scatter, uint32_t dpu, uint32_t most,
                              struct blocks *blocks) {
    uint64_t bytes = 0;
    for (uint32_t index = 0;; ++index) {
        struct sg_block_info block = {0};
        if (!scatter->get_block(&block, dpu, index, scatter->args)) break;
        if (index >= most)
            return host_refuse(DPU_ERR_SG_TOO_MANY_BLOCKS,
                               "scattered transfer: DPU %u has more than %u blocks "
                               "(profile: sgXferMaxBlocksPerDpu)", dpu, most);
        if (block.length == 0) continue;
        if (block.addr == NULL)
            return host_refuse(DPU_ERR_INVALID_MEMORY_TRANSFER,
                               "scattered transfer: block %u of DPU %u is NULL", index, dpu);
        bytes += block.length;
        if (!append(blocks, block)) return DPU_ERR_SYSTEM;
    }
    if (scatter->exact && bytes != scatter->range.bytes)
        return host_refuse(DPU_ERR_SG_LENGTH_MISMATCH,
                           "scattered transfer: blocks of DPU %u have %llu bytes, length is %zu",
                           dpu, (unsigned long long)bytes, scatter->range.bytes);
    return DPU_OK;
}

static void clear(struct emu_dpu *dpu, uint32_t offset, size_t bytes) {
    static const uint8_t zeros[4096];
    for (size_t part; bytes > 0; offset += (uint32_t)part, bytes -= part) {
        part = bytes < sizeof zeros ? bytes : sizeof zeros;
        emu_write_mram(dpu, offset, zeros, part);
    }
}

/* What exceeds the range is left out; what a DPU does not get is zero. */
static void move_blocks(const struct scatter *scatter, struct emu_dpu *dpu,
                        const struct sg_block_info *blocks, uint32_t count) {
    uint32_t offset = scatter->range.offset;
    size_t left = scatter->range.bytes;
    for (uint32_t i = 0; i < count && left > 0; ++i) {
        const size_t bytes = blocks[i].length < left ? blocks[i].length : left;
        if (scatter->direction == DPU_XFER_TO_DPU)
            emu_write_mram(dpu, offset, blocks[i].addr, bytes);
        else
            memcpy(blocks[i].addr, emu_mram(dpu) + offset, bytes);
        offset += (uint32_t)bytes;
        left -= bytes;
    }
    if (scatter->direction == DPU_XFER_TO_DPU) clear(dpu, offset, left);
}

/* All blocks of the rank are known to be good before anything moves. */
static dpu_error_t run_scatter(struct job *job, struct rank *rank, uint32_t position) {
    (void)position;
    const struct scatter *scatter = (const struct scatter *)job;
    struct blocks blocks = {0};
    uint32_t *ends = calloc(rank->nr_dpus, sizeof *ends);
    dpu_error_t status = ends == NULL ? DPU_ERR_SYSTEM : DPU_OK;
    for (uint32_t i = 0; i < rank->nr_dpus && status == DPU_OK; ++i) {
        status = ask_blocks(scatter, rank->first_dpu + i, rank->owner->most_blocks, &blocks);
        ends[i] = blocks.count;
    }
    for (uint32_t i = 0, start = 0; i < rank->nr_dpus && status == DPU_OK; start = ends[i++])
        if (ends[i] > start)
            move_blocks(scatter, rank->members[i].engine, blocks.all + start, ends[i] - start);
    if (status == DPU_OK)
        host_count_transfer(rank, scatter->direction, rank->nr_dpus, scatter->range.bytes);
    free(ends);
    free(blocks.all);
    return status;
}

static void end_scatter(struct job *job) {
    free(((struct scatter *)job)->copied_args);
    free(job);
}

static dpu_error_t check(const struct scope *scope, dpu_xfer_t direction, const char *name,
                         struct dpu_symbol_t symbol, uint32_t offset, size_t length,
                         const get_block_t *get_block, dpu_sg_xfer_flags_t flags,
                         struct range *range) {
    if (direction != DPU_XFER_TO_DPU && direction != DPU_XFER_FROM_DPU)
        return host_refuse(DPU_ERR_INVALID_MEMORY_TRANSFER,
                           "scattered transfer: unknown direction %d", (int)direction);
    if ((uint32_t)flags & ~(uint32_t)ALL_FLAGS)
        return host_refuse(DPU_ERR_INVALID_MEMORY_TRANSFER,
                           "scattered transfer: unknown flags 0x%x", flags);
    if (get_block == NULL || get_block->f == NULL ||
        (get_block->args == NULL && get_block->args_size > 0))
        return host_refuse(DPU_ERR_INVALID_MEMORY_TRANSFER,
                           "scattered transfer: the block function or its arguments are NULL");
    if ((((uint64_t)symbol.address + offset) & HOST_MRAM_AT) == 0)
        return host_refuse(DPU_ERR_SG_NOT_MRAM_SYMBOL,
                           "scattered transfer: symbol \"%s\" is not in MRAM", name);
    if (!scope->ranks[0]->owner->scatter)
        return host_refuse(DPU_ERR_SG_NOT_ACTIVATED,
                           "scattered transfer: the set was not allocated with the profile "
                           "sgXferEnable=true");
    return host_check_range(scope, name, symbol, offset, length, range);
}

static dpu_error_t push(const struct scope *scope, dpu_xfer_t direction, const char *name,
                        struct dpu_symbol_t symbol, uint32_t offset, size_t length,
                        const get_block_t *get_block, dpu_sg_xfer_flags_t flags) {
    struct range range;
    const dpu_error_t status = check(scope, direction, name, symbol, offset, length, get_block,
                                     flags, &range);
    if (status != DPU_OK) return status;
    struct scatter *scatter = malloc(sizeof *scatter);
    if (scatter == NULL) return DPU_ERR_SYSTEM;
    *scatter = (struct scatter){
        .job = {.kind = JOB_SCATTER, .run = run_scatter, .end = end_scatter},
        .range = range,
        .direction = direction,
        .exact = (flags & DPU_SG_XFER_DISABLE_LENGTH_CHECK) == 0,
        .get_block = get_block->f,
        .args = get_block->args};
    if (get_block->args_size > 0) {
        scatter->args = scatter->copied_args = malloc(get_block->args_size);
        if (scatter->args == NULL) {
            free(scatter);
            return DPU_ERR_SYSTEM;
        }
        memcpy(scatter->args, get_block->args, get_block->args_size);
    }
    if (flags & DPU_SG_XFER_ASYNC) return host_enqueue(scope, &scatter->job);
    const dpu_error_t done = host_do(scope, &scatter->job);
    end_scatter(&scatter->job);
    return done;
}

/* Where `symbol` is NULL, it is looked up by its name. */
static dpu_error_t enter(struct dpu_set_t dpu_set, dpu_xfer_t direction, const char *name,
                         const struct dpu_symbol_t *symbol, uint32_t offset, size_t length,
                         const get_block_t *get_block, dpu_sg_xfer_flags_t flags) {
    struct scope scope;
    struct dpu_symbol_t found;
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    if (scope.only >= 0)
        status = host_refuse(DPU_ERR_INTERNAL, "scattered transfer: the set must be of ranks");
    if (status == DPU_OK && symbol == NULL) status = host_symbol_of_set(&scope, name, &found);
    if (status == DPU_OK)
        status = push(&scope, direction, name, symbol != NULL ? *symbol : found, offset, length,
                      get_block, flags);
    host_leave(&scope);
    return status;
}

dpu_error_t dpu_push_sg_xfer(struct dpu_set_t dpu_set, dpu_xfer_t xfer, const char *symbol_name,
                             uint32_t symbol_offset, size_t length, get_block_t *get_block_info,
                             dpu_sg_xfer_flags_t flags) {
    return enter(dpu_set, xfer, symbol_name, NULL, symbol_offset, length, get_block_info, flags);
}

dpu_error_t dpu_push_sg_xfer_symbol(struct dpu_set_t dpu_set, dpu_xfer_t xfer,
                                    struct dpu_symbol_t symbol, uint32_t symbol_offset,
                                    size_t length, get_block_t *get_block_info,
                                    dpu_sg_xfer_flags_t flags) {
    return enter(dpu_set, xfer, "(symbol)", &symbol, symbol_offset, length, get_block_info, flags);
}
