// Shared memory: good clients, those that break its rules, those that vanish, and servers that do.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "serving.hpp"
#include "shared_layout.hpp"
#include "shared_link.hpp"

using namespace frames;

// A client that does with the memory whatever it likes.
struct Raw {
  int file, memory = -1;
  uint64_t ring_bytes = 0;
  size_t bytes = 0;
  SharedWords *words = nullptr;
  uint64_t written = 0;

  explicit Raw(const std::string &path) : file(Serving::wait_for(dial_unix(path))) {
    SharedGreeting greeting = {};
    iovec part = {&greeting, sizeof greeting};
    alignas(cmsghdr) char rights[CMSG_SPACE(sizeof memory)] = {};
    msghdr message = {};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = rights, message.msg_controllen = sizeof rights;
    if (recvmsg(file, &message, 0) != ssize_t{sizeof greeting}) return;
    std::memcpy(&memory, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof memory);
    ring_bytes = greeting.ring_bytes;
    bytes = shared_bytes(ring_bytes);
    words = static_cast<SharedWords *>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
    if (words == MAP_FAILED) abort();
  }
  ~Raw() {
    if (words) munmap(words, bytes);
    if (memory >= 0) close(memory);
    close(file);
  }
  uint8_t *requests() { return reinterpret_cast<uint8_t *>(words) + shared_words_bytes; }
  void ring() { send(file, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT); }
  // What fits into the ring from its beginning on; the rest is not sent.
  void put(const Request &request, size_t count) {
    for (size_t k = 0; k < count; ++k)
      requests()[(written + k) % ring_bytes] = request.bytes.data()[k];
    written += count;
    words->requests.written = written;
    ring();
  }
  uint64_t greet() {
    const Request hello(Op::hello);
    put(hello, hello.bytes.size());
    for (int k = 0; k < 2000 && words->replies.written < 64; ++k)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return read_at<uint64_t>(requests() + ring_bytes + 8);
  }
};

// A client with a session.
struct Client {
  std::string why;
  std::unique_ptr<SharedLink> link;
  uint64_t token = 0;
  uint8_t reply[4096];

  Client(const Serving &server, bool busy)
      : link(SharedLink::open(server.shared_path, busy, 10000000, {}, &why)) {
    CHECK(link != nullptr, "%s", why.c_str());
    if (!link) abort();
    link->set_frame_bytes(64 << 20);
    CHECK(exchange(Request(Op::hello)) == Fault::none, "hello");
    token = get(link->reply(), field::header::session);
  }
  Fault exchange(const Request &request, uint64_t timeout_us = 20000000,
                 const Link::KeepWaiting &keep_waiting = {}) {
    const Part part = {request.bytes.data(), request.bytes.size()};
    return link->exchange(&part, 1, reply, sizeof reply, timeout_us, keep_waiting);
  }
  Status status() const { return static_cast<Status>(get(link->reply(), field::header::status)); }
  bool echoes(size_t count, uint64_t number) {
    Request request = ping(token, count);
    request.number(number);
    return exchange(request) == Fault::none && link->reply_bytes() == request.bytes.size() &&
           std::memcmp(link->reply() + body_offset, request.bytes.data() + body_offset, count) == 0;
  }
  void open_table() {
    Request open = opening(100);
    open.session(token);
    CHECK(exchange(open) == Fault::none && status() == Status::ok, "open");
  }
};

static LoopSettings small_rings(Idle idle = Idle::block) {
  LoopSettings made;
  made.ring_bytes = 4096, made.idle = idle;
  return made;
}

// Frames that are far larger than the ring, and small ones, whoever sleeps or looks all the time.
static void test_round_trips(Idle idle, bool busy) {
  Serving server(small_rings(idle));
  Client client(server, busy), other(server, busy);
  for (uint64_t k = 0; k < 100; ++k) {
    CHECK(client.echoes(k % 7, k), "ping %d", static_cast<int>(k));
    CHECK(other.echoes(1 + k * 61 % 9000, k), "larger ping %d", static_cast<int>(k));
  }
  CHECK(client.echoes(1 << 20, 1000), "a large frame");
  const int file = server.dial();
  CHECK(greet(file) != 0, "a socket beside it");
  close(file);
}

static void test_wrong_positions() {
  Serving server(small_rings());
  Client good(server, false);
  {
    Raw beyond(server.shared_path), before(server.shared_path), replies(server.shared_path);
    beyond.greet(), before.greet();
    const uint64_t token = replies.greet();
    beyond.words->requests.written = beyond.written + 4097, beyond.ring();
    before.words->requests.written = before.written - 1, before.ring();
    CHECK(server.soon([](const Statistics &now) { return now.malformed == 2; }), "not noticed");
    replies.words->replies.read = uint64_t{1} << 40;
    const Request request = ping(token, 10);
    replies.put(request, request.bytes.size());
    CHECK(server.soon([](const Statistics &now) { return now.open == 1; }), "they are left");
  }
  CHECK(good.echoes(100, 1), "the good one is gone");
}

