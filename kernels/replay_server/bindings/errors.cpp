#include "errors.hpp"

#include <iterator>

#include "bindings.hpp"

namespace nb = nanobind;

namespace accel_rl::replay::bindings {

namespace {

struct Named {
  Status status;
  const char *name;
};

constexpr Named names[] = {{Status::ok, "ok"},
                           {Status::retry, "retry"},
                           {Status::bad_count, "bad_count"},
                           {Status::bad_length, "bad_length"},
                           {Status::bad_priority, "bad_priority"},
                           {Status::bad_slot, "bad_slot"},
                           {Status::bad_config, "bad_config"},
                           {Status::bad_name, "bad_name"},
                           {Status::bad_version, "bad_version"},
                           {Status::limit, "limit"},
                           {Status::none_newer, "none_newer"},
                           {Status::out_of_memory, "out_of_memory"},
                           {Status::busy, "busy"},
                           {Status::io_error, "io_error"},
                           {Status::damaged, "damaged"},
                           {Status::truncated, "truncated"},
                           {Status::newer_format, "newer_format"},
                           {Status::malformed, "malformed"},
                           {Status::bad_magic, "bad_magic"},
                           {Status::bad_protocol, "bad_protocol"},
                           {Status::unknown_op, "unknown_op"},
                           {Status::too_large, "too_large"},
                           {Status::bad_checksum, "bad_checksum"},
                           {Status::out_of_order, "out_of_order"},
                           {Status::unauthenticated, "unauthenticated"},
                           {Status::wrong_session, "wrong_session"},
                           {Status::no_such_table, "no_such_table"},
                           {Status::table_differs, "table_differs"},
                           {Status::repeated, "repeated"},
                           {Status::unavailable, "unavailable"}};

PyObject *error_type = nullptr;  // lives as long as the module, that is, as the process

}  // namespace

const char *name_of(Status status) {
  for (const Named &each : names)
    if (each.status == status) return each.name;
  return "unknown";
}

void bind_errors(nb::module_ &module) {
  error_type = PyErr_NewExceptionWithDoc("accel_rl.remote._native.Error",
                                         "What was asked for was refused: (message, status).",
                                         PyExc_RuntimeError, nullptr);
  if (!error_type) throw nb::python_error();
  module.attr("Error") = nb::handle(error_type);
  nb::dict statuses;
  for (const Named &each : names) statuses[each.name] = static_cast<int>(each.status);
  module.attr("STATUSES") = statuses;
  nb::register_exception_translator([](const std::exception_ptr &thrown, void *) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error &error) {
      const nb::tuple arguments = nb::make_tuple(error.what(), static_cast<int>(error.status));
      PyErr_SetObject(error_type, arguments.ptr());
    }
  });
}

}  // namespace accel_rl::replay::bindings
