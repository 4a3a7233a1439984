/* Reading MRAM in sequence through a cache in WRAM.
 *
 * Items of up to SEQREAD_CACHE_SIZE bytes lie in one piece wherever they begin: the cache holds
 * twice that. Define SEQREAD_CACHE_SIZE as a power of two from 32 to 1,024 before the inclusion.
 */
#ifndef DPU_SEQREAD_H
#define DPU_SEQREAD_H

#include <macro_utils.h>
#include <mram.h>
#include <stdint.h>

#ifndef SEQREAD_CACHE_SIZE
#define SEQREAD_CACHE_SIZE 256
#endif
_Static_assert(SEQREAD_CACHE_SIZE >= 32 && SEQREAD_CACHE_SIZE <= 1024 &&
                   (SEQREAD_CACHE_SIZE & (SEQREAD_CACHE_SIZE - 1)) == 0,
               "SEQREAD_CACHE_SIZE must be 32, 64, 128, 256, 512 or 1024");

typedef uintptr_t seqreader_buffer_t;
typedef struct {
    seqreader_buffer_t wram_cache;
    uintptr_t mram_addr; /* of the cache's first byte */
} seqreader_t;

#define __SEQREAD_NAME(suffix) __CONCAT(__CONCAT(seqread, SEQREAD_CACHE_SIZE), suffix)
#define seqread_alloc __SEQREAD_NAME(_alloc)
#define seqread_init __SEQREAD_NAME(_init)
#define seqread_get __SEQREAD_NAME(_get)
#define seqread_seek __SEQREAD_NAME(_seek)
#define seqread_tell __SEQREAD_NAME(_tell)

seqreader_buffer_t seqread_alloc(void);

/* Start at an MRAM address, aligned or not. Returns where its byte is in the cache. */
void *seqread_init(seqreader_buffer_t cache, __mram_ptr void *mram_addr, seqreader_t *reader);

/* Go on by `inc` bytes, less than SEQREAD_CACHE_SIZE; the new pointer. */
void *seqread_get(void *ptr, uint32_t inc, seqreader_t *reader);

void *seqread_seek(__mram_ptr void *mram_addr, seqreader_t *reader);
__mram_ptr void *seqread_tell(void *ptr, seqreader_t *reader);

#endif
