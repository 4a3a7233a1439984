// The handler among requests that cannot be met, memory that is refused and clients that vanish.

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <vector>

#include "frames.hpp"

using namespace frames;

static bool no_memory = false;

extern "C" void *__real_aligned_alloc(size_t alignment, size_t bytes);
extern "C" void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return no_memory ? nullptr : __real_aligned_alloc(alignment, bytes);
}

static LimiterConfig limited(uint64_t min_size, double max_diff) {
  LimiterConfig limiter;
  limiter.min_size = min_size, limiter.active = true, limiter.samples_per_insert = 1;
  limiter.min_diff = 0, limiter.max_diff = max_diff;
  return limiter;
}

static Status send_as(Talk &talk, Peer &peer, Request &&request, uint64_t number) {
  request.session(peer.session->token).number(number);
  return talk.send(peer, request.bytes.data(), request.bytes.size());
}

static void greet(Talk &talk, Peer &peer) {
  Request hello(Op::hello);
  CHECK(talk.send(peer, hello.bytes.data(), hello.bytes.size()) == Status::ok, "hello");
}

// What can never fit is refused, or all behind it would wait for it.
static void test_impossible() {
  Talk talk;
  talk.hello(), talk.open(64, limited(1, 10));
  CHECK(talk.send(sample(1, 11, 1000)) == Status::bad_count, "a sample that never fits");
  CHECK(talk.send(sample(1, 11)) == Status::retry, "and that would not have waited");
  CHECK(talk.send(push(std::vector<int32_t>(10))) == Status::ok, "push");
  CHECK(talk.send(push(std::vector<int32_t>(11), {}, 1000)) == Status::bad_count, "a push");
  talk.send(push(std::vector<int32_t>(10), {}, 1000));
  CHECK(talk.outcome == Outcome::waits, "a push that fits once all was drawn");
  CHECK(talk.send(sample(1, 10)) == Status::ok, "a sample that fits");
  Talk filled;  // up to the least size max_diff does not count
  filled.hello(), filled.open(64, limited(20, 4));
  filled.send(sample(1, 21, 1000));
  CHECK(filled.outcome == Outcome::reply, "a sample above the least size");
  filled.send(sample(1, 20, 1000));
  CHECK(filled.outcome == Outcome::waits, "a sample of the least size");
  CHECK(filled.send(push(std::vector<int32_t>(20), {}, 1000)) == Status::ok, "a push up to it");
}

// A peer that vanishes while it is served had a request before another one's: that one goes on.
static void test_lost_wake() {
  Talk talk;
  Peer second;
  talk.hello(), talk.open(8, limited(1, 4)), talk.open(8, {}, "u");
  greet(talk, second);
  talk.send(push({1, 2}));
  talk.send(push({3, 4, 5, 6}, {}, 1000));
  CHECK(talk.outcome == Outcome::waits, "a push of the first");
  send_as(talk, second, push({7, 8}, {}, 1000), 1);
  CHECK(talk.outcome == Outcome::waits, "one behind it");
  talk.send(sample(1, 1, 1000).set(field::header::table, 1));
  CHECK(talk.outcome == Outcome::waits, "a sample of the other table");
  Request other = push({9});
  other.set(field::header::table, 1);
  CHECK(send_as(talk, second, std::move(other), 2) == Status::ok, "what it waits for");
  int delivered = 0;
  talk.handler.serve_waiting(talk.now_ms, [&](Peer &peer, FrameBuffer &) {
    ++delivered;
    if (&peer == &talk.peer) talk.handler.disconnect(peer, talk.now_ms);
  });
  CHECK(delivered == 2, "%d replies", delivered);
  CHECK(talk.handler.tables()[0]->size() == 4, "the push behind it still waits");
  CHECK(!talk.handler.pending(), "there is more to do");
  talk.handler.disconnect(second, talk.now_ms);
}

// Without memory for the reply nothing is done: sent again, it would be done twice.
static void test_no_memory() {
  Talk talk;
  talk.hello(), talk.open(8);
  talk.send(push({1, 2}));
  Request requests[] = {push({3}), update({0}, {1}, {1}), Request(Op::publish)};
  requests[2]
      .set(field::publish::version, 1)
      .set(field::publish::name_bytes, 1)
      .section("n", 1)
      .section("", 0);
  for (Request &request : requests) {
    talk.reply.release();
    no_memory = true;
    talk.send(request);
    no_memory = false;
    CHECK(talk.outcome == Outcome::close, "a reply without memory");
  }
  const Stats stats = talk.handler.tables()[0]->stats();
  CHECK(stats.inserts == 2 && stats.updates == 0, "done without a reply");
  for (Request &request : requests) {
    CHECK(talk.send(talk.peer, request.bytes.data(), request.bytes.size()) == Status::ok, "again");
    CHECK(talk.outcome == Outcome::reply, "no reply");
  }
}

