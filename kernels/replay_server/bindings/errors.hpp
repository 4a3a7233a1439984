// A status as a Python exception.

#ifndef ACCEL_RL_REPLAY_BINDINGS_ERRORS_HPP
#define ACCEL_RL_REPLAY_BINDINGS_ERRORS_HPP

#include <stdexcept>
#include <string>

#include "status.hpp"

namespace accel_rl::replay::bindings {

// Becomes _native.Error(message, status).
class Error : public std::runtime_error {
 public:
  Error(Status reason, const std::string &message) : std::runtime_error(message), status(reason) {}

  Status status;
};

const char *name_of(Status status);  // "retry"

// Throws Error unless it is ok; with no message, that of the status.
inline void expect_ok(Status status, const std::string &message) {
  if (status != Status::ok) throw Error(status, message.empty() ? name_of(status) : message);
}

}  // namespace accel_rl::replay::bindings

#endif