// All that a process may do to the memory while the server reads it.
static void test_changing_memory() {
  LoopSettings wanted = small_rings();
  wanted.frame_ms = 300;
  Serving server(wanted);
  Client good(server, false);
  const pid_t child = fork();
  if (child == 0) {
    uint64_t state = 1;
    for (;;) {
      Raw raw(server.shared_path);
      if (!raw.words) continue;
      raw.greet();
      const Request request = push({1, 2, 3, 4});
      for (int k = 0; k < 3000; ++k) {
        uint8_t *memory = raw.requests();
        if (k % 50 == 0)
          for (size_t at = 0; at < 4096; ++at)
            memory[at] = request.bytes.data()[at % request.bytes.size()];
        memory[random_bits(&state) % 4096] = static_cast<uint8_t>(random_bits(&state));
        const uint64_t more = random_bits(&state) % 64;
        raw.words->requests.written += random_bits(&state) % 1000 == 0 ? more << 40 : more;
        raw.words->client_wants = static_cast<uint32_t>(random_bits(&state) % 4);
        raw.words->replies.read = raw.words->replies.written.load();
        if (random_bits(&state) % 8 == 0) raw.ring();
      }
    }
  }
  for (uint64_t k = 0; k < 60; ++k) {
    CHECK(good.echoes(5000, k), "ping %d", static_cast<int>(k));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(server.soon([](const Statistics &now) { return now.open == 1; }), "one is left");
  CHECK(server.counts().malformed > 0, "nothing was noticed");
}

// The server maps what nobody can make smaller, or it would be killed by reading it.
static void test_sealed() {
  Serving server(small_rings());
  Raw raw(server.shared_path);
  CHECK(ftruncate(raw.memory, 0) != 0 && ftruncate(raw.memory, 1 << 20) != 0, "its size changes");
  CHECK(fcntl(raw.memory, F_ADD_SEALS, F_SEAL_WRITE) != 0, "it can be sealed further");
}

static void test_vanished_clients() {
  LoopSettings wanted = small_rings();
  wanted.handshake_ms = 300;
  Serving server(wanted);
  const pid_t child = fork();
  if (child == 0) {  // killed in the middle of a frame
    Raw raw(server.shared_path);
    Request half = push({1, 2, 3, 4});
    half.session(raw.greet());
    raw.put(half, 70);
    for (;;) pause();
  }
  CHECK(server.soon([](const Statistics &now) { return now.sessions == 1; }), "no session");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(server.soon([](const Statistics &now) { return now.open == 0; }), "it is left");
  Raw silent(server.shared_path);
  CHECK(server.soon([](const Statistics &now) { return now.timed_out == 1; }), "a silent one is");
}

static void test_never_reads() {
  LoopSettings wanted = small_rings();
  wanted.write_ms = 300;
  Serving server(wanted);
  Client good(server, false);
  Raw slow(server.shared_path);
  const uint64_t token = slow.greet();
  const Request request = ping(token, 1900);
  for (int k = 0; k < 2000 && server.counts().slow == 0; ++k) {
    if (slow.written - slow.words->requests.read < 2000) slow.put(request, request.bytes.size());
    if (k % 100 == 0) CHECK(good.echoes(10, static_cast<uint64_t>(k)), "the good one waits");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(server.soon([](const Statistics &now) { return now.slow == 1 && now.open == 1; }), "left");
}

// A client that waits learns that its server has gone, and that its caller wants no more.
static void test_ends_of_waiting(bool busy) {
  Serving server(small_rings());
  Client client(server, busy), second(server, busy);
  client.open_table();
  Request waits = sample(1, 4, 60000);
  waits.session(second.token);
  CHECK(second.exchange(waits, 20000) == Fault::timed_out, "it is there");
  Client third(server, busy);
  waits.session(third.token);
  int asked = 0;
  CHECK(third.exchange(waits, 0, [&] { return ++asked < 2; }) == Fault::interrupted, "it went on");
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    server.stop();
  });
  waits.session(client.token);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(client.exchange(waits, 0) == Fault::closed, "a reply from nobody");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10), "it took long");
  stopper.join();
}

static void test_limits() {
  LoopSettings wanted;
  wanted.buffer_bytes = 3 << 20;  // one client's memory, of 2 MiB, and no other's
  Serving server(wanted);
  Client client(server, false);
  Raw second(server.shared_path);
  CHECK(second.words == nullptr, "there is memory for another");
  CHECK(server.counts().turned_away == 1, "it was not counted");
  CHECK(client.echoes(100, 1), "the first one has to go");
  std::string why;
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{2048}, uint64_t{5000}, uint64_t{1} << 31}) {
    LoopSettings odd;
    odd.ring_bytes = bytes;
    EventLoop loop(&server.handler, odd);
    CHECK(loop.open(&why) && !loop.add(&server.shared, &why), "rings of %d", int(bytes));
    CHECK(why.find("ring_bytes must be") == 0, "%s", why.c_str());
  }
  CHECK(!SharedLink::open(server.path, false, 200000, {}, &why), "a socket without memory");
  CHECK(!SharedLink::open(std::string(200, 'x'), false, 0, {}, &why), "a path too long");
}

int main() {
  for (const Idle idle : {Idle::block, Idle::spin, Idle::yield, Idle::sleep})
    for (const bool busy : {false, true}) test_round_trips(idle, busy);
  test_wrong_positions();
  test_changing_memory();
  test_sealed();
  test_vanished_clients();
  test_never_reads();
  test_ends_of_waiting(false), test_ends_of_waiting(true);
  test_limits();
  return finish();
}
