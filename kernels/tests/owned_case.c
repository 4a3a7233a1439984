#include "owned_case.h"

#include <string.h>

#include "check.h"
#include "draws.h"

enum { ACTIONS = OWNED_ACTIONS, STATES = OWNED_STATES };

static int64_t tables_of(const owned_case *drawn) {
  return drawn->shape.choice == ARL_DRAWN_TABLE ? 2 : 1;
}

// Rows of a lane; the first lanes are longer.
static int64_t lane_rows(const owned_case *drawn, int64_t chunk, int64_t lane) {
  const int64_t lanes = drawn->shape.lanes, length = drawn->lengths[chunk];
  return length / lanes + (lane < length % lanes);
}

static uint32_t *record_of(const owned_case *drawn, int64_t chunk, int64_t t, int64_t word,
                           int64_t lane) {
  const arl_owned *launch = &drawn->launch;
  return drawn->records + ((chunk * launch->rows + t) * 2 + word) * launch->lanes + lane;
}

// Draw runs of every lane; returns the most of any chunk.
static int64_t draw_records(owned_case *drawn, int64_t columns, uint64_t *state) {
  const owned_shape *shape = &drawn->shape;
  // Columns that are drawn come on top.
  const int64_t step = shape->choice == ARL_NOTHING_DRAWN ? 1 : columns;
  int64_t most = 0;
  for (int64_t d = 0; d < shape->chunks; ++d) {
    int64_t slot = -1;
    for (int64_t lane = 0; lane < shape->lanes; ++lane) {
      drawn->slots[d * shape->lanes + lane] =
          lane_rows(drawn, d, lane) > 0 ? (int32_t)slot + 1 : -7;
      for (int64_t t = 0; t < lane_rows(drawn, d, lane); ++t) {
        const bool begins = t == 0 || random_between(state, 1, shape->run) == 1;
        const truth_row row = draw_row(shape->numerics, STATES + 1, ACTIONS, state);
        slot += begins;
        *record_of(drawn, d, t, 0, lane) = (uint32_t)(row.state * step) | (uint32_t)begins << 31;
        *record_of(drawn, d, t, 1, lane) = truth_bits(shape->numerics, row.reward);
      }
    }
    most = slot + 1 > most ? slot + 1 : most;
  }
  return most;
}

// Rows of the run that begins at row t of a lane.
static int64_t run_length(const owned_case *drawn, int64_t chunk, int64_t lane, int64_t t) {
  int64_t end = t + 1;
  while (end < lane_rows(drawn, chunk, lane) && !(*record_of(drawn, chunk, end, 0, lane) >> 31))
    ++end;
  return end - t;
}

static uint32_t *draw_entries(int numerics, int64_t count, uint64_t *state) {
  uint32_t *bits = must_allocate((size_t)count * sizeof *bits);
  for (int64_t k = 0; k < count; ++k) bits[k] = truth_bits(numerics, draw_entry(numerics, state));
  return bits;
}

// One lane's passes, each from what the one before left in `expected`.
static void train_lane(owned_case *drawn, int64_t replica, int64_t d, int64_t lane) {
  const arl_owned *launch = &drawn->launch;
  const int nx = drawn->shape.numerics;
  const uint32_t stream = launch->dpus[d] * (uint32_t)launch->lanes + (uint32_t)lane;
  uint32_t *runs =
      drawn->expected + (replica * launch->chunks + d) * tables_of(drawn) * launch->slots;
  const uint32_t *starts = drawn->starts + (runs - drawn->expected);
  const truth_program program = {.numerics = nx, .alpha = truth_entry(nx, drawn->alpha[replica])};
  for (uint32_t k = 0; k < launch->num_passes; ++k) {
    uint32_t state = truth_stream(launch->seed, launch->first_pass + k, stream, 2);
    uint32_t ordering = truth_stream(launch->seed, launch->first_pass + k, stream, 1);
    int64_t slot = drawn->slots[d * launch->lanes + lane] - 1, begin = 0, rows = 0, offset = 0;
    for (int64_t t = 0; t < lane_rows(drawn, d, lane); ++t) {
      if (*record_of(drawn, d, t, 0, lane) >> 31) {
        ++slot;
        begin = t;
        rows = run_length(drawn, d, lane, t);
        if (drawn->shape.rotates)
          offset = (int64_t)((uint64_t)truth_draw(&ordering) * (uint64_t)rows >> 32);
        for (int64_t table = 0; table < tables_of(drawn) && k == 0; ++table)
          runs[table * launch->slots + slot] = starts[table * launch->slots + slot];
      }
      const int64_t row = begin + (t - begin + offset) % rows;
      int64_t index = *record_of(drawn, d, row, 0, lane) & INT32_MAX, learning = 0;
      if (drawn->shape.choice != ARL_NOTHING_DRAWN) {
        const uint32_t u = truth_draw(&state), v = truth_draw(&state);
        if (drawn->shape.choice == ARL_DRAWN_TABLE)
          index += learning = u >= UINT32_C(1) << 31;
        else if (u / 65536 < launch->explore)
          index += 1 + truth_below(v, launch->actions);
      }
      const double reward = truth_entry(nx, *record_of(drawn, d, row, 1, lane));
      const double next = truth_entry(nx, drawn->values[replica * launch->values + index]);
      uint32_t *own = runs + learning * launch->slots + slot;
      const double target = truth_add(nx, reward, next);
      if (replica == 0)
        drawn->visits[(d * tables_of(drawn) + learning) * launch->slots + slot] += 1;
      *own = truth_bits(nx, truth_move(&program, truth_entry(nx, *own), target));
    }
  }
}

