#include "trainer.hpp"

#include <cstring>

#include "records.hpp"
#include "timer.hpp"

namespace accel_rl::upmem {

namespace {

constexpr size_t entry_bytes = 4;

}  // namespace

uint32_t Program::tables() const { return arl_tables(static_cast<arl_rule>(rule)); }

Trainer::Trainer(const Program &program, uint32_t dpus, const std::string &profile, Mode mode,
                 bool count_instructions)
    : program_(program),
      dpus_count_(dpus),
      count_instructions_(count_instructions),
      chunks_(dpus),
      counted_(dpus),
      dpus_(std::make_unique<Dpus>(dpus, profile, mode)) {
  if (program.entries() * entry_bytes % 8 != 0) padded_.resize((dpus + 1) * table_bytes());
  dpus_->load(program.path, table_bytes());
  report_.dpus = dpus;
  report_.counts_instructions = count_instructions;
  ++report_.program_loads;
}

size_t Trainer::table_bytes() const { return (program_.entries() * entry_bytes + 7) / 8 * 8; }

void Trainer::load_rows(const Rows &rows) {
  check_rows(program_, rows, dpus_count_);
  const Timer timer(report_.load_seconds);
  const Records records = pack(program_, rows);
  wide_ = records.wide;
  visited_ = list_visited(program_, rows);
  values_.resize(size_t{program_.tables()} * visited_.listed * dpus_count_);
  const size_t list_bytes = visited_.listed * sizeof(uint16_t);
  for (uint32_t d = 0; d < rows.chunks; ++d)
    chunks_[d] = {static_cast<uint32_t>(rows.lengths[d]), rows.first + d};
  dpus_->attempt([&] {
    dpus_->check_rows_fit(rows.capacity, records.bytes);
    const size_t codebook_bytes = records.codebook.size() * entry_bytes;
    if (!records.wide) dpus_->broadcast("codebook", records.codebook.data(), codebook_bytes);
    dpus_->scatter("chunk", chunks_.data(), sizeof(arl_chunk), sizeof(arl_chunk));
    if (list_bytes > 0) dpus_->scatter("visited", visited_.entries.data(), list_bytes, list_bytes);
    if (records.bytes > 0)
      dpus_->scatter(DPU_MRAM_HEAP_POINTER_NAME, records.data.data(), records.bytes, records.bytes);
    dpus_->sync();
    report_.load_broadcast_bytes += codebook_bytes;
    report_.scattered_bytes += sizeof(arl_chunk) + list_bytes + records.bytes;
  });
  ++report_.loads;
}

void Trainer::run(const Launch &launch, const void *table, void *tables) {
  const Timer timer(report_.launch_seconds);
  const size_t bytes = program_.entries() * entry_bytes, moved = table_bytes();
  const size_t pulled = values_.empty() ? moved : values_.size() / dpus_count_ * entry_bytes;
  const void *starts = table;
  uint8_t *gathered = static_cast<uint8_t *>(tables);
  if (!padded_.empty()) {
    gathered = padded_.data() + moved;
    uint8_t *sent = launch.own_tables ? gathered : padded_.data();
    for (uint32_t d = 0; d < (launch.own_tables ? dpus_count_ : 1); ++d)
      std::memcpy(sent + d * moved, static_cast<const uint8_t *>(table) + d * bytes, bytes);
    table = sent;
  }
  if (!values_.empty()) gathered = reinterpret_cast<uint8_t *>(values_.data());
  parameters_ = {.seed = launch.seed,
                 .first_pass = launch.first_pass,
                 .num_passes = launch.num_passes,
                 .alpha = launch.alpha,
                 .gamma = launch.gamma,
                 .epsilon = launch.epsilon,
                 .explore = launch.explore,
                 .wide = wide_,
                 .count_instructions = count_instructions_,
                 .listed = visited_.listed};
  dpus_->attempt([&] {
    dpus_->broadcast("parameters", &parameters_, sizeof parameters_);
    if (launch.own_tables)
      dpus_->scatter("tables", table, moved, moved);
    else
      dpus_->broadcast("tables", table, moved);
    dpus_->launch();
    dpus_->gather("tables", gathered, pulled, pulled);
    dpus_->gather("counted", counted_.data(), sizeof(uint64_t), sizeof(uint64_t));
    dpus_->sync();
  });
  if (!values_.empty())
    expand(program_, visited_, static_cast<const uint32_t *>(starts), launch.own_tables,
           values_.data(), static_cast<uint32_t *>(tables));
  else if (!padded_.empty())
    for (uint32_t d = 0; d < dpus_count_; ++d)
      std::memcpy(static_cast<uint8_t *>(tables) + d * bytes, gathered + d * moved, bytes);
  report_.count_launch(counted_);
  report_.broadcast_bytes += sizeof parameters_;
  (launch.own_tables ? report_.pushed_bytes : report_.broadcast_bytes) += moved;
  report_.gathered_bytes += pulled + sizeof(uint64_t);
}

}  // namespace accel_rl::upmem
