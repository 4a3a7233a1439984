/* Allocates in all launches but the second. The heap is as the last one left it, until a reset. */
#include <alloc.h>
#include <mram.h>
#include <stdint.h>

__mram uint32_t initial[2] = {7, 8};
__mram_noinit uint32_t sums[2];
__host uint32_t reset, launches, kept, distance;
static uint32_t *first;

int main(void) {
    if (launches++ == 0 || reset) mem_reset();
    uint32_t *const block = launches != 2 ? mem_alloc(64) : first;
    if (launches == 1) {
        first = block;
        *first = 4711;
    }
    kept = *first;
    distance = (uint32_t)(block - first);
    for (uint32_t i = 0; i < 2; ++i) { /* MRAM variables by name, as the vendor's compiler allows */
        initial[i] += i;
        sums[i] = initial[0] + initial[1];
    }
    return 0;
}
