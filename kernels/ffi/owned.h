// Passes by owner: each lane takes the rows of one entry after another, a run of rows each, against
// values of next states that stay the same.

#ifndef ACCEL_RL_FFI_OWNED_H
#define ACCEL_RL_FFI_OWNED_H

#include <stdbool.h>
#include <stdint.h>

// What a rule draws for a row. Of two tables (ARL_DRAWN_TABLE) one learns.
typedef enum { ARL_NOTHING_DRAWN, ARL_DRAWN_ACTION, ARL_DRAWN_TABLE, ARL_CHOICES } arl_choice;

// Bit 31 of a record's index: the row is the first of its run.
static const uint32_t arl_first_of_run = UINT32_C(1) << 31;

typedef struct {
  arl_choice choice;
  bool rotates;  // the order RAN: each run from a random row on, cyclically
  uint32_t actions, explore, seed, first_pass, num_passes;
  int64_t chunks, rows, lanes;      // D, T of the longest lane, L
  int64_t slots, values, replicas;  // S, for the runs of a DPU, M, R
  const uint32_t *records;          // [D][T][2][L]: indices of values; bits of rewards
  const int32_t *lengths;           // [D], rows of all lanes together
  const int32_t *first_slots;       // [D][L], of each lane's first run
  const uint32_t *dpus;             // [D], global indices
  const void *starts;               // [R][D][K][S], entries
  const void *next_values;          // [R][M], entries
  const void *alpha;                // [R], entries
  void *runs;                       // [R][D][K][S], entries, the result
} arl_owned;

enum { ARL_BAD_INDEX = 1, ARL_BAD_SLOT = 2, ARL_NO_MEMORY = 3 };

// Train items first ... last - 1; item i is replica i % R of chunk i / R. Returns 0, or what was
// wrong with a record or a slot, or that memory is short; whatever they are, nothing outside of the
// operands is touched.
typedef int arl_owned_run(const arl_owned *launch, int64_t first, int64_t last);

#endif
