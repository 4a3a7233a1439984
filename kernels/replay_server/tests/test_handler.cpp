// The handler without a socket: sessions, exactly once, waiting, and the traces of golden/.

#include <fstream>
#include <iostream>

#include "frames.hpp"

using namespace frames;

static const Handler::Deliver nobody = [](Peer &, FrameBuffer &) { abort(); };

static void test_order() {
  Talk talk;
  CHECK(talk.send(Request(Op::ping)) == Status::out_of_order, "before hello");
  CHECK(talk.outcome == Outcome::reply_and_close, "and it goes on");
  CHECK(talk.hello() == Status::ok && talk.get(field::header::session) == first_token, "hello");
  CHECK(talk.send(Request(Op::ping)) == Status::ok, "ping");
  CHECK(talk.send(Request(Op::ping).session(1)) == Status::wrong_session, "a wrong token");
  CHECK(talk.hello() == Status::out_of_order, "hello again");
  CHECK(talk.send(Request(Op::sample, 3)) == Status::no_such_table, "table 3");
}

static void test_secret() {
  Settings wanted = settings();
  wanted.authenticate = [](const uint8_t *transcript, const uint8_t *mac, uint64_t token,
                           uint8_t *own) {
    std::memset(own, 7, mac_bytes);
    return transcript[0] == 1 && mac[0] == 9 && token != 0;
  };
  Talk talk(std::move(wanted));
  uint8_t mac[mac_bytes] = {9};
  CHECK(talk.send(Request(Op::auth).section(mac, mac_bytes)) == Status::out_of_order, "no hello");
  CHECK(talk.hello() == Status::ok &&
            talk.get(field::header::op) == static_cast<uint8_t>(Op::challenge),
        "challenge");
  CHECK(talk.send(Request(Op::ping)) == Status::out_of_order, "not yet");
  mac[0] = 8;
  CHECK(talk.send(Request(Op::auth).section(mac, mac_bytes)) == Status::unauthenticated, "wrong");
  CHECK(talk.outcome == Outcome::reply_and_close, "and it goes on");
  CHECK(talk.handler.statistics().unauthenticated == 1, "not counted");
  mac[0] = 9;
  CHECK(talk.send(Request(Op::auth).section(mac, mac_bytes)) == Status::ok, "right");
  CHECK(talk.reply.data()[body_offset] == 7, "the server's own");
}

static void test_once() {
  Talk talk;
  talk.hello(), talk.open(8);
  Request request = push({1, 2});
  CHECK(talk.send(request) == Status::ok && talk.get(field::push_reply::held) == 2, "push");
  const uint64_t token = talk.peer.session->token;
  talk.handler.disconnect(talk.peer, talk.now_ms);
  Peer second;
  Request again(Op::hello);
  again.set(field::hello::resume, token);
  CHECK(talk.send(second, again.bytes.data(), again.bytes.size()) == Status::ok, "resume");
  CHECK(talk.get(field::welcome::resumed) == 1 && talk.get(field::header::session) == token,
        "another session");
  CHECK(talk.send(second, request.bytes.data(), request.bytes.size()) == Status::ok, "push again");
  CHECK(talk.get(field::push_reply::held) == 2 && talk.handler.tables()[0]->size() == 2,
        "done twice");
  for (uint64_t k = 0; k < Recent::kept; ++k) {
    Request other = push({3});
    other.number(100 + k);
    talk.send(second, other.bytes.data(), other.bytes.size());
  }
  CHECK(talk.send(second, request.bytes.data(), request.bytes.size()) == Status::repeated, "old");
  // A session that goes on elsewhere leaves its connection.
  Peer third;
  talk.send(third, again.bytes.data(), again.bytes.size());
  CHECK(second.state == Peer::State::closed && !second.session, "two connections of a session");
  talk.handler.disconnect(third, talk.now_ms);
  talk.handler.expire_unused(talk.now_ms + 59999);
  CHECK(talk.handler.statistics().sessions == 1, "forgotten too early");
  talk.handler.expire_unused(talk.now_ms + 60000);
  CHECK(talk.handler.statistics().sessions == 0, "not forgotten");
}

