/* Links to queues in WRAM: what they are of, their settings, and what the last transfer found. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "host.h"

#define MOST_PTR_SIZE 10

/* A queue as wramfifo.h lays it out, with the pointers of 64 bits that DPU programs have here. */
enum { PTR_SIZE_AT = 32, INPUT_BYTES = 40, OUTPUT_BYTES = 48 };

struct look_up {
    struct job job;
    const struct scope *scope;
    uint32_t address;       /* of the queue */
    uint32_t parameters[2]; /* ptr_size and data_size */
};

struct dpu_fifo_rank_t *get_rank_fifo(struct dpu_fifo_link_t *fifo_link, struct dpu_rank_t *rank) {
    if (fifo_link == NULL || rank == NULL || fifo_link->rank_fifos == NULL) return NULL;
    for (uint32_t i = 0; i < fifo_link->nr_ranks; ++i)
        if (fifo_link->rank_fifos[i].rank == rank) return &fifo_link->rank_fifos[i];
    return NULL;
}

static dpu_error_t run_look_up(struct job *job, struct rank *rank, uint32_t position) {
    struct look_up *look_up = (struct look_up *)job;
    if (position == 0)
        emu_read_wram(rank->members[host_first(look_up->scope)].engine,
                      look_up->address + PTR_SIZE_AT, look_up->parameters,
                      sizeof look_up->parameters);
    return DPU_OK;
}

static dpu_error_t find(const struct scope *scope, const char *name, struct dpu_symbol_t *symbol) {
    struct range range;
    dpu_error_t status = host_symbol_of_set(scope, name, symbol);
    if (status == DPU_OK) status = host_check_range(scope, name, *symbol, 0, symbol->size, &range);
    if (status == DPU_OK && range.mram)
        status = host_refuse(DPU_ERR_INVALID_WRAM_ACCESS, "symbol \"%s\" is in MRAM", name);
    return status;
}

static dpu_error_t make_link(const struct scope *scope, const char *name,
                             struct dpu_fifo_link_t *link) {
    const bool input = link->direction == DPU_INPUT_FIFO;
    struct dpu_symbol_t data;
    dpu_error_t status = find(scope, name, &link->fifo_symbol);
    if (status != DPU_OK) return status;
    if (link->fifo_symbol.size != (input ? INPUT_BYTES : OUTPUT_BYTES))
        return host_refuse(DPU_ERR_INVALID_WRAM_ACCESS, "symbol \"%s\" is not made by %s_FIFO_INIT",
                           name, input ? "INPUT" : "OUTPUT");
    char *data_name = NULL;
    if (asprintf(&data_name, "__%s_data", name) < 0) return DPU_ERR_SYSTEM;
    status = find(scope, data_name, &data);
    free(data_name);
    if (status != DPU_OK) return status;
    struct look_up look_up = {.job = {.kind = JOB_TRANSFER, .run = run_look_up},
                              .scope = scope,
                              .address = link->fifo_symbol.address};
    status = host_do_beside(scope, &look_up.job);
    if (status != DPU_OK) return status;
    const uint32_t ptr_size = look_up.parameters[0], data_size = look_up.parameters[1];
    if (ptr_size > MOST_PTR_SIZE || (uint64_t)data_size << ptr_size != data.size)
        return host_refuse(DPU_ERR_INVALID_WRAM_ACCESS,
                           "symbol \"%s\": the FIFO says 2^%u elements of %u bytes and has %u bytes",
                           name, ptr_size, data_size, data.size);
    link->rank_fifos = calloc(scope->nr_ranks, sizeof *link->rank_fifos);
    if (link->rank_fifos == NULL) return DPU_ERR_SYSTEM;
    link->nr_ranks = scope->nr_ranks;
    for (uint32_t i = 0; i < scope->nr_ranks; ++i)
        link->rank_fifos[i] = (struct dpu_fifo_rank_t){.dpu_fifo_ptr_size = (uint8_t)ptr_size,
                                                       .dpu_fifo_address = data.address / 4,
                                                       .dpu_fifo_data_size = data_size,
                                                       .max_retries = 1000,
                                                       .time_for_retry = 10,
                                                       .rank = host_rank_handle(scope->ranks[i])};
    return DPU_OK;
}

