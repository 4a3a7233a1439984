/* Queues in WRAM between the host and the DPU. */
#include <defs.h>
#include <string.h>
#include <wramfifo.h>

#include "runtime.h"

#define COST_FIFO 12

static uint8_t *element(uint8_t *data, uint64_t at, uint32_t ptr_size, uint32_t data_size) {
    return data + MASK_WRAM_FIFO_PTR(ptr_size, at) * data_size;
}

bool is_input_fifo_empty(struct dpu_input_fifo_t *fifo) {
    emu_count += COST_FIFO;
    return fifo->read_ptr == fifo->write_ptr;
}

uint8_t *input_fifo_peek(struct dpu_input_fifo_t *fifo) {
    emu_count += COST_FIFO;
    return element(fifo->data, fifo->read_ptr, fifo->ptr_size, fifo->data_size);
}

void input_fifo_pop(struct dpu_input_fifo_t *fifo) {
    emu_count += COST_FIFO;
    ++fifo->read_ptr;
}

static bool has_room(struct dpu_output_fifo_t *fifo) {
    return fifo->write_ptr + fifo->nb_reserved - fifo->read_ptr < WRAM_FIFO_SIZE(fifo->ptr_size);
}

bool is_output_fifo_full(struct dpu_output_fifo_t *fifo) {
    emu_count += COST_FIFO;
    return !has_room(fifo);
}

void output_fifo_push(struct dpu_output_fifo_t *fifo, const uint8_t *data) {
    uint8_t *const to = element(fifo->data, fifo->write_ptr, fifo->ptr_size, fifo->data_size);
    engine_after(COST_FIFO + COST_COPY(fifo->data_size))->copy(to, data, fifo->data_size, CALLER);
    ++fifo->write_ptr; /* after the data: the host may be looking */
}

/* Let others go on, the host among them. */
static void wait_a_moment(const void *pc) { engine_after(COST_FIFO)->yield(pc); }

void process_inputs_all_tasklets(struct dpu_input_fifo_t *input_fifo,
                                 struct dpu_output_fifo_t *output_fifo,
                                 void (*process_input)(uint8_t *, void *),
                                 void (*reduce)(uint8_t *, uint8_t *, void *), void *ctx,
                                 barrier_t *barrier, volatile uint64_t *active) {
    const void *const pc = CALLER;
    static OUTSIDE_WRAM bool last; /* decided by tasklet 0, for all */
    for (;;) {
        if (me() == 0) {
            while ((last = is_input_fifo_empty(input_fifo)) && *active) wait_a_moment(pc);
        }
        barrier_wait(barrier);
        if (last) return;
        process_input(input_fifo_peek(input_fifo), ctx);
        barrier_wait(barrier);
        if (me() == 0) {
            while (!has_room(output_fifo)) wait_a_moment(pc);
            reduce(input_fifo_peek(input_fifo), output_fifo->tmp_data, ctx);
            output_fifo_push(output_fifo, output_fifo->tmp_data);
            input_fifo_pop(input_fifo);
        }
    }
}

void process_inputs_each_tasklet(struct dpu_input_fifo_t *input_fifo,
                                 struct dpu_output_fifo_t *output_fifo,
                                 void (*process_input)(uint8_t *, uint8_t *), mutex_id_t mutex,
                                 volatile uint64_t *active) {
    const void *const pc = CALLER;
    uint8_t *const input = input_fifo->tmp_data + me() * input_fifo->data_size;
    uint8_t *const output = output_fifo->tmp_data + me() * output_fifo->data_size;
    for (;;) {
        mutex_lock(mutex);
        const bool empty = is_input_fifo_empty(input_fifo);
        /* The place for the output is reserved with the input, so that it cannot be lacking. */
        const bool mine = !empty && has_room(output_fifo);
        if (mine) {
            memcpy(input, input_fifo_peek(input_fifo), input_fifo->data_size);
            input_fifo_pop(input_fifo);
            ++output_fifo->nb_reserved;
        }
        mutex_unlock(mutex);
        if (mine) {
            process_input(input, output);
            mutex_lock(mutex);
            --output_fifo->nb_reserved;
            output_fifo_push(output_fifo, output);
            mutex_unlock(mutex);
        } else if (empty && !*active) {
            return;
        } else {
            wait_a_moment(pc);
        }
    }
}
