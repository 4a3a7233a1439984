// The server as a Python class: an event loop in a thread of its own, which never needs Python.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <signal.h>
#include <sys/random.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "bindings.hpp"
#include "crypto.hpp"
#include "dpdk_transport.hpp"
#include "embedded.hpp"
#include "errors.hpp"
#include "event_loop.hpp"
#include "handler.hpp"
#include "links.hpp"
#include "server_settings.hpp"
#include "server_stats.hpp"
#include "udp.hpp"

namespace nb = nanobind;

namespace accel_rl::replay::bindings {

namespace {

bool random_bytes(uint8_t *to, size_t bytes) {
  return getrandom(to, bytes, 0) == static_cast<ssize_t>(bytes);
}

// What is allowed to datagrams, where the same is allowed to connections.
DatagramSettings datagram_settings(const LoopSettings &loop) {
  DatagramSettings made;
  made.peers = loop.connections;
  made.half_open = loop.handshakes;
  made.handshake_ms = loop.handshake_ms;
  made.frame_ms = loop.frame_ms;
  if (loop.idle_ms > 0) made.idle_ms = loop.idle_ms;
  made.buffer_bytes = loop.buffer_bytes;
  made.reply_bytes = loop.reply_bytes;
  made.unread_bytes = loop.unread_bytes;
  if (!random_bytes(reinterpret_cast<uint8_t *>(&made.cookie_key), sizeof made.cookie_key))
    throw std::runtime_error("the system has no random bits");
  return made;
}

class Server {
 public:
  Server(const ServerSettings &given, const std::optional<nb::bytes> &secret)
      : has_secret_(secret.has_value()) {
    Settings settings = given.server;
    settings.random = random_bytes;
    if (has_secret_) {
      settings.authenticate = authenticator({secret->c_str(), secret->size()});
      if (!settings.authenticate)
        throw nb::value_error("a secret takes OpenSSL, without which the server was built");
    }
    handler_ = std::make_unique<Handler>(std::move(settings));
    datagrams_ = datagram_settings(given.loop);
    loop_ = std::make_unique<EventLoop>(handler_.get(), given.loop);
    std::string why;
    embedded_ = std::make_unique<Embedded>(handler_.get(), loop_.get());
    if (!loop_->open(&why) || !loop_->add(embedded_.get(), &why))
      throw Error(Status::io_error, why);
  }

  ~Server() {
    stop();
    loop_.reset();  // they refer to each other in this order
    udp_.clear();
    embedded_.reset();
  }

  uint16_t listen_tcp(const std::string &host, uint16_t port, const std::string &certificate,
                      const std::string &key) {
    auto listener = std::make_unique<Listener>();
    std::string why;
    if (!certificate.empty()) {
      auto tls = TlsAcceptor::open(certificate, key, &why);
      if (!tls) throw nb::value_error(("TLS: " + why).c_str());
      listener->require(std::move(tls));
    }
    if (!listener->open_tcp(host, port, has_secret_, &why)) throw nb::value_error(why.c_str());
    const uint16_t taken = listener->port();
    add(std::move(listener));
    return taken;
  }

  void listen_unix(const std::string &path) {
    auto listener = std::make_unique<Listener>();
    std::string why;
    if (!listener->open_unix(path, &why)) throw nb::value_error(why.c_str());
    add(std::move(listener));
  }

  std::vector<std::string> listen_dpdk(std::vector<std::string> arguments, std::string address,
                                       uint16_t port, uint16_t mtu, bool forwards) {
    require_idle("listen");
    if (network_) throw nb::value_error("DPDK's ports are open already");
    DpdkSettings settings{std::move(arguments), std::move(address), port, mtu, forwards,
                          has_secret_,          datagrams_};
    std::vector<std::string> addresses;
    std::string why;
    std::unique_ptr<NicTransport> made;
    {
      const nb::gil_scoped_release released;
      made = open_dpdk(handler_.get(), settings, &addresses, &why);
    }
    if (!made || !loop_->add(made.get(), &why)) throw nb::value_error(why.c_str());
    const auto lock = loop_->hold();  // stats() looks at it
    network_ = std::move(made);
    return addresses;
  }

