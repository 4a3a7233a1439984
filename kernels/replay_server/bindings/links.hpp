// A client's link as a Python class, whichever transport made it.

#ifndef ACCEL_RL_REPLAY_BINDINGS_LINKS_HPP
#define ACCEL_RL_REPLAY_BINDINGS_LINKS_HPP

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <string>

#include "link.hpp"

namespace accel_rl::replay::bindings {

class PythonLink {
 public:
  explicit PythonLink(std::unique_ptr<Link> link) : link_(std::move(link)) {}
  ~PythonLink();

  // How many bytes of `into` the reply takes, or the reply as bytes if it has no room there. Waits
  // without Python's lock. Throws nanobind::python_error of TimeoutError, ConnectionResetError or
  // what a signal's handler raised, and Error if what came is no frame.
  nanobind::object exchange(nanobind::sequence parts, nanobind::handle into, uint64_t timeout_us);
  // How long each of `rounds` exchanges of one frame took, in ns, as bytes of int64.
  nanobind::bytes probe(nanobind::handle frame, uint32_t rounds, uint64_t timeout_us);
  void set_frame_bytes(uint32_t bytes);
  void close();

 private:
  // The link, for who uses it without Python's lock; nobody else does until the end of a block.
  class Borrowed {
   public:
    explicit Borrowed(PythonLink *from);
    ~Borrowed() { from_->busy_ = false; }
    Borrowed(const Borrowed &) = delete;
    Borrowed &operator=(const Borrowed &) = delete;

    Link *operator->() const { return from_->link_.get(); }

   private:
    PythonLink *from_;
  };

  std::unique_ptr<Link> link_;
  std::atomic<bool> busy_{false};
};

// Runs the handlers of signals that came; false if one of them raised. From any thread, though
// Python runs them in its main thread only.
bool run_signal_handlers();

[[noreturn]] void raise(Fault fault);

// Throws nanobind::python_error if there is no link: what a signal's handler raised meanwhile, or
// else ConnectionRefusedError with `why`.
std::unique_ptr<PythonLink> opened(std::unique_ptr<Link> link, const std::string &why);

}  // namespace accel_rl::replay::bindings

#endif
