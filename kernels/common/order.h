// In which order a pass takes the rows of a chunk.

#ifndef ACCEL_RL_COMMON_ORDER_H
#define ACCEL_RL_COMMON_ORDER_H

#include "random.h"

typedef enum { ARL_SEQ, ARL_STR, ARL_RAN, ARL_RAN_REPLACEMENT } arl_order;

enum { ARL_RANDOM_BLOCK = 128, ARL_MAX_RANDOM_BLOCKS = 65536 };

// Where a pass stands in its order.
typedef struct {
  uint32_t length;         // rows of the chunk
  uint32_t stride;         // of STR
  uint32_t next, offset;   // SEQ and STR: next row; STR: first row of the present stride
  uint32_t block, within;  // RAN: position among the blocks, and in the order within one
  uint32_t state;          // RAN_REPLACEMENT
  const uint16_t *blocks;
  const uint8_t *rows;
} arl_cursor;

// Blocks of a chunk of `length` rows, those that RAN shuffles.
ARL_INLINE uint32_t arl_random_blocks(uint32_t length) {
  return length / ARL_RANDOM_BLOCK + (length % ARL_RANDOM_BLOCK != 0);
}

// A pass's order from its start. RAN shuffles into `blocks`, of arl_random_blocks(length) entries,
// and `rows`, of ARL_RANDOM_BLOCK; other orders use neither.
ARL_INLINE arl_cursor arl_start(arl_order order, uint32_t stride, uint32_t length, uint32_t key,
                                uint16_t *blocks, uint8_t *rows) {
  if (order == ARL_RAN) {
    uint32_t count = arl_random_blocks(length);
    for (uint32_t i = 0; i < ARL_RANDOM_BLOCK; ++i) rows[i] = (uint8_t)i;
    for (uint32_t i = ARL_RANDOM_BLOCK - 1; i > 0; --i) {
      uint32_t j = arl_below(arl_draw(&key), i + 1);
      uint8_t other = rows[j];
      rows[j] = rows[i];
      rows[i] = other;
    }
    for (uint32_t i = 0; i < count; ++i) blocks[i] = (uint16_t)i;
    for (uint32_t i = count; i-- > 1;) {
      uint32_t j = arl_below(arl_draw(&key), i + 1);
      uint16_t other = blocks[j];
      blocks[j] = blocks[i];
      blocks[i] = other;
    }
  }
  return (arl_cursor){
      .length = length, .stride = stride, .state = key, .blocks = blocks, .rows = rows};
}

// The next row; may be asked for `length` times.
ARL_INLINE uint32_t arl_next(arl_order order, arl_cursor *at) {
  uint32_t row;
  switch (order) {
    case ARL_SEQ:
      return at->next++;
    case ARL_STR:
      row = at->next;
      at->next += at->stride;
      if (at->next >= at->length) at->next = ++at->offset;
      return row;
    case ARL_RAN:
      do {  // the short block lacks some of the positions
        row = at->blocks[at->block] * (uint32_t)ARL_RANDOM_BLOCK + at->rows[at->within];
        at->within = (at->within + 1) % ARL_RANDOM_BLOCK;
        at->block += at->within == 0;
      } while (row >= at->length);
      return row;
    default:
      return arl_below_large(arl_draw(&at->state), at->length);
  }
}

#endif
