/* Takes what is in a queue and puts what becomes of it into another. */
#include <barrier.h>
#include <defs.h>
#include <stdint.h>
#include <wramfifo.h>

INPUT_FIFO_INIT(in, 4, 16)
OUTPUT_FIFO_INIT(out, 4, 8)
BARRIER_INIT(meeting, NR_TASKLETS);
MUTEX_INIT(mutex);
__host uint32_t elements, each;
__host uint64_t written, active, calls;

static void count(uint8_t *input, void *step) {
    (void)input;
    __atomic_fetch_add(&calls, *(uint64_t *)step, __ATOMIC_RELAXED);
}

static void add(uint8_t *input, uint8_t *output) {
    const uint64_t *const numbers = (uint64_t *)input;
    *(uint64_t *)output = numbers[0] + numbers[1];
}

static void add_and_count(uint8_t *input, uint8_t *output, void *step) {
    add(input, output);
    *(uint64_t *)output += 1000 * *(uint64_t *)step;
}

int main(void) {
    uint64_t step = 3;
    if (me() == 0) in.write_ptr = elements; /* as the host would, which has filled in the data */
    barrier_wait(&meeting);
    if (each)
        process_inputs_each_tasklet(&in, &out, add, mutex, &active);
    else
        process_inputs_all_tasklets(&in, &out, count, add_and_count, &step, &meeting, &active);
    if (me() == 0) written = out.write_ptr;
    return 0;
}
