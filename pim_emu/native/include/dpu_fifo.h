/* Queues in WRAM between the host and a running DPU: see wramfifo.h of DPU programs.
 *
 * The functions that move elements are in dpu.h. They work beside a launch, as transfers with
 * DPU_XFER_PARALLEL do. On hardware this needs DPUs of version v1B. */
#ifndef DPU_FIFO_H
#define DPU_FIFO_H

#include <stdbool.h>
#include <stdint.h>

#include <dpu_error.h>
#include <dpu_types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PIM_EMU_DPUS_PER_RANK (DPU_MAX_NR_CIS * DPU_MAX_NR_DPUS_PER_CI)

/* The queues of a rank's DPUs. Of DPU `slice * 8 + member`, the pointers are as the last transfer
 * found them: the read pointer, then the write pointer. Both only grow. */
struct dpu_fifo_rank_t {
    uint8_t dpu_fifo_ptr_size;   /* log2 of the elements */
    uint32_t dpu_fifo_address;   /* of the elements, in words */
    uint32_t dpu_fifo_data_size; /* of an element, in bytes */
    uint64_t dpu_fifo_pointers[2 * PIM_EMU_DPUS_PER_RANK];
    uint32_t max_retries;
    uint32_t time_for_retry; /* microseconds */
    struct dpu_rank_t *rank;
    void *buffers[PIM_EMU_DPUS_PER_RANK]; /* prepared ones */
};

enum dpu_fifo_direction_t {
    DPU_INPUT_FIFO,
    DPU_OUTPUT_FIFO
};

struct dpu_fifo_link_t {
    enum dpu_fifo_direction_t direction;
    struct dpu_symbol_t fifo_symbol;
    struct dpu_fifo_rank_t *rank_fifos; /* one for each rank of the set */
    uint32_t nr_ranks;
};

/* `fifo_name`: a variable of INPUT_FIFO_INIT or OUTPUT_FIFO_INIT in the program of all DPUs. */
dpu_error_t dpu_link_input_fifo(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *link,
                                const char *fifo_name);
dpu_error_t dpu_link_output_fifo(struct dpu_set_t dpu_set, struct dpu_fifo_link_t *link,
                                 const char *fifo_name);
dpu_error_t dpu_fifo_link_free(struct dpu_fifo_link_t *fifo_link);

/* A push to a full queue is tried again so often (1000), after so many microseconds (10). */
void dpu_fifo_set_push_max_retries(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu_set,
                                   uint32_t max_retries);
void dpu_fifo_set_time_for_push_retries(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu_set,
                                        uint32_t time_us);

/* After a transfer: the elements that were in the queue of a DPU, and where in the host's buffer
 * the i-th of them is. */
uint16_t get_fifo_size(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu);
uint8_t get_fifo_elem_index(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu, uint8_t i);
uint8_t *get_fifo_elem(struct dpu_fifo_link_t *fifo_link, struct dpu_set_t dpu, uint8_t *fifo_data,
                       uint8_t i);
/* The most elements of any DPU of the rank. */
uint16_t get_fifo_max_size(struct dpu_rank_t *rank, struct dpu_fifo_rank_t *fifo);
/* NULL: the rank is none of the link's. */
struct dpu_fifo_rank_t *get_rank_fifo(struct dpu_fifo_link_t *fifo_link, struct dpu_rank_t *rank);

#ifdef __cplusplus
}
#endif
#endif