static void test_waiting() {
  Talk talk;
  LimiterConfig limiter;
  limiter.min_size = 2, limiter.active = true, limiter.samples_per_insert = 1;
  limiter.min_diff = 0, limiter.max_diff = 4;
  talk.hello(), talk.open(8, limiter);
  CHECK(talk.send(sample(1, 1)) == Status::retry, "nothing there, no time");
  talk.send(sample(1, 2, 50));
  CHECK(talk.outcome == Outcome::waits, "a sample that may wait");
  CHECK(talk.handler.deadline_ms() == talk.now_ms + 50, "when");
  CHECK(talk.send(sample(1, 1)) == Status::retry, "it overtook");
  int delivered = 0;
  Status status = Status::malformed;
  const Handler::Deliver deliver = [&](Peer &, FrameBuffer &frame) {
    ++delivered;
    status = static_cast<Status>(get(frame.data(), field::header::status));
  };
  talk.handler.serve_waiting(talk.now_ms + 49, nobody);
  CHECK(talk.send(push({1, 2, 3, 4})) == Status::ok, "push");
  talk.handler.serve_waiting(talk.now_ms, deliver);
  CHECK(delivered == 1 && status == Status::ok, "the sample did not go on");
  talk.send(push({5, 6, 7}, {}, 50));
  CHECK(talk.outcome == Outcome::waits, "a push above max_diff");
  talk.handler.serve_waiting(talk.now_ms + 50, deliver);
  CHECK(delivered == 2 && status == Status::retry, "its time is over");
  talk.send(push({5, 6, 7}, {}, 50));
  talk.handler.disconnect(talk.peer, talk.now_ms);
  talk.handler.serve_waiting(talk.now_ms + 100, nobody);
  CHECK(talk.handler.tables()[0]->stats().inserts == 4, "a push of one who has left");
  CHECK(talk.handler.statistics().waiting == 0, "somebody waits");
}

static void test_limits() {
  Settings wanted = settings();
  wanted.limits.frame_bytes = 4096;
  wanted.limits.batch = 1000;
  wanted.tables = 1;
  Talk talk(std::move(wanted));
  talk.hello();
  CHECK(talk.open(1u << 20) == Status::limit, "a table above the cap");
  CHECK(talk.open(8) == Status::ok && talk.open(8) == Status::ok, "the same table twice");
  CHECK(talk.open(9) == Status::table_differs, "another one of that name");
  CHECK(talk.open(8, {}, "u") == Status::limit, "a second table");
  talk.send(push({1, 2, 3}));
  CHECK(talk.send(sample(1, 500)) == Status::limit, "a reply above the limit of frames");
  CHECK(talk.send(sample(1, 1001)) == Status::bad_count, "a batch above the limit");
  CHECK(talk.send(push({1}, {-1})) == Status::bad_priority, "a negative priority");
  CHECK(talk.send(update({9}, {1}, {1})) == Status::bad_slot, "slot 9 of 8");
  CHECK(talk.handler.tables()[0]->size() == 3, "what was refused left something");
}

static std::string hex_of(const FrameBuffer &bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t k = 0; k < bytes.size(); ++k) {
    text += digits[bytes.data()[k] >> 4];
    text += digits[bytes.data()[k] & 15];
  }
  return text;
}

// A trace has requests, "> hex", and their replies, "< hex". Prints it with the replies of this
// handler if asked to, to be looked at before it becomes the trace.
static void test_trace(const char *path, bool print) {
  std::ifstream file(path);
  Talk talk;
  std::string line, want;
  int replies = 0;
  while (std::getline(file, line)) {
    if (line.rfind("< ", 0) == 0) {
      if (!print) CHECK(line.substr(2) == want, "reply %d of %s", replies, path);
      ++replies;
      continue;
    }
    if (print) std::cout << line << "\n";
    if (line.rfind("> ", 0) != 0) continue;
    FrameBuffer bytes;
    for (size_t k = 2; k + 1 < line.size(); k += 2) {
      const auto byte = static_cast<uint8_t>(std::stoul(line.substr(k, 2), nullptr, 16));
      bytes.append(&byte, 1);
    }
    talk.send(talk.peer, bytes.data(), bytes.size());
    want = hex_of(talk.reply);
    if (print) std::cout << "< " << want << "\n";
  }
  CHECK(print || replies > 0, "no trace in %s", path);
}

int main(int count, char **arguments) {
  if (count == 3) {  // test_handler print TRACE
    test_trace(arguments[2], true);
    return 0;
  }
  test_order();
  test_secret();
  test_once();
  test_waiting();
  test_limits();
  if (count == 2) test_trace(arguments[1], false);
  return finish();
}
