/* Queues in WRAM between the host and a running DPU.
 *
 * The host owns one pointer of each queue and the DPU the other; both only grow, and count elements
 * modulo the queue's size, which is a power of two.
 */
#ifndef DPU_WRAMFIFO_H
#define DPU_WRAMFIFO_H

#include <barrier.h>
#include <mutex.h>
#include <stdbool.h>
#include <stdint.h>

#define WRAM_FIFO_SIZE(FIFO_PTR_SIZE) (1u << (FIFO_PTR_SIZE))
#define MASK_WRAM_FIFO_PTR(FIFO_PTR_SIZE, x) ((x) & (WRAM_FIFO_SIZE(FIFO_PTR_SIZE) - 1u))

struct dpu_input_fifo_t {
    uint64_t read_ptr;           /* the DPU's */
    volatile uint64_t write_ptr; /* the host's */
    uint8_t *data;
    uint8_t *tmp_data; /* one element for each tasklet */
    const uint32_t ptr_size;
    const uint32_t data_size; /* of an element, in bytes */
};

struct dpu_output_fifo_t {
    volatile uint64_t read_ptr; /* the host's */
    uint64_t write_ptr;         /* the DPU's */
    uint8_t *data;
    uint8_t *tmp_data;
    const uint32_t ptr_size;
    const uint32_t data_size;
    uint32_t nb_reserved; /* elements that tasklets are about to push */
};

#define __emu_fifo(type, name, log_elements, bytes)                                                \
    _Static_assert((log_elements) <= 10, "a queue in WRAM has at most 2^10 elements");             \
    _Static_assert((bytes) > 0 && ((bytes) & 7) == 0,                                              \
                   "an element of a queue in WRAM has a positive multiple of 8 bytes");            \
    __host uint8_t __##name##_data[(1 << (log_elements)) * (bytes)];                               \
    __dma_aligned uint8_t __##name##_tmp_data[NR_TASKLETS * (bytes)];                              \
    __host struct type name = {.data = __##name##_data,                                            \
                               .tmp_data = __##name##_tmp_data,                                    \
                               .ptr_size = (log_elements),                                         \
                               .data_size = (bytes)};

#define INPUT_FIFO_INIT(name, log_elements, bytes)                                                 \
    __emu_fifo(dpu_input_fifo_t, name, log_elements, bytes)
#define OUTPUT_FIFO_INIT(name, log_elements, bytes)                                                \
    __emu_fifo(dpu_output_fifo_t, name, log_elements, bytes)

bool is_input_fifo_empty(struct dpu_input_fifo_t *fifo);
uint8_t *input_fifo_peek(struct dpu_input_fifo_t *fifo); /* its first element */
void input_fifo_pop(struct dpu_input_fifo_t *fifo);
bool is_output_fifo_full(struct dpu_output_fifo_t *fifo);
void output_fifo_push(struct dpu_output_fifo_t *fifo, const uint8_t *data);

/* Until `*active` is 0 and the input is used up: all tasklets call `process_input` with each
 * element, then tasklet 0 `reduce(input, output, ctx)` and pushes the output. */
void process_inputs_all_tasklets(struct dpu_input_fifo_t *input_fifo,
                                 struct dpu_output_fifo_t *output_fifo,
                                 void (*process_input)(uint8_t *, void *),
                                 void (*reduce)(uint8_t *, uint8_t *, void *), void *ctx,
                                 barrier_t *barrier, volatile uint64_t *active);

/* The same, each element by one tasklet, which gets a copy of it and makes the output from it. */
void process_inputs_each_tasklet(struct dpu_input_fifo_t *input_fifo,
                                 struct dpu_output_fifo_t *output_fifo,
                                 void (*process_input)(uint8_t *, uint8_t *), mutex_id_t mutex,
                                 volatile uint64_t *active);

#endif
