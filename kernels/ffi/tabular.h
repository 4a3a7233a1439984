// What handlers of tabular training share.

#ifndef ACCEL_RL_FFI_TABULAR_H
#define ACCEL_RL_FFI_TABULAR_H

#include "frame.h"

#define ARL_EXPORT __attribute__((visibility("default")))

// How many items a thread takes at a time, of `rows` row updates each; sizes of empty operands may
// be so large that their product is only good as an estimate.
int64_t arl_grain(const arl_pool *pool, int64_t items, double rows);

// The error for what accel_rl_tabular_examine found in chunks of `capacity` rows, for tables of
// `size` entries; NULL where it found nothing.
XLA_FFI_Error *arl_check_verdict(const XLA_FFI_CallFrame *frame, const int32_t *verdict,
                                 int64_t capacity, uint32_t size, uint32_t actions);

// An error where a chunk's length is not in [0, capacity].
XLA_FFI_Error *arl_check_lengths(const XLA_FFI_CallFrame *frame, const int32_t *lengths,
                                 int64_t chunks, int64_t capacity);

#endif
