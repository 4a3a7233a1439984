// Launches in every compiled form against the plain training of each replica: all instruction sets
// of this processor, numerics, rules, orders, target blocks, actions and numbers of replicas.

#include <string.h>

#include "check.h"
#include "draws.h"
#include "runs.h"
#include "scenario.h"

enum { STATES = 7, MOST_REPLICAS = 130, CAPACITY = 141, GUARD = 64 };

static const uint32_t UNTOUCHED = 0xA5A5A5A5;

static uint64_t state = 0x9A55E5ull;

// Tables and rates of many replicas, and what becomes of them.
typedef struct {
  int64_t count;                    // R
  double *table, *rates, *trained;  // [R][G][E], [3][R], [R][D][E]
} replicas_t;

static replicas_t draw_replicas(scenario_t *scenario, int64_t count) {
  const size_t entries = (size_t)scenario->launch.entries;
  const size_t start = (size_t)scenario->launch.starts * entries;
  truth_program *program = &scenario->program;
  double *const rates[] = {&program->alpha, &program->gamma, &program->epsilon};
  const replicas_t all = {
      .count = count,
      .table = must_allocate((size_t)count * start * sizeof(double)),
      .rates = must_allocate((size_t)count * 3 * sizeof(double)),
      .trained = must_allocate((size_t)count * CHUNKS * entries * sizeof(double)),
  };
  uint32_t *visits = must_allocate(CHUNKS * entries * sizeof *visits);
  for (int64_t r = 0; r < count; ++r) {
    double *table = all.table + (size_t)r * start;
    for (size_t e = 0; e < start; ++e) table[e] = draw_entry(program->numerics, &state);
    for (int k = 0; k < 3; ++k)
      all.rates[k * count + r] = *rates[k] = draw_rate(program->numerics, &state);
    scenario_train(scenario, table, all.trained + (size_t)r * CHUNKS * entries, visits);
  }
  free(visits);
  return all;
}

static void free_replicas(const replicas_t *all) {
  free(all->table);
  free(all->rates);
  free(all->trained);
}

static void to_bits(int numerics, const double *from, int64_t count, uint32_t *to) {
  for (int64_t k = 0; k < count; ++k) to[k] = truth_bits(numerics, from[k]);
}

static bool is_untouched(const uint32_t *words, int64_t count) {
  for (int64_t k = 0; k < count; ++k)
    if (words[k] != UNTOUCHED) return false;
  return true;
}

// Launch items one by one from the last to the first; those to come have nothing written yet.
static void run_backwards(const arl_launch *launch, arl_run *run) {
  const int64_t entries = launch->entries, tiles = arl_tiles(launch);
  for (int64_t item = CHUNKS * tiles - 1; item >= 0; --item) {
    CHECK(run(launch, item, item + 1) == 0, "item %lld", (long long)item);
    for (int64_t r = 0; r < launch->replicas; ++r)
      for (int64_t d = 0; d < CHUNKS; ++d)
        CHECK(d * tiles + r / ARL_TILE >= item ||
                  is_untouched((uint32_t *)launch->tables + (r * CHUNKS + d) * entries, entries),
              "item %lld changes replica %lld of chunk %lld", (long long)item, (long long)r,
              (long long)d);
  }
}