static dpu_error_t link_fifo(struct dpu_set_t set, struct dpu_fifo_link_t *link, const char *name,
                             enum dpu_fifo_direction_t direction) {
    struct scope scope;
    if (link == NULL || name == NULL)
        return host_refuse(DPU_ERR_INTERNAL, "dpu_link_%s_fifo: link or fifo_name is NULL",
                           direction == DPU_INPUT_FIFO ? "input" : "output");
    *link = (struct dpu_fifo_link_t){.direction = direction};
    dpu_error_t status = host_enter(set, &scope);
    if (status != DPU_OK) return status;
    status = make_link(&scope, name, link);
    host_leave(&scope);
    return status;
}

dpu_error_t dpu_link_input_fifo(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *link,
                                const char *fifo_name) {
    return link_fifo(dpu_set, link, fifo_name, DPU_INPUT_FIFO);
}

dpu_error_t dpu_link_output_fifo(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *link,
                                 const char *fifo_name) {
    return link_fifo(dpu_set, link, fifo_name, DPU_OUTPUT_FIFO);
}

dpu_error_t dpu_fifo_link_free(struct dpu_fifo_link_t *fifo_link) {
    if (fifo_link == NULL)
        return host_refuse(DPU_ERR_INTERNAL, "dpu_fifo_link_free: fifo_link is NULL");
    free(fifo_link->rank_fifos);
    fifo_link->rank_fifos = NULL;
    fifo_link->nr_ranks = 0;
    return DPU_OK;
}

void dpu_fifo_set_push_max_retries(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu_set,
                                   uint32_t max_retries) {
    struct dpu_set_t rank;
    DPU_RANK_FOREACH (dpu_set, rank) {
        struct dpu_fifo_rank_t *fifo = get_rank_fifo(fifo_link, dpu_rank_from_set(rank));
        if (fifo != NULL) fifo->max_retries = max_retries;
    }
}

void dpu_fifo_set_time_for_push_retries(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu_set,
                                        uint32_t time_us) {
    struct dpu_set_t rank;
    DPU_RANK_FOREACH (dpu_set, rank) {
        struct dpu_fifo_rank_t *fifo = get_rank_fifo(fifo_link, dpu_rank_from_set(rank));
        if (fifo != NULL) fifo->time_for_retry = time_us;
    }
}

/* The pointers of one DPU, NULL if the link has none. */
static const uint64_t *pointers_of(struct dpu_fifo_link_t *link, struct dpu_set_t set,
                                   const struct dpu_fifo_rank_t **fifo) {
    struct dpu_t *dpu = dpu_from_set(set);
    *fifo = dpu != NULL ? get_rank_fifo(link, dpu_get_rank(dpu)) : NULL;
    if (*fifo == NULL) return NULL;
    const uint32_t index = dpu_get_slice_id(dpu) * DPU_MAX_NR_DPUS_PER_CI + dpu_get_member_id(dpu);
    return (*fifo)->dpu_fifo_pointers + 2 * index;
}

uint16_t get_fifo_size(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu) {
    const struct dpu_fifo_rank_t *fifo;
    const uint64_t *pointers = pointers_of(fifo_link, dpu, &fifo);
    return pointers != NULL ? (uint16_t)(pointers[1] - pointers[0]) : 0;
}

uint8_t get_fifo_elem_index(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu, uint8_t i) {
    const struct dpu_fifo_rank_t *fifo;
    const uint64_t *pointers = pointers_of(fifo_link, dpu, &fifo);
    if (pointers == NULL) return 0;
    return (uint8_t)((pointers[0] + i) & ((1ull << fifo->dpu_fifo_ptr_size) - 1));
}

uint8_t *get_fifo_elem(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu, uint8_t *fifo_data,
                       uint8_t i) {
    const struct dpu_fifo_rank_t *fifo;
    const uint64_t *pointers = pointers_of(fifo_link, dpu, &fifo);
    if (pointers == NULL) return NULL;
    const uint64_t place = (pointers[0] + i) & ((1ull << fifo->dpu_fifo_ptr_size) - 1);
    return fifo_data + place * fifo->dpu_fifo_data_size;
}

uint16_t get_fifo_max_size(struct dpu_rank_t *rank, struct dpu_fifo_rank_t *fifo) {
    uint64_t most = 0;
    if (fifo == NULL || fifo->rank != rank) return 0;
    for (uint32_t i = 0; i < PIM_EMU_DPUS_PER_RANK; ++i) {
        const uint64_t *pointers = fifo->dpu_fifo_pointers + 2 * i;
        if (pointers[1] - pointers[0] > most) most = pointers[1] - pointers[0];
    }
    return (uint16_t)most;
}
