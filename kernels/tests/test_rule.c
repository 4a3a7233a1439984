// Every rule on single rows, and what it draws, against the plain one; a table in each lane.

#include <math.h>

#include "check.h"
#include "draws.h"
#include "rule.h"
#include "truth.h"
#include "values.h"

enum { STATES = 3, MOST_ACTIONS = 9, MOST_ENTRIES = 2 * STATES * MOST_ACTIONS, ROUNDS = 400 };

static uint64_t state = 0x2017E5ull;

typedef struct {
  arl_value alpha, gamma, epsilon;
} rates_t;

static void draw_rates(truth_program *programs, rates_t *rates) {
  for (int lane = 0; lane < LANES; ++lane) {
    truth_program *program = programs + lane;
    program->alpha = draw_rate(ARL_NUMERICS, &state);
    program->gamma = draw_rate(ARL_NUMERICS, &state);
    program->epsilon = draw_rate(ARL_NUMERICS, &state);
    set_lane(&rates->alpha, lane, program->alpha);
    set_lane(&rates->gamma, lane, program->gamma);
    set_lane(&rates->epsilon, lane, program->epsilon);
  }
}

// One row, of a table whose values lie `stride` apart.
static void test_row(truth_program program, uint32_t stride) {
  const uint32_t actions = (uint32_t)program.actions, size = STATES * actions;
  const arl_rule rule = (arl_rule)program.rule;
  const int64_t entries = (int64_t)size * truth_tables(program.rule);
  truth_program programs[LANES];
  double tables[LANES][MOST_ENTRIES];
  arl_value *q = allocate_values((size_t)entries * stride);
  rates_t rates;
  for (int lane = 0; lane < LANES; ++lane) programs[lane] = program;
  draw_rates(programs, &rates);
  for (int64_t e = 0; e < entries * stride; ++e)
    for (int lane = 0; lane < LANES; ++lane) {
      const double entry = draw_entry(ARL_NUMERICS, &state);
      set_lane(q + e, lane, entry);
      if (e % stride == 0) tables[lane][e / stride] = entry;
    }

  const truth_row from = draw_row(ARL_NUMERICS, STATES, program.actions, &state);
  arl_row row = {.entry = (uint32_t)(from.state * program.actions + from.action),
                 .next_entry = (uint32_t)(from.next_state * program.actions),
                 .next_action = (uint32_t)from.next_action,
                 .bootstrap = !from.ends};
  const uint32_t bits = truth_bits(ARL_NUMERICS, from.reward);
  memcpy(&row.reward, &bits, sizeof bits);

  uint32_t stream = (uint32_t)random_bits(&state), expected = stream, peek = stream;
  if (program.explore < 0) program.explore += 2 + (truth_draw(&peek) >> 16);
  arl_resolve(rule, &row, &stream, (uint32_t)program.explore, size, actions);
  const truth_choice choice = truth_choose(&program, &from, &expected);
  const int64_t learns = (choice.learning * STATES + from.state) * program.actions + from.action;
  CHECK(stream == expected, "rule %d leaves the stream at %u", program.rule, stream);
  CHECK(row.entry == learns, "rule %d learns entry %u, not %lld", program.rule, row.entry,
        (long long)learns);

  const arl_value discount = from.ends ? arl_splat(0) : rates.gamma;
  const arl_value target =
      arl_target(rule, &row, q, discount, rates.epsilon, size, actions, stride);
  const arl_value moved = arl_move(q[row.entry * stride], target, rates.alpha);
  for (int lane = 0; lane < LANES; ++lane) {
    const double aim = truth_target(programs + lane, &from, choice, tables[lane]);
    const double want = truth_move(programs + lane, tables[lane][learns], aim);
    const double got = get_lane(&target, lane);
    CHECK(got == aim && (from.ends || signbit(got) == signbit(aim)),
          "rule %d, %u actions, lane %d: target %.9g, not %.9g", program.rule, actions, lane, got,
          aim);
    CHECK(get_lane(&moved, lane) == want, "rule %d, %u actions, lane %d: moved to %.9g, not %.9g",
          program.rule, actions, lane, get_lane(&moved, lane), want);
  }
  free(q);
}

int main(void) {
  // Below 0: as much as the row's draw, or one more.
  static const int64_t explores[] = {0, 6554, 65535, 65536, -2, -1};
  CHECK((int)ARL_RULES == RULES, "%d rules", ARL_RULES);
  for (int rule = 0; rule < RULES; ++rule) {
    CHECK(arl_tables((arl_rule)rule) == truth_tables(rule), "tables of rule %d", rule);
    for (int64_t actions = 1; actions <= MOST_ACTIONS; ++actions)
      for (int round = 0; round < ROUNDS; ++round) {
        const truth_program program = {.numerics = ARL_NUMERICS,
                                       .rule = rule,
                                       .states = STATES,
                                       .actions = actions,
                                       .explore = explores[round % 6]};
        test_row(program, round % 2 ? 3 : 1);
      }
  }
  return finish();
}