  uint16_t listen_udp(const std::string &host, uint16_t port) {
    require_idle("listen");
    auto transport = std::make_unique<Udp>(handler_.get(), datagrams_);
    std::string why;
    if (!transport->open(host, port, has_secret_, &why)) throw nb::value_error(why.c_str());
    const uint16_t taken = transport->port();
    if (!loop_->add(transport.get(), &why)) throw Error(Status::io_error, why);
    const auto lock = loop_->hold();  // stats() looks at it
    udp_.push_back(std::move(transport));
    return taken;
  }

  void listen_shared(const std::string &path) {
    auto listener = std::make_unique<Listener>();
    std::string why;
    if (!listener->open_shared(path, &why)) throw nb::value_error(why.c_str());
    add(std::move(listener));
  }

  std::unique_ptr<PythonLink> open_link() {
    std::string why;
    std::unique_ptr<Link> link;
    {
      const nb::gil_scoped_release released;
      link = embedded_->open(&why);
    }
    return opened(std::move(link), why);
  }

  std::vector<std::string> recover() {
    require_idle("recover");
    std::vector<std::string> notes;
    std::string why;
    Status status;
    {
      const nb::gil_scoped_release released;
      status = handler_->recover(&notes, &why);
    }
    expect_ok(status, why);
    return notes;
  }

  void start() {
    require_idle("start");
    const nb::gil_scoped_release released;
    const std::lock_guard<std::mutex> lock(starting_);
    if (stopped_ || thread_.joinable())
      throw Error(Status::out_of_order, "cannot start: the server was started before");
    thread_ = std::thread([this] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the main thread's
      loop_->run();
    });
    running_ = true;
  }

  void stop() {
    const nb::gil_scoped_release released;
    const std::lock_guard<std::mutex> lock(starting_);  // a second caller waits for the first
    stopped_ = true;
    if (thread_.joinable()) {
      loop_->stop();
      thread_.join();
    }
    running_ = false;
    loop_->close();  // also if it never ran
    for (const auto &each : listeners_) each->close();
    handler_->log().flush();          // the next server reads it
    const auto held = loop_->hold();  // stats() looks at it
    network_.reset();
  }

  nb::dict stats() {
    ServerStats now;
    bool draining = false, is_logged = false;
    uint64_t logged = 0;
    std::string trouble;
    {
      const nb::gil_scoped_release released;
      const auto lock = loop_->hold();
      now.server = handler_->statistics();
      now.latencies = handler_->latencies();
      draining = handler_->draining();
      is_logged = handler_->log().active();
      logged = handler_->log().bytes();
      trouble = handler_->log().trouble();
      for (const auto &each : handler_->tables())
        if (each) now.tables.emplace_back(each->config().name, each->stats());
      for (const auto &each : udp_) now.add(each->counts());
      if (network_) {
        now.add(network_->datagram_counts());
        now.network = network_->counters();
      }
    }
    nb::dict out = now.describe();
    out["draining"] = draining;
    if (!is_logged) return out;
    nb::dict log;
    log["bytes"] = logged, log["trouble"] = trouble;
    out["log"] = log;
    return out;
  }

  // Those since the last call.
  nb::list slow_requests() {
    std::deque<SlowRequest> found;
    {
      const nb::gil_scoped_release released;
      const auto lock = loop_->hold();
      found = handler_->slow().take();
    }
    nb::list all;
    for (const SlowRequest &each : found)
      all.append(
          nb::make_tuple(each.at_ms, each.us, each.op, each.table, each.bytes, each.session));
    return all;
  }

