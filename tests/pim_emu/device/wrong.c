/* Asks the library for what it must refuse: WRONG says what. */
#include <alloc.h>
#include <assert.h>
#include <defs.h>
#include <mram.h>
#include <mram_unaligned.h>
#include <perfcounter.h>
#include <stdlib.h>
#include <vmutex.h>

VMUTEX_INIT(locks, 8, 1)
__mram_noinit uint8_t there[64];
static __dma_aligned uint8_t here[64];

static int deep(int left) {
    volatile char room[200];
    room[0] = (char)left;
    return left == 0 ? room[0] : deep(left - 1) + room[0];
}

int main(void) {
    mem_reset();
    switch (WRONG) {
    case 1: assert(me() == 99); break;
    case 2: for (;;) mem_alloc(1000); break;
    case 3: mram_write_unaligned(here + 1, there + 2, 5); break;
    case 4: vmutex_unlock(&locks, 3); break;
    case 5: buddy_alloc(16); break;
    case 6: halt(); break;
    case 7: return deep(100000);
    case 8: abort(); break;
    case 9: mram_read_unaligned(there, here, 2049); break;
    case 10: perfcounter_config(COUNT_ENABLE_BOTH, true); break;
    }
    return 0;
}