void owned_draw(owned_case *drawn, owned_shape shape, uint64_t *state) {
  const int64_t columns = (int64_t[]){1, ACTIONS + 1, 2}[shape.choice];
  const int64_t rows = (shape.most_rows + shape.lanes - 1) / shape.lanes;
  const size_t words = (size_t)(shape.chunks * rows * 2 * shape.lanes);
  *drawn = (owned_case){.shape = shape};
  drawn->records = must_allocate(words * sizeof *drawn->records);
  drawn->lengths = must_allocate((size_t)shape.chunks * sizeof *drawn->lengths);
  drawn->slots = must_allocate((size_t)(shape.chunks * shape.lanes) * sizeof *drawn->slots);
  drawn->dpus = must_allocate((size_t)shape.chunks * sizeof *drawn->dpus);
  memset(drawn->records, 0xFF, words * sizeof *drawn->records);  // padding must not be read
  for (int64_t d = 0; d < shape.chunks; ++d) {
    drawn->dpus[d] = (uint32_t)random_bits(state);
    drawn->lengths[d] = (int32_t)(d == 0   ? shape.most_rows
                                  : d == 1 ? 0
                                           : random_between(state, 0, shape.most_rows));
  }
  drawn->launch = (arl_owned){
      .choice = shape.choice,
      .rotates = shape.rotates,
      .actions = ACTIONS,
      .explore = 30000,
      .seed = (uint32_t)random_bits(state),
      .first_pass = (uint32_t)random_between(state, 0, 1000),
      .num_passes = shape.passes,
      .chunks = shape.chunks,
      .rows = rows,
      .lanes = shape.lanes,
      .values = (STATES + 1) * columns,
      .replicas = shape.replicas,
  };
  arl_owned *launch = &drawn->launch;
  launch->slots = draw_records(drawn, columns, state) + 2;  // the last ones are never used
  drawn->results = shape.replicas * shape.chunks * tables_of(drawn) * launch->slots;
  drawn->starts = draw_entries(shape.numerics, drawn->results, state);
  drawn->values = draw_entries(shape.numerics, shape.replicas * launch->values, state);
  drawn->alpha = must_allocate((size_t)shape.replicas * sizeof *drawn->alpha);
  for (int64_t r = 0; r < shape.replicas; ++r)
    drawn->alpha[r] = truth_bits(shape.numerics, draw_rate(shape.numerics, state));
  drawn->runs = must_allocate((size_t)drawn->results * sizeof *drawn->runs);
  drawn->expected = must_allocate((size_t)drawn->results * sizeof *drawn->expected);
  const size_t places = (size_t)(shape.chunks * tables_of(drawn) * launch->slots);
  drawn->visits = must_allocate(places * sizeof *drawn->visits);
  memset(drawn->visits, 0, places * sizeof *drawn->visits);
  memset(drawn->runs, 0xA5, (size_t)drawn->results * sizeof *drawn->runs);
  memset(drawn->expected, 0, (size_t)drawn->results * sizeof *drawn->expected);
  launch->records = drawn->records;
  launch->lengths = drawn->lengths;
  launch->first_slots = drawn->slots;
  launch->dpus = drawn->dpus;
  launch->starts = drawn->starts;
  launch->next_values = drawn->values;
  launch->alpha = drawn->alpha;
  launch->runs = drawn->runs;
  for (int64_t r = 0; r < shape.replicas; ++r)
    for (int64_t d = 0; d < shape.chunks; ++d)
      for (int64_t lane = 0; lane < shape.lanes; ++lane) train_lane(drawn, r, d, lane);
}

void owned_free(owned_case *drawn) {
  free(drawn->records);
  free(drawn->lengths);
  free(drawn->slots);
  free(drawn->dpus);
  free(drawn->starts);
  free(drawn->values);
  free(drawn->alpha);
  free(drawn->runs);
  free(drawn->expected);
  free(drawn->visits);
}
