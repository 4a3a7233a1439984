// Memory of a Python object, kept where it is as long as the view lives.

#ifndef ACCEL_RL_REPLAY_BINDINGS_VIEW_HPP
#define ACCEL_RL_REPLAY_BINDINGS_VIEW_HPP

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

#include "schema.hpp"

namespace accel_rl::replay::bindings {

class View {
 public:
  // Contiguous memory of that dtype, little-endian. Throws nanobind::python_error, or
  // nanobind::type_error that names the argument.
  View(nanobind::handle object, const char *argument, Dtype dtype, bool writable);
  ~View() {
    if (buffer_.obj) PyBuffer_Release(&buffer_);
  }
  View(View &&other) noexcept : buffer_(other.buffer_) { other.buffer_.obj = nullptr; }
  View(const View &) = delete;
  View &operator=(const View &) = delete;

  template <typename T>
  T *as() const {
    return static_cast<T *>(buffer_.buf);
  }
  size_t bytes() const { return static_cast<size_t>(buffer_.len); }
  size_t rows() const {  // size of the first axis; of a scalar 1
    return buffer_.ndim > 0 ? static_cast<size_t>(buffer_.shape[0]) : 1;
  }

 private:
  Py_buffer buffer_ = {};
};

}  // namespace accel_rl::replay::bindings

#endif
