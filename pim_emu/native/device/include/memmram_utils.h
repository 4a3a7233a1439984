/* Sizes and addresses of transfers rounded to what DMA takes. */
#ifndef DPU_MEMMRAM_UTILS_H
#define DPU_MEMMRAM_UTILS_H

#define DMA_ALIGNMENT 8
#define DMA_OFF_MASK (DMA_ALIGNMENT - 1)
#define MRAM_CACHE_SIZE 8 /* bytes that an access without mram_read or mram_write moves */

/* Round up: to a mask's multiple, a power of two, or what DMA needs. */
#define ALIGN_MASK(x, mask) (((x) + (mask)) & ~(mask))
#define ALIGN(x, a) ALIGN_MASK((x), (a) - 1)
#define DMA_ALIGNED(x) ALIGN((x), DMA_ALIGNMENT)

#ifndef MIN
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#endif

#endif
