/* Transfers between MRAM and WRAM. The engine checks and times them. */
#include <mram.h>

#include "runtime.h"

void mram_read(const __mram_ptr void *from, void *to, unsigned int nb_of_bytes) {
    engine_after(COST_DMA)->dma((uint32_t)(uintptr_t)from, to, nb_of_bytes, EMU_READ, CALLER);
}

void mram_write(const void *from, __mram_ptr void *to, unsigned int nb_of_bytes) {
    /* The engine only reads what is written to MRAM. */
    engine_after(COST_DMA)->dma((uint32_t)(uintptr_t)to, (void *)(uintptr_t)from, nb_of_bytes,
                                EMU_WRITE, CALLER);
}
