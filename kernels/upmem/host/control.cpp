// What Python needs besides the handlers, by ctypes: programs, reports, errors.

#include <cstring>

#include "device.hpp"

#define ARL_EXPORT extern "C" __attribute__((visibility("default")))

using namespace accel_rl::upmem;

// As accel_rl/pim/upmem/host.py declares them.

struct arl_upmem_program {
  const char *path, *profile;
  int32_t numerics, rule, order;
  uint32_t stride, block, states, actions, random_blocks, lanes, runs, tasklets, workspace;
  int32_t asynchronous, count_instructions;
};

struct arl_upmem_error {
  int32_t kind, status;
  int64_t dpu;
};

// Whether these are the sizes of the structs, as they are not if either side has changed alone.
ARL_EXPORT int32_t accel_rl_upmem_agrees(size_t program, size_t error, size_t report) {
  return program == sizeof(arl_upmem_program) && error == sizeof(arl_upmem_error) &&
         report == sizeof(Report);
}

ARL_EXPORT void accel_rl_upmem_add(int64_t id, const arl_upmem_program *from) {
  Program program;
  program.path = from->path;
  program.numerics = static_cast<Numerics>(from->numerics);
  program.rule = from->rule;
  program.order = from->order;
  program.stride = from->stride;
  program.block = from->block;
  program.states = from->states;
  program.actions = from->actions;
  program.random_blocks = from->random_blocks;
  program.lanes = from->lanes;
  program.runs = from->runs;
  program.tasklets = from->tasklets;
  program.workspace = from->workspace;
  const Mode mode = from->asynchronous ? Mode::asynchronous : Mode::synchronous;
  Device::instance().add(id, {program, from->profile, mode, from->count_instructions != 0});
}

ARL_EXPORT void accel_rl_upmem_release(void) { Device::instance().release(); }

ARL_EXPORT uint32_t accel_rl_upmem_held(void) { return Device::instance().held(); }

ARL_EXPORT void accel_rl_upmem_report(Report *report) { *report = Device::instance().report(); }

// The error of that number, its message and log as far as they fit; returns 0 if it is gone.
ARL_EXPORT int32_t accel_rl_upmem_error(uint64_t number, arl_upmem_error *to, char *message,
                                        size_t message_bytes, char *log, size_t log_bytes) {
  const std::optional<Error> error = Device::instance().kept(number);
  if (!error) return 0;
  *to = {static_cast<int32_t>(error->kind), error->status, error->dpu};
  strncpy(message, error->what(), message_bytes - 1);
  strncpy(log, error->log.c_str(), log_bytes - 1);
  message[message_bytes - 1] = log[log_bytes - 1] = '\0';
  return 1;
}
