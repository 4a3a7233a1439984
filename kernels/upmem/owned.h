// What the host and the DPU program "owned" have in common. See dpu/owned.c.

#ifndef ACCEL_RL_UPMEM_OWNED_H
#define ACCEL_RL_UPMEM_OWNED_H

#include <stdint.h>

// Parameters of a launch, the same for all DPUs. Host variable `parameters`.
typedef struct {
  uint32_t seed, first_pass, num_passes;
  uint32_t alpha;         // bits of a table entry
  uint32_t explore;       // epsilon in 1/65,536
  uint32_t actions;       // A
  uint32_t run_bytes;     // values of runs, of one table
  uint32_t operands;      // bytes of the workspace with counter, runs and values
  uint32_t buffer_shift;  // a tasklet's row buffer has 1 << buffer_shift bytes
  uint32_t count_instructions;
} arl_owned_parameters;

// Lane of a DPU. Host variable `lanes`, [ARL_LANES].
typedef struct {
  uint32_t row, rows;  // its records, in the DPU's
  uint32_t run;        // offset of its first run's value in the workspace
  uint32_t index;      // among the lanes of all DPUs
} arl_lane;

// Row: offset of W's value in the workspace, and bits of the reward as a table entry. MRAM heap:
// the rows of all lanes, one lane after the other. In the order RAN each run's rows come after a
// head, a record whose `reward` is their number.
typedef struct {
  uint32_t value, reward;
} arl_owned_row;

// In `value`: the row begins a run that is not its lane's first.
#define ARL_NEXT_RUN 0x80000000u

// MRAM variable `exchange`, ARL_WORKSPACE bytes: the start of the workspace.
//   counter [2 words] | runs [K][run_bytes], padded to 8 bytes | values of W
// The host writes runs and values before a launch, and reads counter and runs after it.
enum { ARL_COUNTER_BYTES = 8 };

_Static_assert(sizeof(arl_owned_parameters) % 8 == 0 && sizeof(arl_lane) % 8 == 0 &&
                   sizeof(arl_owned_row) == 8,
               "transfers want 8 bytes");

#endif
