/* Queues in WRAM between the host and running DPUs. The host owns the write pointer of an input
 * queue and the read pointer of an output queue; each is written after the elements it stands for. */
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>

#include "host.h"

/* A DPU that is emulated takes longer than one of silicon, and may wait for a worker: retries last
 * at least so long. */
#define PATIENCE_SECONDS 2.0

enum { READ_AT = 0, WRITE_AT = 8 }; /* pointers within a queue: see wramfifo.h */

struct fifo_job {
    struct job job;
    const struct scope *scope;
    struct dpu_fifo_link_t *link;
};

/* Check that all ranks of the scope are linked; with `function` in the message. */
static dpu_error_t check_link(const char *function, const struct scope *scope,
                              struct dpu_fifo_link_t *link) {
    if (link == NULL) return host_refuse(DPU_ERR_INTERNAL, "%s: fifo_link is NULL", function);
    for (uint32_t i = 0; i < scope->nr_ranks; ++i)
        if (get_rank_fifo(link, host_rank_handle(scope->ranks[i])) == NULL)
            return host_refuse(DPU_ERR_INVALID_DPU_SET, "%s: the set is not that of the link",
                               function);
    return DPU_OK;
}

static void set_buffers(const struct scope *scope, struct dpu_fifo_link_t *link, void *buffer) {
    for (uint32_t i = 0; i < scope->nr_ranks; ++i) {
        struct dpu_fifo_rank_t *fifo = get_rank_fifo(link, host_rank_handle(scope->ranks[i]));
        for (uint32_t dpu = host_first(scope); dpu < host_end(scope, scope->ranks[i]); ++dpu)
            fifo->buffers[dpu] = buffer;
    }
}

dpu_error_t dpu_fifo_prepare_xfer(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *fifo_link,
                                  void *buffer) {
    struct scope scope;
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    status = check_link("dpu_fifo_prepare_xfer", &scope, fifo_link);
    if (status == DPU_OK) set_buffers(&scope, fifo_link, buffer);
    host_leave(&scope);
    return status;
}

static uint64_t elements_of(const struct dpu_fifo_rank_t *fifo) {
    return 1ull << fifo->dpu_fifo_ptr_size;
}

/* Push one element to each DPU that has a buffer and is not done; returns how many are full. */
static uint32_t push_where_room(struct fifo_job *push, struct rank *rank,
                                struct dpu_fifo_rank_t *fifo, bool *done) {
    const uint32_t at = push->link->fifo_symbol.address;
    uint32_t full = 0, moved = 0;
    for (uint32_t dpu = host_first(push->scope); dpu < host_end(push->scope, rank); ++dpu) {
        if (fifo->buffers[dpu] == NULL || done[dpu]) continue;
        struct emu_dpu *engine = rank->members[dpu].engine;
        uint64_t *pointers = fifo->dpu_fifo_pointers + 2 * dpu;
        emu_read_wram(engine, at, pointers, 2 * sizeof *pointers);
        if (pointers[1] - pointers[0] >= elements_of(fifo)) {
            ++full;
            continue;
        }
        const uint64_t place = pointers[1] & (elements_of(fifo) - 1);
        emu_write_wram(engine,
                       fifo->dpu_fifo_address * 4 + (uint32_t)place * fifo->dpu_fifo_data_size,
                       fifo->buffers[dpu], fifo->dpu_fifo_data_size);
        ++pointers[1];
        emu_write_wram(engine, at + WRITE_AT, &pointers[1], sizeof *pointers);
        done[dpu] = true;
        ++moved;
    }
    if (moved > 0) host_count_transfer(rank, DPU_XFER_TO_DPU, moved, fifo->dpu_fifo_data_size);
    return full;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static dpu_error_t run_push(struct job *job, struct rank *rank, uint32_t position) {
    (void)position;
    struct fifo_job *push = (struct fifo_job *)job;
    struct dpu_fifo_rank_t *fifo = get_rank_fifo(push->link, host_rank_handle(rank));
    bool done[PIM_EMU_DPUS_PER_RANK] = {false};
    const double begun = seconds_now();
    for (uint64_t retries = 0;; ++retries) {
        const uint32_t full = push_where_room(push, rank, fifo, done);
        if (full == 0) return DPU_OK;
        pthread_mutex_lock(&host_lock);
        const bool launching = rank->launching;
        pthread_mutex_unlock(&host_lock);
        if (!launching)
            return host_refuse(DPU_ERR_WRAM_FIFO_FULL,
                               "dpu_fifo_push_xfer: the FIFO of %u DPUs is full, and none runs",
                               full);
        const bool tired = fifo->max_retries == 0 || seconds_now() - begun > PATIENCE_SECONDS;
        if (retries >= fifo->max_retries && tired)
            return host_refuse(DPU_ERR_WRAM_FIFO_FULL,
                               "dpu_fifo_push_xfer: the FIFO of %u DPUs stays full (with "
                               "PIM_EMU_WORKERS, %u DPUs run at the same time)",
                               full, emu_settings()->workers);
        usleep(fifo->time_for_retry);
    }
}

/* Copy each DPU's whole queue, and tell the DPU that its elements are taken. */
static dpu_error_t run_flush(struct job *job, struct rank *rank, uint32_t position) {
    (void)position;
    struct fifo_job *flush = (struct fifo_job *)job;
    struct dpu_fifo_rank_t *fifo = get_rank_fifo(flush->link, host_rank_handle(rank));
    const uint32_t at = flush->link->fifo_symbol.address;
    const size_t bytes = elements_of(fifo) * fifo->dpu_fifo_data_size;
    uint32_t moved = 0;
    for (uint32_t dpu = host_first(flush->scope); dpu < host_end(flush->scope, rank); ++dpu) {
        if (fifo->buffers[dpu] == NULL) continue;
        struct emu_dpu *engine = rank->members[dpu].engine;
        uint64_t *pointers = fifo->dpu_fifo_pointers + 2 * dpu;
        emu_read_wram(engine, at, pointers, 2 * sizeof *pointers);
        emu_read_wram(engine, fifo->dpu_fifo_address * 4, fifo->buffers[dpu], bytes);
        emu_write_wram(engine, at + READ_AT, &pointers[1], sizeof *pointers);
        ++moved;
    }
    if (moved > 0) host_count_transfer(rank, DPU_XFER_FROM_DPU, moved, bytes);
    return DPU_OK;
}

dpu_error_t dpu_fifo_push_xfer(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *fifo_link,
                               dpu_xfer_flags_t flags) {
    struct scope scope;
    const uint32_t known = DPU_XFER_NO_RESET | DPU_XFER_ASYNC | DPU_XFER_PARALLEL;
    dpu_error_t status = host_enter(dpu_set, &scope);
    if (status != DPU_OK) return status;
    status = check_link("dpu_fifo_push_xfer", &scope, fifo_link);
    if (status == DPU_OK && (uint32_t)flags & ~known)
        status = host_refuse(DPU_ERR_INVALID_MEMORY_TRANSFER,
                             "dpu_fifo_push_xfer: unknown flags 0x%x", flags);
    if (status == DPU_OK) {
        struct fifo_job work = {.job = {.kind = JOB_TRANSFER}, .scope = &scope, .link = fifo_link};
        work.job.run = fifo_link->direction == DPU_INPUT_FIFO ? run_push : run_flush;
        status = host_do_beside(&scope, &work.job);
        if (!(flags & DPU_XFER_NO_RESET)) set_buffers(&scope, fifo_link, NULL);
    }
    host_leave(&scope);
    return status;
}
