// Workers share blocks: each aims its rows and lists the updates, then owners apply theirs, whoever
// comes first. Tables become what one worker makes of them.

#include "check.h"
#include "draws.h"
#include "share.h"
#include "truth.h"
#include "values.h"

enum { STATES = 13, ACTIONS = 3, SIZE = STATES * ACTIONS, MOST_WORKERS = 100, ROUNDS = 4 };
typedef enum { FORWARDS, BACKWARDS, SHUFFLED, WAYS } way_t;

static uint64_t state = 0x5A4Eull;

// What workers train, and the same in plain terms.
typedef struct {
  truth_program plain;
  double table[SIZE];
  arl_value q[SIZE], alpha, epsilon, discounts[2];
} learner_t;

static void draw_learner(learner_t *learner) {
  learner->plain = (truth_program){.numerics = ARL_NUMERICS,
                                   .rule = EXPECTED_SARSA,
                                   .states = STATES,
                                   .actions = ACTIONS,
                                   .alpha = draw_rate(ARL_NUMERICS, &state),
                                   .gamma = draw_rate(ARL_NUMERICS, &state),
                                   .epsilon = draw_rate(ARL_NUMERICS, &state)};
  set_lane(&learner->alpha, 0, learner->plain.alpha);
  set_lane(&learner->epsilon, 0, learner->plain.epsilon);
  set_lane(learner->discounts, 0, 0);
  set_lane(learner->discounts + 1, 0, learner->plain.gamma);
  for (int e = 0; e < SIZE; ++e) {
    learner->table[e] = draw_entry(ARL_NUMERICS, &state);
    set_lane(learner->q + e, 0, learner->table[e]);
  }
}

// Rows half of which visit few entries, so that many updates meet in one.
static truth_row draw_meeting_row(void) {
  truth_row row = draw_row(ARL_NUMERICS, STATES, ACTIONS, &state);
  if (random_bits(&state) % 2) row.state %= 2;
  return row;
}

static arl_row make_row(const truth_row *from) {
  arl_row row = {.entry = (uint32_t)(from->state * ACTIONS + from->action),
                 .next_entry = (uint32_t)(from->next_state * ACTIONS),
                 .bootstrap = !from->ends};
  const uint32_t bits = truth_bits(ARL_NUMERICS, from->reward);
  memcpy(&row.reward, &bits, sizeof bits);
  return row;
}

static void train_plainly(learner_t *learner, const truth_row *rows, uint32_t count) {
  const truth_choice choice = {0, 0};
  double *targets = must_allocate(count * sizeof *targets);
  for (uint32_t k = 0; k < count; ++k)
    targets[k] = truth_target(&learner->plain, rows + k, choice, learner->table);
  for (uint32_t k = 0; k < count; ++k) {
    double *entry = learner->table + rows[k].state * ACTIONS + rows[k].action;
    *entry = truth_move(&learner->plain, *entry, targets[k]);
  }
  free(targets);
}

// In which order workers take their turns.
static void arrange(way_t way, uint32_t workers, uint32_t *turns) {
  for (uint32_t k = 0; k < workers; ++k) turns[k] = way == BACKWARDS ? workers - 1 - k : k;
  for (uint32_t k = workers; way == SHUFFLED && k-- > 1;) {
    const uint32_t j = (uint32_t)random_between(&state, 0, k), moved = turns[k];
    turns[k] = turns[j];
    turns[j] = moved;
  }
}

