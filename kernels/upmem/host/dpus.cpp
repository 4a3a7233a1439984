#include "dpus.hpp"

#include <cstdio>
#include <cstdlib>

#if __has_include(<pim_emu.h>)
#include <pim_emu.h>
#endif

namespace accel_rl::upmem {

namespace {

std::string describe(dpu_error_t status) {
  const char *text = dpu_error_to_string(status);  // const or not, by the SDK's version
  std::string words = text ? text : "unknown error";
  free(const_cast<char *>(text));
  return words;
}

// Without the mark that a queued job met it.
int32_t plain(dpu_error_t status) {
  const uint32_t code = static_cast<uint32_t>(status);
  return static_cast<int32_t>(code & static_cast<uint32_t>(DPU_ERR_ASYNC_JOBS) ? code & 0xFFFF
                                                                               : code);
}

Kind kind_of(int32_t status, bool loading) {
  switch (status) {
    case DPU_ERR_DPU_FAULT:
      return Kind::fault;
    case DPU_ERR_ALLOCATION:
      return Kind::too_few_dpus;
    case DPU_ERR_DRIVER:
    case DPU_ERR_CORRUPTED_MEMORY:
    case DPU_ERR_DPU_DISABLED:
    case DPU_ERR_TIMEOUT:
      return Kind::lost;
    case DPU_ERR_INVALID_IRAM_ACCESS:
    case DPU_ERR_INVALID_WRAM_ACCESS:
    case DPU_ERR_INVALID_MRAM_ACCESS:
      return loading ? Kind::too_large : Kind::failed;
    default:
      return Kind::failed;
  }
}

std::string log_of(dpu_set_t dpu) {
  char *text = nullptr;
  size_t size = 0;
  FILE *stream = open_memstream(&text, &size);
  if (!stream) return {};
  dpu_log_read(dpu, stream);
  fclose(stream);
  std::string log(text, size);
  free(text);
  // A line that names the DPU comes first, even if it printed nothing.
  return log.find('\n') + 1 < log.size() ? log : std::string();
}

// The first DPU in fault: index, what is known of the fault, log.
Error fault_of(dpu_set_t set, int32_t status) {
  dpu_set_t dpu;
  uint32_t index;
  DPU_FOREACH(set, dpu, index) {
    bool done = false, fault = false;
    if (dpu_status(dpu, &done, &fault) != DPU_OK || !fault) continue;
    std::string what = "DPU " + std::to_string(index) + " is in fault";
#if __has_include(<pim_emu.h>)
    const char *name = "", *message = "";
    if (pim_emu_get_fault(dpu, &name, &message) == DPU_OK && *message)
      what += std::string(": ") + message;
#endif
    return Error(Kind::fault, what, status, index, log_of(dpu));
  }
  return Error(Kind::fault, "a DPU is in fault", status);
}

}  // namespace

Dpus::Dpus(uint32_t count, const std::string &profile, Mode mode) : mode_(mode) {
  const std::string asked = "allocating " + std::to_string(count) + " DPUs: ";
  dpu_error_t status = dpu_alloc(count, profile.empty() ? nullptr : profile.c_str(), &set_);
  if (status != DPU_OK)
    throw Error(kind_of(plain(status), false), asked + describe(status), plain(status));
  uint32_t got = 0;
  status = dpu_get_nr_dpus(set_, &got);
  if (status == DPU_OK && got == count) return;
  dpu_free(set_);
  if (status == DPU_OK)
    throw Error(got < count ? Kind::too_few_dpus : Kind::failed,
                asked + "got " + std::to_string(got));
  throw Error(kind_of(plain(status), false), asked + describe(status), plain(status));
}

Dpus::~Dpus() {
  if (!freed_) free();
}

void Dpus::free() {
  wait();  // what is queued has buffers that may go next
  dpu_free(set_);
  freed_ = true;
}

void Dpus::check_rows_fit(uint32_t rows, size_t bytes) const {
  if (bytes > heap_bytes_)
    throw Error(Kind::too_large, "a chunk of " + std::to_string(rows) + " rows needs " +
                                     std::to_string(bytes) + " B of MRAM, " +
                                     std::to_string(heap_bytes_) + " B are left");
}

void Dpus::load(const std::string &path, size_t bytes, const char *symbol) {
  dpu_program_t *program = nullptr;
  const dpu_error_t status = dpu_load(set_, path.c_str(), &program);
  if (status != DPU_OK)
    throw Error(kind_of(plain(status), true), "loading " + path + ": " + describe(status),
                plain(status));
  dpu_symbol_t heap;
  check(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &heap), "dpu_get_symbol");
  heap_bytes_ = heap.size;
  dpu_symbol_t found;
  check(dpu_get_symbol(program, symbol, &found), "dpu_get_symbol");
  if (found.size != bytes)
    throw Error(Kind::invalid, path + " has " + symbol + " of " + std::to_string(found.size) +
                                   " B, not " + std::to_string(bytes));
}

void Dpus::broadcast(const char *symbol, const void *data, size_t bytes) {
  check(dpu_broadcast_to(set_, symbol, 0, data, bytes, flags()), "dpu_broadcast_to", symbol);
}

void Dpus::scatter(const char *symbol, const void *data, size_t stride, size_t bytes,
                   uint32_t offset) {
  // The library only reads what it sends.
  push(DPU_XFER_TO_DPU, symbol, offset, const_cast<uint8_t *>(static_cast<const uint8_t *>(data)),
       stride, bytes);
}

void Dpus::gather(const char *symbol, void *data, size_t stride, size_t bytes, uint32_t offset) {
  push(DPU_XFER_FROM_DPU, symbol, offset, static_cast<uint8_t *>(data), stride, bytes);
}

void Dpus::push(dpu_xfer_t direction, const char *symbol, uint32_t offset, uint8_t *data,
                size_t stride, size_t bytes) {
  dpu_set_t dpu;
  uint32_t index;
  DPU_FOREACH(set_, dpu, index) {
    check(dpu_prepare_xfer(dpu, data + index * stride), "dpu_prepare_xfer", symbol);
  }
  check(dpu_push_xfer(set_, direction, symbol, offset, bytes, flags()), "dpu_push_xfer", symbol);
}

void Dpus::launch() {
  check(dpu_launch(set_, mode_ == Mode::asynchronous ? DPU_ASYNCHRONOUS : DPU_SYNCHRONOUS),
        "dpu_launch");
}

void Dpus::sync() { check(wait(), "dpu_sync"); }

// Rank by rank: of a set, the call may return at the first rank in error.
dpu_error_t Dpus::wait() {
  dpu_error_t first = DPU_OK;
  dpu_set_t rank;
  DPU_RANK_FOREACH(set_, rank) {
    const dpu_error_t status = dpu_sync(rank);
    if (first == DPU_OK) first = status;
  }
  return first;
}

dpu_xfer_flags_t Dpus::flags() const {
  return mode_ == Mode::asynchronous ? DPU_XFER_ASYNC : DPU_XFER_DEFAULT;
}

void Dpus::check(dpu_error_t status, const char *call, const char *symbol) {
  if (status == DPU_OK) return;
  const Kind kind = kind_of(plain(status), false);
  if (kind == Kind::fault) {
    wait();  // until all DPUs have stopped, so that the first in fault does not vary
    throw fault_of(set_, plain(status));
  }
  std::string what = call;
  if (symbol) what += std::string(" of ") + symbol;
  throw Error(kind, what + ": " + describe(status), plain(status));
}

}  // namespace accel_rl::upmem
