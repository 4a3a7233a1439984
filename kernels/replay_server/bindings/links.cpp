#include "links.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <vector>

#include "bindings.hpp"
#include "connect.hpp"
#include "errors.hpp"
#include "shared_link.hpp"
#include "shared_memory.hpp"
#include "socket_link.hpp"
#include "udp_link.hpp"

namespace nb = nanobind;

namespace accel_rl::replay::bindings {

namespace {

// Memory of Python objects, kept where it is until the end of a block.
class Pinned {
 public:
  Pinned() = default;
  ~Pinned() {
    for (Py_buffer &each : buffers_) PyBuffer_Release(&each);
  }
  Pinned(const Pinned &) = delete;
  Pinned &operator=(const Pinned &) = delete;

  Part add(nb::handle object, int flags) {
    buffers_.emplace_back();
    if (PyObject_GetBuffer(object.ptr(), &buffers_.back(), flags) != 0) {
      buffers_.pop_back();
      throw nb::python_error();
    }
    const Py_buffer &buffer = buffers_.back();
    return {static_cast<const uint8_t *>(buffer.buf), static_cast<size_t>(buffer.len)};
  }

 private:
  std::vector<Py_buffer> buffers_;
};

}  // namespace

bool run_signal_handlers() {
  const nb::gil_scoped_acquire held;
  return PyErr_CheckSignals() == 0;
}

void raise(Fault fault) {
  switch (fault) {
    case Fault::timed_out:
      PyErr_SetString(PyExc_TimeoutError, "no reply in time");
      break;
    case Fault::interrupted:
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_InterruptedError, "the wait was ended");
      break;
    case Fault::malformed:
      throw Error(Status::malformed, "what came is no reply to the request");
    case Fault::no_memory:
      throw std::bad_alloc();
    case Fault::none:
    case Fault::closed:
      PyErr_SetString(PyExc_ConnectionResetError, "the server closed the connection");
      break;
  }
  throw nb::python_error();
}

PythonLink::Borrowed::Borrowed(PythonLink *from) : from_(from) {
  if (from_->busy_.exchange(true))
    throw Error(Status::out_of_order, "the link is in use by a thread");
  if (from_->link_) return;
  from_->busy_ = false;
  raise(Fault::closed);
}

nb::object PythonLink::exchange(nb::sequence parts, nb::handle into, uint64_t timeout_us) {
  Pinned pinned;
  std::vector<Part> given;
  for (nb::handle each : parts) given.push_back(pinned.add(each, PyBUF_SIMPLE));
  const Part room = pinned.add(into, PyBUF_WRITABLE);
  auto *to = const_cast<uint8_t *>(room.bytes);  // writable, as was asked for
  const Borrowed link(this);
  Fault fault;
  {
    const nb::gil_scoped_release released;
    fault =
        link->exchange(given.data(), given.size(), to, room.count, timeout_us, run_signal_handlers);
  }
  const uint8_t *reply = fault == Fault::none ? link->reply() : nullptr;
  const size_t bytes = reply ? link->reply_bytes() : 0;
  nb::object answer;
  if (reply == to)
    answer = nb::int_(bytes);
  else if (reply)
    answer = nb::bytes(reply, bytes);
  if (fault != Fault::none) raise(fault);
  return answer;
}

nb::bytes PythonLink::probe(nb::handle frame, uint32_t rounds, uint64_t timeout_us) {
  using Clock = std::chrono::steady_clock;
  Pinned pinned;
  const Part part = pinned.add(frame, PyBUF_SIMPLE);
  std::vector<int64_t> times(rounds);
  // A copy, as each request has a number of its own.
  std::vector<uint8_t> request(part.bytes, part.bytes + part.count);
  const Part sent = {request.data(), request.size()};
  if (request.size() < body_offset) throw Error(Status::malformed, "frame has no header");
  const auto first = get(request.data(), field::header::request);
  const bool samples = get(request.data(), field::header::op) == static_cast<uint8_t>(Op::sample);
  std::vector<uint8_t> room(std::max(part.count, size_t{4096}));
  const Borrowed link(this);
  Fault fault = Fault::none;
  {
    const nb::gil_scoped_release released;
    for (size_t k = 0; k < rounds && fault == Fault::none; ++k) {
      if (k % 1024 == 1023 && !run_signal_handlers()) {
        fault = Fault::interrupted;
        break;
      }
      set(request.data(), field::header::request, first + k);
      if (samples) set(request.data(), field::sample::seed, k);
      const auto begin = Clock::now();
      fault = link->exchange(&sent, 1, room.data(), room.size(), timeout_us, run_signal_handlers);
      times[k] = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
    }
  }
  if (fault != Fault::none) raise(fault);
  return nb::bytes(times.data(), times.size() * sizeof(int64_t));
}