// One block. `heads` is what blocks before it left.
static void test_block(learner_t *learner, uint16_t *heads, uint32_t count, uint32_t workers,
                       way_t way) {
  const arl_program program = {
      .rule = ARL_EXPECTED_SARSA, .block = count, .actions = ACTIONS, .size = SIZE, .groups = 1};
  const arl_rates rates = {&learner->alpha, &learner->epsilon, learner->discounts};
  const arl_updates updates = {must_allocate(count * sizeof *updates.entries),
                               must_allocate(count * sizeof *updates.targets)};
  const arl_lists lists = {heads, must_allocate(count * sizeof *lists.next)};
  truth_row *plain = must_allocate(count * sizeof *plain);
  uint32_t turns[MOST_WORKERS];
  arl_value before[SIZE];
  for (uint32_t k = 0; k < count; ++k) plain[k] = draw_meeting_row();
  arrange(way, workers, turns);
  for (uint32_t turn = 0; turn < workers; ++turn) {
    const arl_span share = arl_share_of(count, turns[turn], workers);
    for (uint32_t k = share.first; k < share.end; ++k) {
      const arl_row row = make_row(plain + k);
      arl_aim(program, &row, learner->q, &rates, updates, k);
    }
    arl_list(lists, updates, share, turns[turn], workers);
  }
  arrange(way, workers, turns);
  for (uint32_t turn = 0; turn < workers; ++turn) {
    const uint32_t owner = turns[turn];
    memcpy(before, learner->q, sizeof before);
    arl_apply_owned(program, updates, lists, learner->q, &rates, owner, workers);
    for (uint32_t e = 0; e < SIZE; ++e)
      CHECK(
          arl_owner(e, workers) == owner || memcmp(learner->q + e, before + e, sizeof *before) == 0,
          "owner %u of %u changed entry %u", owner, workers, e);
  }
  train_plainly(learner, plain, count);
  for (uint32_t e = 0; e < SIZE; ++e) {
    const double want = learner->table[e], got = get_lane(learner->q + e, 0);
    CHECK(got == want, "%u workers, %u rows, entry %u: %.9g, not %.9g", workers, count, e, got,
          want);
  }
  for (uint32_t k = 0; k < workers * workers; ++k)
    CHECK(heads[k] == ARL_NO_UPDATE, "%u workers, %u rows: list %u begins at %u", workers, count, k,
          heads[k]);
  free(updates.entries);
  free(updates.targets);
  free(lists.next);
  free(plain);
}

// Blocks one after the other.
static void test_workers(uint32_t workers, const uint32_t *counts, int num_counts, way_t way) {
  learner_t learner;
  uint16_t *heads = must_allocate(workers * workers * sizeof *heads);
  draw_learner(&learner);
  for (uint32_t k = 0; k < workers * workers; ++k) heads[k] = ARL_NO_UPDATE;
  for (int k = 0; k < num_counts; ++k) test_block(&learner, heads, counts[k], workers, way);
  free(heads);
}

// Shares lie in order, one at the other, and none is larger than it must be.
static void test_shares(uint32_t count, uint32_t workers) {
  uint32_t end = 0;
  for (uint32_t worker = 0; worker < workers; ++worker) {
    const arl_span share = arl_share_of(count, worker, workers);
    CHECK(share.first == end && share.end >= end && share.end - end <= (count - 1) / workers + 1,
          "%u rows, worker %u of %u: from %u to %u", count, worker, workers, share.first,
          share.end);
    end = share.end;
  }
  CHECK(end == count, "%u rows, %u workers: up to %u", count, workers, end);
}

// Every owner has about as many entries as others.
static void test_spread(uint32_t entries, uint32_t workers) {
  uint32_t owned[MOST_WORKERS] = {0};
  for (uint32_t e = 0; e < entries; ++e) {
    const uint32_t owner = arl_owner(e, workers);
    CHECK(owner < workers, "entry %u has owner %u of %u", e, owner, workers);
    if (owner < workers) ++owned[owner];
  }
  for (uint32_t k = 0; k < workers; ++k)
    CHECK(2 * owned[k] * workers >= entries && owned[k] * workers <= 2 * entries,
          "%u of %u entries are those of owner %u of %u", owned[k], entries, k, workers);
}

int main(void) {
  static const uint32_t numbers[] = {1, 2, 11, 16, 24, MOST_WORKERS};
  static const uint32_t tables[] = {64, 192, 3000};  // FrozenLake, CliffWalking, Taxi
  for (int n = 0; n < 6; ++n) {
    const uint32_t workers = numbers[n], fewer = workers > 1 ? workers - 1 : 1;
    const uint32_t counts[] = {1, fewer, 200, 3 * workers + 1, 1, workers, 200};
    const int num_counts = sizeof counts / sizeof *counts;
    for (int round = 0; round < ROUNDS * WAYS; ++round)
      test_workers(workers, counts, num_counts, (way_t)(round % WAYS));
    for (uint32_t count = 1; count <= 1000; ++count) test_shares(count, workers);
    test_shares(ARL_MAX_SHARED_BLOCK, workers);
  }
  test_workers(24, (const uint32_t[]){ARL_MAX_SHARED_BLOCK, 128}, 2, SHUFFLED);
  for (int k = 0; k < 3; ++k)
    for (int n = 2; n < 5; ++n) test_spread(tables[k], numbers[n]);
  return finish();
}
