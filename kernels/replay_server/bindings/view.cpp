#include "view.hpp"

#include <cstring>

namespace nb = nanobind;

namespace accel_rl::replay::bindings {

namespace {

// What a format character of the buffer protocol is among NumPy's kinds.
char kind_of(char format) {
  if (format == '?') return 'b';
  if (format && std::strchr("bhilq", format)) return 'i';
  if (format && std::strchr("BHILQ", format)) return 'u';
  if (format && std::strchr("efd", format)) return 'f';
  return 0;
}

bool is_of(const Py_buffer &buffer, Dtype dtype) {
  const char *format = buffer.format ? buffer.format : "B";
  if (*format == '<' || *format == '=' || *format == '@') ++format;
  return format[0] && !format[1] && kind_of(*format) == *dtype_code(dtype) &&
         static_cast<size_t>(buffer.itemsize) == dtype_bytes(dtype);
}

}  // namespace

View::View(nb::handle object, const char *argument, Dtype dtype, bool writable) {
  const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) throw nb::python_error();
  if (is_of(buffer_, dtype)) return;
  const std::string message = std::string(argument) + " must be of dtype " + dtype_code(dtype) +
                              ", got format " + (buffer_.format ? buffer_.format : "B");
  PyBuffer_Release(&buffer_);
  throw nb::type_error(message.c_str());
}

}  // namespace accel_rl::replay::bindings
