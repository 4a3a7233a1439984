#include "scenario.h"

#include <string.h>

#include "check.h"
#include "draws.h"

static arl_wide_row encode(const truth_program *program, const truth_row *row) {
  return (arl_wide_row){
      .entry = (uint32_t)(row->state * program->actions + row->action),
      .next_entry = (uint32_t)(row->next_state * program->actions),
      .reward = truth_bits(program->numerics, row->reward),
      .meta = (uint32_t)row->next_action | (uint32_t)!row->ends << 16 | 1u << 17,  // and valid
  };
}

void scenario_draw(scenario_t *scenario, truth_program program, int64_t capacity,
                   const int32_t lengths[CHUNKS], uint64_t *state) {
  const int64_t size = program.states * program.actions;
  const size_t rows = (size_t)(CHUNKS * capacity);
  scenario->program = program;
  scenario->plain = must_allocate(rows * sizeof *scenario->plain);
  scenario->rows = must_allocate(rows * sizeof *scenario->rows);
  memset(scenario->rows, 0xFF, rows * sizeof *scenario->rows);
  for (int64_t d = 0; d < CHUNKS; ++d) {
    scenario->lengths[d] = lengths[d];
    scenario->dpus[d] = (uint32_t)random_bits(state);
    for (int64_t t = 0; t < lengths[d]; ++t) {
      truth_row *row = scenario->plain + d * capacity + t;
      *row = draw_row(program.numerics, program.states, program.actions, state);
      scenario->rows[d * capacity + t] = encode(&program, row);
    }
  }
  scenario->launch = (arl_launch){
      .rule = program.rule,
      .order = program.order,
      .stride = (uint32_t)program.stride,
      .block = (uint32_t)program.block,
      .actions = (uint32_t)program.actions,
      .size = (uint32_t)size,
      .explore = (uint32_t)program.explore,
      .seed = (uint32_t)random_bits(state),
      .first_pass = (uint32_t)random_between(state, 0, 1000),
      .num_passes = 2,
      .chunks = CHUNKS,
      .capacity = capacity,
      .entries = truth_tables(program.rule) * size,
      .starts = random_between(state, 0, 1) ? CHUNKS : 1,
      .rows = scenario->rows,
      .lengths = scenario->lengths,
      .dpus = scenario->dpus,
  };
}

void scenario_free(scenario_t *scenario) {
  free(scenario->plain);
  free(scenario->rows);
}

void scenario_train(const scenario_t *scenario, const double *table, double *tables,
                    uint32_t *visits) {
  const arl_launch *launch = &scenario->launch;
  const int64_t entries = launch->entries;
  memset(visits, 0, (size_t)(CHUNKS * entries) * sizeof *visits);
  for (int64_t d = 0; d < CHUNKS; ++d) {
    memcpy(tables + d * entries, table + d % launch->starts * entries,
           (size_t)entries * sizeof *table);
    for (uint32_t k = 0; k < launch->num_passes; ++k) {
      const truth_place place = {launch->seed, launch->first_pass + k, scenario->dpus[d]};
      truth_pass(&scenario->program, place, scenario->plain + d * launch->capacity,
                 scenario->lengths[d], tables + d * entries, visits + d * entries);
    }
  }
}