  // Waits until it is on the disk.
  void snapshot() {
    std::string why;
    Status status;
    {
      const nb::gil_scoped_release released;
      auto lock = loop_->hold();
      const auto go_on = [this] { handler_->serve_waiting(0, [](Peer &, FrameBuffer &) {}); };
      // Nobody else finishes what was being written when the server stopped.
      while (!running_ && handler_->snapshots().active()) go_on();
      status = handler_->begin_snapshot(&why);
      std::shared_ptr<const SnapshotEnd> end;  // of this one, whatever begins after it
      if (status == Status::ok) end = handler_->snapshots().last();
      while (end && !end->over) {
        if (!running_) {
          go_on();
          continue;
        }
        lock.unlock();
        loop_->wake();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        lock = loop_->hold();
      }
      if (end) status = end->status, why = end->why;
    }
    expect_ok(status, why);
  }

 private:
  void require_idle(const char *what) const {
    if (running_)
      throw Error(Status::out_of_order, std::string("cannot ") + what + ": the server is running");
  }

  void add(std::unique_ptr<Listener> listener) {
    require_idle("listen");
    std::string why;
    if (!loop_->add(listener.get(), &why)) throw nb::value_error(why.c_str());
    listeners_.push_back(std::move(listener));
  }

  bool has_secret_;
  std::unique_ptr<Handler> handler_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::unique_ptr<NicTransport> network_;  // DPDK's ports
  std::vector<std::unique_ptr<Udp>> udp_;
  DatagramSettings datagrams_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Embedded> embedded_;
  std::mutex starting_;  // held while the thread is begun or ended
  bool stopped_ = false;
  std::atomic<bool> running_{false};
  std::thread thread_;
};

}  // namespace

}  // namespace accel_rl::replay::bindings

void bind_server(nb::module_ &module) {
  using namespace accel_rl::replay;
  using namespace accel_rl::replay::bindings;
  bind_settings(module);
  module.def(
      "why_no_crypto",
      [] { return std::string(crypto_built() ? "" : "the server was built without OpenSSL"); },
      "Why there are neither secrets nor TLS; empty: there are.");
  nb::class_<Server>(module, "Server", "A replay server, in a thread of its own.")
      .def(nb::init<const ServerSettings &, const std::optional<nb::bytes> &>(),
           nb::arg("settings"), nb::arg("secret").none())
      .def("listen_tcp", &Server::listen_tcp, nb::arg("host"), nb::arg("port"),
           nb::arg("certificate") = "", nb::arg("key") = "",
           "Listen before start(), by TLS if a certificate is given; returns the port. Raises "
           "ValueError.")
      .def("listen_unix", &Server::listen_unix, nb::arg("path"),
           "Listen before start(). Raises ValueError.")
      .def("listen_dpdk", &Server::listen_dpdk, nb::arg("arguments"), nb::arg("address"),
           nb::arg("port"), nb::arg("mtu"), nb::arg("in_network"),
           "Open DPDK's ports before start(); returns their addresses. Raises ValueError.")
      .def("listen_udp", &Server::listen_udp, nb::arg("host"), nb::arg("port"),
           "Listen for datagrams before start(); returns the port. Raises ValueError.")
      .def("listen_shared", &Server::listen_shared, nb::arg("path"),
           "Share memory with who connects there; before start(). Raises ValueError.")
      .def("open_link", &Server::open_link, nb::keep_alive<0, 1>(),
           "A link from this process. Raises ConnectionRefusedError if the server is closed.")
      .def("recover", &Server::recover,
           "Begin with what the files of the snapshot path hold, before start(); returns what was "
           "found wrong with them.")
      .def("start", &Server::start, "Begin to serve, once: not after stop().")
      .def("stop", &Server::stop, "End the thread and all connections; a second time does nothing.")
      .def("stats", &Server::stats)
      .def("slow_requests", &Server::slow_requests,
           "(milliseconds from 1970, microseconds taken, operation, table, bytes, session) of each "
           "since the last call, of the newest 1,000.")
      .def("snapshot", &Server::snapshot, "Write a snapshot and wait until it is on the disk.");
}
