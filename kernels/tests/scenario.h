// Launches to test with: chunks of drawn rows, as kernels take them and as truth.h does.

#ifndef ACCEL_RL_TESTS_SCENARIO_H
#define ACCEL_RL_TESTS_SCENARIO_H

#include "launch.h"
#include "truth.h"

enum { CHUNKS = 3 };

typedef struct {
  truth_program program;  // its rates are those of `plain_tables`
  truth_row *plain;       // [D][T]
  arl_wide_row *rows;     // [D][T]; those beyond a chunk's length must not be read as rows
  int32_t lengths[CHUNKS];
  uint32_t dpus[CHUNKS];
  arl_launch launch;  // without table, rates, tables and replicas
} scenario_t;

// Chunks of `lengths` rows in room for `capacity`.
void scenario_draw(scenario_t *scenario, truth_program program, int64_t capacity,
                   const int32_t lengths[CHUNKS], uint64_t *state);
void scenario_free(scenario_t *scenario);

// What the launch makes of a table [G][E]: tables [D][E], and visits [D][E].
void scenario_train(const scenario_t *scenario, const double *table, double *tables,
                    uint32_t *visits);

#endif
