#include <mram.h>
#include <mutex.h>
#include <sem.h>
#include <string.h>

#include "ring.h"

#define SLOTS 4

SEMAPHORE_INIT(free_slots, SLOTS);
SEMAPHORE_INIT(filled_slots, 0);
MUTEX_INIT(head_mutex);

__dma_aligned static uint8_t slots[SLOTS][BLOCK_SIZE];
static uint32_t numbers[SLOTS];
static uint32_t head, tail;

void ring_reset(void) {
    head = tail = 0;
}

void ring_put(uint32_t block, uint32_t mram_addr) {
    sem_take(&free_slots);
    const uint32_t slot = tail++ % SLOTS;
    numbers[slot] = block;
    if (block != END_OF_BLOCKS)
        mram_read((__mram_ptr void const *)mram_addr, slots[slot], BLOCK_SIZE);
    sem_give(&filled_slots);
}

uint32_t ring_get(uint8_t *buffer) {
    sem_take(&filled_slots);
    /* Copied before the next tasklet may take a slot: slots come free in order. */
    mutex_lock(head_mutex);
    const uint32_t slot = head++ % SLOTS;
    const uint32_t block = numbers[slot];
    if (block != END_OF_BLOCKS)
        memcpy(buffer, slots[slot], BLOCK_SIZE);
    mutex_unlock(head_mutex);
    sem_give(&free_slots);
    return block;
}
