// XLA FFI handlers of training on DPUs; accel_rl/pim/upmem/kernels.py calls them.
//
// They are functions of their operands: DPUs hold rows only as a cache, known by the token that the
// load gave them. So XLA may run launches in any order, and as often as it likes.

#include <exception>
#include <vector>

#include "common.hpp"
#include "device.hpp"
#include "records.hpp"

extern "C" {
#include "frame.h"
}

#define ARL_EXPORT extern "C" __attribute__((visibility("default")))

using namespace accel_rl::upmem;

namespace {

constexpr XLA_FFI_DataType s32 = XLA_FFI_DataType_S32, u32 = XLA_FFI_DataType_U32,
                           f32 = XLA_FFI_DataType_F32;

// The number in brackets leads whoever catches the error to all that is known of it.
XLA_FFI_Error *fail(const XLA_FFI_CallFrame *frame, const Error &error) {
  const uint64_t number = Device::instance().keep(error);
  return arl_fail(frame,
                  error.kind == Kind::invalid ? XLA_FFI_Error_Code_INVALID_ARGUMENT
                                              : XLA_FFI_Error_Code_INTERNAL,
                  "upmem [error %llu]: %s", static_cast<unsigned long long>(number), error.what());
}

template <typename Work>
XLA_FFI_Error *guarded(const XLA_FFI_CallFrame *frame, Work work) {
  try {
    return work();
  } catch (const Error &error) {
    return fail(frame, error);
  } catch (const std::exception &error) {  // such as of memory or threads
    return fail(frame, Error(Kind::failed, error.what()));
  }
}

Rows rows_of(void *const *data, const arl_sizes &sizes) {
  return {static_cast<const uint32_t *>(data[0]), static_cast<const int32_t *>(data[1]),
          static_cast<uint32_t>(sizes.of['D']), static_cast<uint32_t>(sizes.of['T'])};
}

const arl_attribute program_attribute = {"program", INT64_MIN, INT64_MAX};

}  // namespace

// Examine rows and give them a token.
ARL_EXPORT XLA_FFI_Error *accel_rl_upmem_load(XLA_FFI_CallFrame *frame) {
  if (arl_answer_metadata(frame)) return nullptr;
  int64_t id;
  if (XLA_FFI_Error *error = arl_read_attributes(frame, &program_attribute, 1, &id)) return error;
  static const arl_buffer buffers[] = {
      {"rows", s32, "DT4"}, {"lengths", s32, "D"}, {"token", u32, "12"}};
  void *data[3];
  arl_sizes sizes;
  if (XLA_FFI_Error *error = arl_read_buffers(frame, buffers, 2, 1, data, &sizes)) return error;
  return guarded(frame, [&]() -> XLA_FFI_Error * {
    const Rows rows = rows_of(data, sizes);
    check_rows(Device::instance().find(id).program, rows, rows.chunks);
    const uint64_t token = Device::instance().next_token();
    auto *words = static_cast<uint32_t *>(data[2]);
    words[0] = static_cast<uint32_t>(token);
    words[1] = static_cast<uint32_t>(token >> 32);
    return nullptr;
  });
}

namespace {

// A launch of the program "owned" gets W too, and its results are values of runs, not tables.
XLA_FFI_Error *launch_with(XLA_FFI_CallFrame *frame, const bool owned) {
  if (arl_answer_metadata(frame)) return nullptr;
  const arl_attribute attributes[] = {
      program_attribute, {"numerics", ARL_FP32, ARL_INT32_POW2}, {"num_passes", 0, INT32_MAX}};
  int64_t values[3];
  if (XLA_FFI_Error *error = arl_read_attributes(frame, attributes, 3, values)) return error;
  const XLA_FFI_DataType entry = values[1] == ARL_FP32 ? f32 : s32;
  std::vector<arl_buffer> buffers = {
      {"rows", s32, "DT4"},  {"lengths", s32, "D"}, {"token", u32, "12"}, {"table", entry, "GE"},
      {"rates", entry, "3"}, {"explore", u32, ""},  {"seed", u32, ""},    {"first_pass", u32, ""},
  };
  if (owned) buffers.push_back({"values", entry, "M"});
  const size_t arguments = buffers.size();
  buffers.push_back(owned ? arl_buffer{"runs", entry, "DR"} : arl_buffer{"tables", entry, "DE"});
  void *data[10];
  arl_sizes sizes;
  if (XLA_FFI_Error *error =
          arl_read_buffers(frame, buffers.data(), static_cast<int64_t>(arguments), 1, data, &sizes))
    return error;
  return guarded(frame, [&]() -> XLA_FFI_Error * {
    Device &device = Device::instance();
    const Program program = device.find(values[0]).program;
    if (sizes.of['E'] != program.entries() || values[1] != static_cast<int64_t>(program.numerics) ||
        owned != (program.lanes > 0))
      throw Error(Kind::invalid, "the table is not one of this program");
    const bool own_tables = sizes.of['G'] != 1;
    if (own_tables && (owned || sizes.of['G'] != sizes.of['D']))
      throw Error(Kind::invalid, "there must be one table, or one for each chunk");
    if (owned && (sizes.of['M'] != static_cast<int64_t>(program.values()) ||
                  sizes.of['R'] != program.tables() * program.runs))
      throw Error(Kind::invalid, "the values or runs are not those of this program");
    const auto *token = static_cast<const uint32_t *>(data[2]);
    const auto *rates = static_cast<const uint32_t *>(data[4]);
    const Launch launch = {
        .seed = *static_cast<const uint32_t *>(data[6]),
        .first_pass = *static_cast<const uint32_t *>(data[7]),
        .num_passes = static_cast<uint32_t>(values[2]),
        .alpha = rates[0],
        .gamma = rates[1],
        .epsilon = rates[2],
        .explore = *static_cast<const uint32_t *>(data[5]),
        .own_tables = own_tables,
    };
    const Operands operands = {data[3], owned ? data[8] : nullptr};
    device.run(values[0], rows_of(data, sizes), static_cast<uint64_t>(token[1]) << 32 | token[0],
               launch, operands, data[arguments]);
    return nullptr;
  });
}

}  // namespace

ARL_EXPORT XLA_FFI_Error *accel_rl_upmem_launch(XLA_FFI_CallFrame *frame) {
  return launch_with(frame, false);
}

ARL_EXPORT XLA_FFI_Error *accel_rl_upmem_launch_owned(XLA_FFI_CallFrame *frame) {
  return launch_with(frame, true);
}
