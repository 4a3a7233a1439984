// A target block: targets from the table at its start, then updates in row order.

#include "block.h"
#include "check.h"
#include "draws.h"
#include "truth.h"
#include "values.h"

enum {
  STATES = 13,
  ACTIONS = 3,
  SIZE = STATES * ACTIONS,
  ROWS = 200,
  MOST_GROUPS = 3,
  ROUNDS = 100
};

static uint64_t state = 0xB10Cull;

// One table of each lane of each group.
typedef struct {
  double entries[MOST_GROUPS][LANES][SIZE];
} tables_t;

typedef struct {
  truth_program programs[MOST_GROUPS][LANES];
  arl_value *alpha, *epsilon, *discounts;
} learners_t;

static void draw_learners(learners_t *learners, uint32_t groups) {
  learners->alpha = allocate_values(groups);
  learners->epsilon = allocate_values(groups);
  learners->discounts = allocate_values(2 * groups);
  for (uint32_t g = 0; g < groups; ++g)
    for (int lane = 0; lane < LANES; ++lane) {
      truth_program program = {.numerics = ARL_NUMERICS,
                               .rule = EXPECTED_SARSA,
                               .states = STATES,
                               .actions = ACTIONS,
                               .alpha = draw_rate(ARL_NUMERICS, &state),
                               .gamma = draw_rate(ARL_NUMERICS, &state),
                               .epsilon = draw_rate(ARL_NUMERICS, &state)};
      learners->programs[g][lane] = program;
      set_lane(learners->alpha + g, lane, program.alpha);
      set_lane(learners->epsilon + g, lane, program.epsilon);
      set_lane(learners->discounts + g, lane, 0);
      set_lane(learners->discounts + groups + g, lane, program.gamma);
    }
}

static void train_plainly(const learners_t *learners, uint32_t groups, const truth_row *rows,
                          uint32_t count, tables_t *tables) {
  const truth_choice choice = {0, 0};
  for (uint32_t g = 0; g < groups; ++g)
    for (int lane = 0; lane < LANES; ++lane) {
      const truth_program *program = &learners->programs[g][lane];
      double *table = tables->entries[g][lane], targets[ROWS];
      for (uint32_t k = 0; k < count; ++k)
        targets[k] = truth_target(program, rows + k, choice, table);
      for (uint32_t k = 0; k < count; ++k) {
        double *entry = table + rows[k].state * ACTIONS + rows[k].action;
        *entry = truth_move(program, *entry, targets[k]);
      }
    }
}

static void draw_tables(uint32_t groups, tables_t *tables, arl_value *q) {
  for (uint32_t g = 0; g < groups; ++g)
    for (int lane = 0; lane < LANES; ++lane)
      for (uint32_t e = 0; e < SIZE; ++e) {
        tables->entries[g][lane][e] = draw_entry(ARL_NUMERICS, &state);
        set_lane(q + e * groups + g, lane, tables->entries[g][lane][e]);
      }
}

// Rows that visit few entries, so that many updates meet in one.
static arl_row make_row(truth_row *from) {
  *from = draw_row(ARL_NUMERICS, STATES, ACTIONS, &state);
  if (random_bits(&state) % 2) from->state %= 2;
  arl_row row = {.entry = (uint32_t)(from->state * ACTIONS + from->action),
                 .next_entry = (uint32_t)(from->next_state * ACTIONS),
                 .bootstrap = !from->ends};
  const uint32_t bits = truth_bits(ARL_NUMERICS, from->reward);
  memcpy(&row.reward, &bits, sizeof bits);
  return row;
}

static void test_block(uint32_t groups, uint32_t count) {
  const arl_program program = {.rule = ARL_EXPECTED_SARSA,
                               .block = count,
                               .actions = ACTIONS,
                               .size = SIZE,
                               .groups = groups};
  static tables_t tables;
  learners_t learners;
  truth_row plain[ROWS];
  arl_value *q = allocate_values(SIZE * groups);
  const arl_updates updates = {must_allocate(count * sizeof *updates.entries),
                               allocate_values(count * groups)};
  draw_learners(&learners, groups);
  draw_tables(groups, &tables, q);
  const arl_rates rates = {learners.alpha, learners.epsilon, learners.discounts};
  for (uint32_t k = 0; k < count; ++k) {
    const arl_row row = make_row(plain + k);
    arl_aim(program, &row, q, &rates, updates, k);
  }
  for (uint32_t k = 0; k < count; ++k) arl_apply(program, updates, k, q, &rates);
  train_plainly(&learners, groups, plain, count, &tables);
  for (uint32_t g = 0; g < groups; ++g)
    for (int lane = 0; lane < LANES; ++lane)
      for (uint32_t e = 0; e < SIZE; ++e) {
        const double want = tables.entries[g][lane][e], got = get_lane(q + e * groups + g, lane);
        CHECK(got == want, "%u rows, entry %u, group %u, lane %d: %.9g, not %.9g", count, e, g,
              lane, got, want);
      }
  free(updates.entries);
  free(updates.targets);
  free(learners.alpha);
  free(learners.epsilon);
  free(learners.discounts);
  free(q);
}

int main(void) {
  for (int round = 0; round < ROUNDS; ++round)
    for (uint32_t groups = 1; groups <= MOST_GROUPS; groups += 2)
      test_block(groups, round % 4 == 0 ? 1 : ROWS - (uint32_t)round);
  return finish();
}