// Launch the first `replicas`, and compare each of their tables.
static void test_launch(const scenario_t *scenario, const replicas_t *all, arl_level level,
                        int64_t replicas, bool backwards) {
  const truth_program *program = &scenario->program;
  const int numerics = program->numerics;
  arl_launch launch = scenario->launch;
  const int64_t entries = launch.entries, results = replicas * CHUNKS * entries;
  const int64_t starts = replicas * launch.starts * entries;
  uint32_t *table = must_allocate((size_t)starts * sizeof *table);
  uint32_t *rates = must_allocate((size_t)(replicas * 3) * sizeof *rates);
  uint32_t *memory = must_allocate((size_t)(results + 2 * GUARD) * sizeof *memory);
  uint32_t *tables = memory + GUARD;
  to_bits(numerics, all->table, starts, table);
  for (int k = 0; k < 3; ++k)
    to_bits(numerics, all->rates + k * all->count, replicas, rates + k * replicas);
  for (int64_t k = 0; k < results + 2 * GUARD; ++k) memory[k] = UNTOUCHED;
  launch.replicas = replicas;
  launch.table = table;
  launch.rates = rates;
  launch.tables = tables;
  arl_run *run = arl_choose(numerics, replicas, level);
  if (backwards)
    run_backwards(&launch, run);
  else
    CHECK(run(&launch, 0, CHUNKS * arl_tiles(&launch)) == 0, "%lld replicas", (long long)replicas);
  CHECK(is_untouched(memory, GUARD) && is_untouched(tables + results, GUARD),
        "level %d writes beyond the tables", (int)level);
  for (int64_t k = 0; k < results; ++k) {
    const uint32_t want = truth_bits(numerics, all->trained[k]);
    CHECK(
        tables[k] == want,
        "%s, numerics %d, rule %d, order %d, block %lld, %lld actions: replica %lld of %lld, chunk "
        "%lld, entry %lld is %08x, not %08x",
        arl_level_name(level), numerics, program->rule, program->order, (long long)program->block,
        (long long)program->actions, (long long)(k / entries / CHUNKS), (long long)replicas,
        (long long)(k / entries % CHUNKS), (long long)(k % entries), tables[k], want);
  }
  free(memory);
  free(table);
  free(rates);
}

// Replicas fill less than a vector, vectors, and less than a tile, a tile, and more.
static void test_program(truth_program program, int64_t capacity, const int32_t lengths[CHUNKS],
                         bool has_replicas) {
  static const int64_t counts[] = {1, 2, 16, 63, 64, 65, MOST_REPLICAS};
  scenario_t scenario;
  scenario_draw(&scenario, program, capacity, lengths, &state);
  const replicas_t all = draw_replicas(&scenario, has_replicas ? MOST_REPLICAS : 1);
  for (arl_level level = ARL_BASE; level <= arl_best_level(); ++level) {
    for (int k = 0; k < (has_replicas ? 7 : 1); ++k)
      test_launch(&scenario, &all, level, counts[k], false);
    test_launch(&scenario, &all, level, all.count, true);
  }
  free_replicas(&all);
  scenario_free(&scenario);
}

static void test_rule(int numerics, int rule) {
  static const int64_t blocks[] = {1, 3, 128, 100000}, actions[] = {4, 6, 1, 5};
  static const int64_t explores[] = {6554, 0, 65536}, strides[] = {4, 1, 99, 1000};
  const int32_t lengths[CHUNKS] = {CAPACITY - 1, 0, 129};
  int64_t turn = rule;
  for (int order = 0; order < ORDERS; ++order)
    for (int b = 0; b < 4; ++b, ++turn)
      for (int a = 0; a < 4; ++a) {
        const truth_program program = {.numerics = numerics,
                                       .rule = rule,
                                       .order = order,
                                       .stride = strides[b],
                                       .block = blocks[b],
                                       .states = STATES,
                                       .actions = actions[a],
                                       .explore = explores[turn % 3]};
        test_program(program, CAPACITY, lengths, (turn + order) % 4 == a);
      }
}

// Chunks without rows leave the table as it is.
static void test_empty(int numerics, int order) {
  const int32_t lengths[CHUNKS] = {0, 0, 0};
  const truth_program program = {.numerics = numerics,
                                 .rule = DOUBLE_Q_LEARNING,
                                 .order = order,
                                 .stride = 4,
                                 .block = 128,
                                 .states = STATES,
                                 .actions = 4};
  test_program(program, 0, lengths, true);
  test_program(program, 2, lengths, true);
}

int main(void) {
  const arl_level best = arl_best_level();
  printf("instruction sets up to %s\n", arl_level_name(best));
  for (int numerics = FP32; numerics <= POW2; ++numerics) {
    for (int rule = 0; rule < RULES; ++rule) test_rule(numerics, rule);
    for (int order = 0; order < ORDERS; ++order) test_empty(numerics, order);
  }
  return finish();
}