static void test_before_ready() {
  Talk talk;
  Request unknown(Op::ping);
  unknown.set(field::header::op, 99);
  CHECK(talk.send(unknown) == Status::out_of_order, "an operation that is none");
  CHECK(talk.outcome == Outcome::reply_and_close, "and it goes on");
  talk.hello();
  CHECK(talk.send(unknown) == Status::unknown_op && talk.outcome == Outcome::reply, "later");
}

// Sessions that have lost their connection make room for new ones, the oldest first.
static void test_sessions() {
  Settings wanted = settings();
  wanted.sessions = 2;
  Talk talk(std::move(wanted));
  Peer peers[3];
  greet(talk, peers[0]), greet(talk, peers[1]);
  const uint64_t tokens[] = {peers[0].session->token, peers[1].session->token};
  Request hello(Op::hello);
  CHECK(talk.send(peers[2], hello.bytes.data(), hello.bytes.size()) == Status::limit, "a third");
  talk.handler.disconnect(peers[1], 1000), talk.handler.disconnect(peers[0], 2000);
  peers[2] = Peer();
  greet(talk, peers[2]);
  CHECK(talk.handler.statistics().sessions == 2, "too many sessions");
  Peer back;
  talk.handler.disconnect(peers[2], 3000);
  hello.set(field::hello::resume, tokens[0]);
  talk.send(back, hello.bytes.data(), hello.bytes.size());
  CHECK(talk.get(field::welcome::resumed) == 1, "the newer one is gone");
  talk.handler.disconnect(back, 4000);
  back = Peer();
  hello.set(field::hello::resume, tokens[1]);
  talk.send(back, hello.bytes.data(), hello.bytes.size());
  CHECK(talk.get(field::welcome::resumed) == 0, "the older one is left");
  talk.handler.disconnect(back, 5000);
}

