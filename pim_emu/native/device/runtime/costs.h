/* DPU instructions that the library's functions are modelled to execute. All of them are assumed:
 * counted on a straightforward implementation for a 32-bit in-order core with loads and stores of 4
 * bytes, not measured. What a mutex or a DMA transfer waits for is the engine's to add.
 */
#ifndef EMU_COSTS_H
#define EMU_COSTS_H

#define COST_CALL 2    /* call and return */
#define COST_DMA 1     /* one instruction, inlined */
#define COST_MUTEX 1   /* acquire or release, inlined */
#define COST_VMUTEX 10 /* find the bit, take the mutex, change, give the mutex */
#define COST_BARRIER 18   /* count, queue, stop; the last one resumes the others */
#define COST_SEMAPHORE 14 /* the same for one tasklet */
#define COST_HANDSHAKE 14
#define COST_PERFCOUNTER 4

#define COST_MEM_ALLOC 14
#define COST_FSB 10                          /* take or give back the head of a list */
#define COST_FSB_ALLOC(blocks) (20 + 4 * (blocks))
#define COST_BUDDY(units) (40 + 6 * (units)) /* visit the heads of blocks */
#define COST_BUDDY_INIT(bytes) (30 + (bytes) / 64)

#define COST_SEQREAD_GET 6  /* while the item is in the cache */
#define COST_SEQREAD_LOAD 12

/* memcpy and its kin: a load and a store for 4 bytes. */
#define COST_COPY(bytes) (12 + (bytes) / 2)
#define COST_FILL(bytes) (10 + (bytes) / 4)
#define COST_COMPARE(bytes) (8 + (bytes))
#define COST_STRING(bytes) (8 + 4 * (bytes)) /* byte by byte */
#define COST_DIGITS(bytes) (20 + 12 * (bytes))

/* A word of 8 bytes, as weights.toml has it. */
#define COST_MRAM_LOAD 12
#define COST_MRAM_STORE 24

/* The format is written to MRAM in blocks of 8 bytes, with the arguments: the host formats. */
#define COST_PRINT(bytes) (120 + 20 * (bytes))

#endif