void PythonLink::set_frame_bytes(uint32_t bytes) {
  const Borrowed link(this);
  link->set_frame_bytes(bytes);
}

// A link of a server in this process waits for its turn, and Python's other threads shall not.
PythonLink::~PythonLink() {
  const nb::gil_scoped_release released;
  link_.reset();
}

void PythonLink::close() {
  if (!link_) return;
  const Borrowed link(this);
  const nb::gil_scoped_release released;
  link_.reset();
}

static std::unique_ptr<PythonLink> open_udp(const std::string &host, uint16_t port, uint32_t busy,
                                            uint64_t) {
  std::string why;
  std::unique_ptr<Link> link;
  {
    const nb::gil_scoped_release released;  // a name may have to be looked up
    link = UdpLink::open(host, port, busy > 0, &why);
  }
  return opened(std::move(link), why);
}

std::unique_ptr<PythonLink> opened(std::unique_ptr<Link> link, const std::string &why) {
  if (link) return std::make_unique<PythonLink>(std::move(link));
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_ConnectionRefusedError, why.c_str());
  throw nb::python_error();
}

namespace {

std::unique_ptr<PythonLink> open_shm(const std::string &path, uint32_t busy, uint64_t timeout_us) {
  std::string why;
  std::unique_ptr<Link> link;
  {
    const nb::gil_scoped_release released;
    link = SharedLink::open(path, busy != 0, timeout_us, run_signal_handlers, &why);
  }
  return opened(std::move(link), why);
}

std::unique_ptr<PythonLink> open_socket(int file, uint32_t busy, const std::string &why) {
  std::unique_ptr<Link> link;
  if (file >= 0) link = std::make_unique<SocketLink>(file, busy != 0);
  return opened(std::move(link), why);
}

std::unique_ptr<PythonLink> open_tcp(const std::string &host, uint16_t port, uint32_t busy,
                                     uint64_t timeout_us) {
  std::string why;
  int file;
  {
    const nb::gil_scoped_release released;
    file = connect_tcp(host, port, timeout_us, run_signal_handlers, &why);
  }
  return open_socket(file, busy, why);
}

std::unique_ptr<PythonLink> open_unix(const std::string &path, uint32_t busy, uint64_t timeout_us) {
  std::string why;
  int file;
  {
    const nb::gil_scoped_release released;
    file = connect_unix(path, timeout_us, run_signal_handlers, &why);
  }
  return open_socket(file, busy, why);
}

}  // namespace

void bind_links(nb::module_ &module) {
  nb::class_<PythonLink>(module, "Link", "Connection to a server, for one thread at a time.")
      .def("exchange", &PythonLink::exchange, nb::arg("parts"), nb::arg("into"),
           nb::arg("timeout_us"),
           "Send a frame, in parts, and wait for its reply: how many bytes of `into` it takes, or "
           "the reply itself if it has no room there.")
      .def("probe", &PythonLink::probe, nb::arg("frame"), nb::arg("rounds"), nb::arg("timeout_us"),
           "How long each of so many exchanges of the frame took, in ns, as bytes of int64.")
      .def("set_frame_bytes", &PythonLink::set_frame_bytes, nb::arg("bytes"),
           "Most bytes that a reply may have.")
      .def("close", &PythonLink::close, "End it; a second time does nothing.");
  module.def("open_udp", &open_udp, nb::arg("host"), nb::arg("port"), nb::arg("busy") = 0,
             nb::arg("timeout_us") = 0,
             "A link by datagrams, which asks nobody yet. Raises ConnectionRefusedError.");
  module.def("open_shm", open_shm, nb::arg("path"), nb::arg("busy") = 0, nb::arg("timeout_us") = 0,
             "To a server on this machine, through memory. Raises ConnectionRefusedError.");
  module.def("why_no_shm", why_no_shared_memory,
             "Why this machine cannot share memory as it takes; empty: it can.");
  module.def("open_tcp", open_tcp, nb::arg("host"), nb::arg("port"), nb::arg("busy") = 0,
             nb::arg("timeout_us") = 0,
             "To a server's TCP socket, without Python; the host is an address in numbers. Raises "
             "ConnectionRefusedError.");
  module.def("open_unix", open_unix, nb::arg("path"), nb::arg("busy") = 0,
             nb::arg("timeout_us") = 0,
             "To a server's Unix socket, without Python. Raises ConnectionRefusedError.");
}

}  // namespace accel_rl::replay::bindings
