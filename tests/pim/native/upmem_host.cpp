// The host of DPUs without Python, for sanitizers: trains, fails at every call that can fail, and
// trains again. Arguments: a DPU program of INT32 Q-learning in SEQ for 5 states, 3 actions and
// blocks of 16 rows, and one that misbehaves, as tests/pim/upmem_runs.py makes it; the same two by
// owner; the seed for which they misbehave.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device.hpp"
#include "failing_dpu.h"
#include "owned_trainer.hpp"
#include "trainer.hpp"

using namespace accel_rl::upmem;

namespace {

constexpr uint32_t states = 5, actions = 3, dpus = 5, capacity = 81, entries = states * actions;
constexpr uint32_t scale = 10000;
using Table = std::vector<int32_t>;

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

struct Log {
  std::vector<uint32_t> words;
  std::vector<int32_t> lengths;
  Rows rows() const { return {words.data(), lengths.data(), dpus, capacity}; }
};

// Rows of all entries, with few different rewards; or of few entries, which DPUs then return alone,
// with a reward of its own each.
Log make_log(bool many_rewards) {
  Log log = {std::vector<uint32_t>(dpus * capacity * 4), std::vector<int32_t>(dpus, capacity - 1)};
  uint32_t state = 1;
  const auto below = [&](uint32_t limit) {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % limit;
  };
  for (size_t k = 0; k < log.words.size(); k += 4) {
    log.words[k] = below(many_rewards ? 4 : entries);
    log.words[k + 1] = below(states) * actions;
    log.words[k + 2] = many_rewards ? static_cast<uint32_t>(k) : below(20) * scale;
    log.words[k + 3] = below(actions) | below(2) << 16;
  }
  return log;
}

struct Programs {
  const char *good, *broken;
  bool by_owner;
};

Program program_of(const char *path, bool by_owner) {
  Program program;
  program.path = path;
  if (by_owner) {
    program.lanes = 16;
    program.runs = capacity;
    program.workspace = 49152;
  }
  program.numerics = Numerics::int32_scaled;
  program.block = 16;
  program.states = states;
  program.actions = actions;
  return program;
}

Launch launch_of(uint32_t seed) {
  Launch launch;
  launch.seed = seed;
  launch.alpha = scale / 10;
  launch.gamma = scale / 100 * 95;
  return launch;
}

std::unique_ptr<Training> make_training(const char *path, bool by_owner, Mode mode) {
  const Program program = program_of(path, by_owner);
  if (by_owner) return std::make_unique<OwnedTrainer>(program, dpus, "", mode);
  return std::make_unique<Trainer>(program, dpus, "", mode);
}

// 0.95 times the maximum of each state, as W has it.
Table values_of(const Table &table) {
  Table values(states + 1);
  for (uint32_t s = 0; s < states; ++s)
    values[s] = *std::max_element(&table[s * actions], &table[s * actions] + actions) / 100 * 95;
  return values;
}

// Train twice on all DPUs, the second time from the mean of the tables; by owner, from something
// that all runs' values change. Then each from its own.
Table train_once(const char *path, bool by_owner, Mode mode, const Log &log, uint32_t seed) {
  const std::unique_ptr<Training> trainer = make_training(path, by_owner, mode);
  trainer->load_rows(log.rows());
  Table table(entries), results(dpus * (by_owner ? capacity : entries));
  Launch launch = launch_of(seed);
  launch.num_passes = 2;
  for (int k = 0; k < 2; ++k) {
    const Table values = values_of(table);
    trainer->run(launch, {table.data(), values.data()}, results.data());
    std::vector<int64_t> sums(entries);
    for (size_t at = 0; at < results.size(); ++at) sums[at % entries] += results[at];
    for (uint32_t e = 0; e < entries; ++e) table[e] = static_cast<int32_t>(sums[e] / dpus);
    launch.first_pass += launch.num_passes;
  }
  if (by_owner) return table;
  launch.own_tables = true;
  Table own(results.size());
  trainer->run(launch, {results.data()}, own.data());
  table.insert(table.end(), own.begin(), own.end());
  return table;
}

// Every call of every function fails once, in a training of its own.
void fail_each_call(const Programs &programs, Mode mode, const Log &log, const Table &right) {
  const auto train = [&] { return train_once(programs.good, programs.by_owner, mode, log, 1); };
  for (const char *function :
       {"dpu_alloc", "dpu_get_nr_dpus", "dpu_load", "dpu_get_symbol", "dpu_broadcast_to",
        "dpu_prepare_xfer", "dpu_push_xfer", "dpu_launch", "dpu_sync"}) {
    uint32_t call = 1;
    for (bool failed = true; failed; ++call) {
      failing_dpu(function, call, 1, DPU_ERR_TIMEOUT);
      try {
        EXPECT(train() == right);
        failed = false;
      } catch (const Error &error) {
        EXPECT(error.kind == Kind::lost && error.status == DPU_ERR_TIMEOUT);
      }
      failing_dpu("", 0, 0, 0);
      EXPECT(train() == right);
    }
    EXPECT(call > 2);
  }
}

void stop_a_dpu(const Programs &programs, uint32_t seed, Mode mode, const Log &log) {
  const std::unique_ptr<Training> trainer = make_training(programs.broken, programs.by_owner, mode);
  const Table table(entries), values = values_of(table);
  Table results(dpus * std::max(entries, capacity));
  for (const char *part : {"DPU 3 is in fault", "the DPUs were freed"}) {
    try {
      trainer->load_rows(log.rows());
      trainer->run(launch_of(seed), {table.data(), values.data()}, results.data());
      EXPECT(!"a fault");
    } catch (const Error &error) {
      EXPECT(std::strstr(error.what(), part));
      EXPECT(error.kind != Kind::fault || error.log.find("rows, seed") != std::string::npos);
    }
  }
}

void refuse_rows(const Programs &programs, Mode mode, Log log) {
  for (int k = 0; k < 2; ++k) {
    try {
      train_once(programs.good, programs.by_owner, mode, log, 1);
      EXPECT(k == 0);
    } catch (const Error &error) {
      EXPECT(k == 1 && error.kind == Kind::invalid);
    }
    log.words[log.words.size() - 8] = entries;  // in the last row of the last chunk
  }
}

// What stands behind the handlers, which keeps DPUs between launches.
void keep_dpus(const Programs &programs, uint32_t seed, const Log &log) {
  Device &device = Device::instance();
  const uint64_t before = device.report().launches;
  for (const char *each : {programs.good, programs.broken})
    device.add(each == programs.good,
               {program_of(each, programs.by_owner), "", Mode::asynchronous, false});
  const uint64_t first = device.next_token(), second = device.next_token();
  const Table base(entries), values = values_of(base);
  Table tables(dpus * std::max(entries, capacity)), again(tables.size());
  const auto run = [&](int64_t id, uint64_t token, uint32_t with, Table &to) {
    device.run(id, log.rows(), token, launch_of(with), {base.data(), values.data()}, to.data());
  };
  for (int k = 0; k < 100; ++k) {
    run(true, k % 3 ? first : second, 1, tables);
    EXPECT(device.held() == dpus);
    try {
      run(false, first, seed, again);
      EXPECT(!"a fault");
    } catch (const Error &error) {
      const std::optional<Error> kept = device.kept(device.keep(error));
      EXPECT(kept && kept->dpu == 3 && kept->log == error.log);
    }
    EXPECT(device.held() == 0);
    run(false, second, 1, again);
    EXPECT(again == tables);
  }
  EXPECT(device.report().launches == before + 200);
  device.release();
}

// Chunks with tables of their own, in as many rounds as allocations that fail leave.
void train_in_rounds(const char *path, const Log &log) {
  Device &device = Device::instance();
  device.add(true, {program_of(path, false), "", Mode::asynchronous, false});
  Launch launch = launch_of(1);
  launch.own_tables = true;
  Table starts(dpus * entries), right(starts.size()), tables(starts.size());
  for (size_t k = 0; k < starts.size(); ++k) starts[k] = static_cast<int32_t>(k * scale / 10);
  const uint32_t rounds[] = {1, 2, 3, 5, 0};  // of 5, 3, 2, 1 and no DPUs
  for (uint32_t failures = 0; failures < 5; ++failures) {
    const uint64_t before = device.report().launches, token = device.next_token();
    failing_dpu("dpu_alloc", 1, failures, DPU_ERR_ALLOCATION);
    try {
      device.run(true, log.rows(), token, launch, {starts.data()}, tables.data());
      EXPECT(rounds[failures] > 0);
    } catch (const Error &error) {
      EXPECT(rounds[failures] == 0 && error.kind == Kind::too_few_dpus);
    }
    failing_dpu("", 0, 0, 0);
    EXPECT(device.report().launches == before + rounds[failures]);
    if (failures == 0) right = tables;
    EXPECT(tables == right);
    device.release();
  }
}

}  // namespace

int main(int, char **arguments) {
  const uint32_t seed = static_cast<uint32_t>(std::atoi(arguments[5]));
  for (const bool by_owner : {false, true}) {
    const Programs programs = {arguments[1 + 2 * by_owner], arguments[2 + 2 * by_owner], by_owner};
    for (const bool many_rewards : {false, true}) {
      const Log log = make_log(many_rewards);
      const Table right = train_once(programs.good, by_owner, Mode::synchronous, log, 1);
      for (const Mode mode : {Mode::synchronous, Mode::asynchronous}) {
        EXPECT(train_once(programs.good, by_owner, mode, log, 1) == right);
        fail_each_call(programs, mode, log, right);
        stop_a_dpu(programs, seed, mode, log);
        refuse_rows(programs, mode, log);
      }
      keep_dpus(programs, seed, log);
      if (!by_owner) train_in_rounds(programs.good, log);
    }
  }
  std::puts("trained");
  return 0;
}