static void test_names() {
  Talk talk;
  talk.hello();
  const char *good[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
  const char *bad[] = {"\xFF",
                       "a\x80",
                       "\xC3",
                       "\xC0\xAF",
                       "\xE0\x80\xAF",
                       "\xED\xA0\x80",
                       "\xF4\x90\x80\x80",
                       "\xE2\x82x",
                       "\xC3\x28",
                       "\xF8\x88\x80"};
  for (const char *name : good) CHECK(talk.open(8, {}, name) == Status::ok, "%s", name);
  for (const char *name : bad) {
    CHECK(talk.open(8, {}, name) == Status::bad_name, "a name that is no UTF-8");
    Request publish(Op::publish);
    publish.set(field::publish::version, 1);
    publish.set(field::publish::name_bytes, static_cast<uint16_t>(std::strlen(name)));
    publish.section(name, std::strlen(name)).section("", 0);
    CHECK(talk.send(publish) == Status::bad_name, "of a message");
    for (size_t k = body_offset; k < talk.reply.size(); ++k)
      CHECK(talk.reply.data()[k] < 0x80, "the reply has the name");
  }
}

static void test_numbers() {
  Talk talk;
  talk.hello(), talk.open(8);
  Request zero = push({1});
  CHECK(talk.send(talk.peer, zero.bytes.data(), zero.bytes.size()) == Status::repeated, "number 0");
  CHECK(talk.handler.tables()[0]->size() == 0, "and it was done");
}

static Request open_amper(uint32_t capacity) {
  TableConfig config;
  config.name = "a", config.capacity = capacity, config.columns = {{"x", Dtype::i4, {}}};
  config.sampler = Sampler::amper_fr, config.priority_exponent = 1;
  Request open(Op::open_table);
  open.bytes.resize(body_offset + description_bytes(config));
  std::memset(open.bytes.data() + header_bytes, 0, open.bytes.size() - header_bytes);
  write_description(open.bytes.data(), config);
  open.set(field::open_table::flags, open_create | open_described).close();
  return open;
}

static void test_amper_batch() {
  Talk talk;
  talk.hello();
  CHECK(talk.send(open_amper(8)) == Status::ok && talk.send(push({1, 2, 3})) == Status::ok,
        "open, push");
  const uint32_t most = Limits().amper_batch;
  CHECK(talk.send(sample(1, most + 1, 1000)) == Status::bad_count, "above the cap");
  CHECK(talk.send(sample(1, most)) == Status::ok || talk.outcome == Outcome::waits, "the cap");
}

// Samples that take long are drawn in steps, one of a peer at a time, and end with their peer.
static void test_long_samples() {
  constexpr uint32_t capacity = 50000;
  Settings wanted = settings();
  wanted.table_bytes = 8 << 20;
  Talk talk(wanted);
  Peer second;
  talk.hello(), greet(talk, second);
  CHECK(talk.send(open_amper(capacity)) == Status::ok, "open");
  std::vector<float> priorities(capacity, 1e-3F);
  priorities[0] = 1;  // so that little matches, and millions of tries are made
  CHECK(talk.send(push(std::vector<int32_t>(capacity), priorities)) == Status::ok, "push");
  const uint32_t most = Limits().amper_batch;
  for (int k = 0; k < 3; ++k) {
    talk.send(sample(1, most));
    CHECK(talk.outcome == Outcome::waits, "a sample in one go");
  }
  send_as(talk, second, sample(2, most), 1);
  CHECK(talk.outcome == Outcome::waits && talk.handler.pending(), "another one's");
  std::vector<const Peer *> order;
  const auto serve = [&](const Handler::Deliver &deliver) {
    int turns = 0;
    for (; talk.handler.pending() && turns < 1000000; ++turns)
      talk.handler.serve_waiting(talk.now_ms, deliver);
    return turns;
  };
  const int turns = serve([&](Peer &peer, FrameBuffer &frame) {
    CHECK(get(frame.data(), field::header::status) == 0, "a sample failed");
    CHECK(get(frame.data(), field::sample_reply::batch) == most, "not the batch");
    order.push_back(&peer);
  });
  CHECK(turns > 4 && order.size() == 4, "%d turns, %zu replies", turns, order.size());
  CHECK(order.size() == 4 && (order[0] == &second || order[1] == &second),
        "the second waits for all of the first");
  for (int k = 0; k < 2; ++k) talk.send(sample(1, most));
  talk.handler.disconnect(talk.peer, talk.now_ms);
  CHECK(!talk.handler.pending() && talk.peer.sampling == 0, "samples for nobody");
  talk.handler.disconnect(second, talk.now_ms);
}

// Requests that wait cost nothing while they wait, however many there are.
static void test_many_wait() {
  constexpr uint32_t peers = 900, each = 60;
  Settings wanted = settings();
  Talk talk(wanted);
  talk.hello(), talk.open(8, limited(1, 4));
  std::vector<std::unique_ptr<Peer>> others;
  const auto began = std::chrono::steady_clock::now();
  for (uint32_t k = 0; k < peers; ++k) {
    others.push_back(std::make_unique<Peer>());
    greet(talk, *others.back());
    for (uint32_t number = 1; number <= each; ++number) {
      send_as(talk, *others.back(), sample(number, 1, 1000 + 37 * (k * each + number) % 5000),
              number);
      talk.handler.serve_waiting(talk.now_ms, [](Peer &, FrameBuffer &) {});
    }
  }
  CHECK(talk.handler.statistics().waiting == peers * each, "not all wait");
  CHECK(talk.handler.deadline_ms() == talk.now_ms + 1000, "%llu ms",
        static_cast<unsigned long long>(talk.handler.deadline_ms() - talk.now_ms));
  talk.handler.disconnect(*others[0], talk.now_ms);
  uint32_t ended = 0;
  for (uint64_t now = talk.now_ms; now < talk.now_ms + 6000; ++now)
    talk.handler.serve_waiting(now, [&](Peer &, FrameBuffer &) { ++ended; });
  CHECK(ended == (peers - 1) * each && talk.handler.deadline_ms() == 0, "%u ended", ended);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  CHECK(taken.count() < 10, "%g s", taken.count());
  for (const auto &other : others) {
    CHECK(other->waiting == 0 && other->parked.empty(), "one still waits");
    talk.handler.disconnect(*other, talk.now_ms);
  }
}

// Whoever waits for a snapshot has its end, though another one has begun.
static void test_snapshots() {
  char folder[] = "/tmp/replay-faults-XXXXXX";
  if (!mkdtemp(folder)) abort();
  Settings wanted = settings();
  wanted.snapshot_path = std::string(folder) + "/snapshot";
  Talk talk(wanted);
  talk.hello(), talk.open(8);
  talk.send(push({1, 2}));
  std::string why;
  const auto nobody = [](Peer &, FrameBuffer &) {};
  CHECK(talk.handler.begin_snapshot(&why) == Status::ok, "%s", why.c_str());
  const auto first = talk.handler.snapshots().last();
  while (talk.handler.snapshots().active()) talk.handler.serve_waiting(talk.now_ms, nobody);
  CHECK(first->over && first->status == Status::ok, "%s", first->why.c_str());
  CHECK(talk.handler.begin_snapshot(&why) == Status::ok, "%s", why.c_str());
  CHECK(talk.handler.snapshots().last() != first && first->over, "the second is the first");
  CHECK(!talk.handler.snapshots().last()->over, "it has ended");
  while (talk.handler.snapshots().active()) talk.handler.serve_waiting(talk.now_ms, nobody);
  // What was restored is not restored again over itself.
  Talk again(wanted);
  std::vector<std::string> notes;
  CHECK(again.handler.recover(&notes, &why) == Status::ok, "%s", why.c_str());
  CHECK(again.handler.recover(&notes, &why) == Status::out_of_order, "twice");
  CHECK(again.handler.tables().size() == 1, "tables");
  unlink(wanted.snapshot_path.c_str());
  rmdir(folder);
}

int main() {
  test_impossible();
  test_lost_wake();
  test_no_memory();
  test_before_ready();
  test_sessions();
  test_names();
  test_numbers();
  test_amper_batch();
  test_long_samples();
  test_many_wait();
  test_snapshots();
  return finish();
}
