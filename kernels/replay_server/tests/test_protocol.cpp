// The parser: what it takes, what it refuses, and that it survives whatever comes.

#include "frames.hpp"
#include "parser.hpp"

using namespace frames;

static Frame frame_in(const Request &request) {
  Frame frame;
  const Status status = frame_of(request.bytes.data(), request.bytes.size(), UINT32_MAX, &frame);
  CHECK(status == Status::ok, "status %d", static_cast<int>(status));
  return frame;
}

static void test_header() {
  Request request(Op::ping);
  Frame frame;
  const auto status = [&] {
    return frame_of(request.bytes.data(), request.bytes.size(), 1000, &frame);
  };
  CHECK(status() == Status::ok && frame.header.length == 64, "a ping");
  CHECK(
      request.set(field::header::length, 1001).bytes.size() == 64 && status() == Status::too_large,
      "1001");
  request.set(field::header::length, 63);
  CHECK(status() == Status::malformed, "less than a frame");
  request.set(field::header::length, 64).set(field::header::version, 2);
  CHECK(status() == Status::bad_protocol, "version 2");
  request.set(field::header::version, 1).at<uint8_t>(field::header::magic.offset, 'B');
  CHECK(status() == Status::bad_magic, "magic");
}

static void test_request() {
  Request request(Op::ping);
  request.check();
  CHECK(check_request(frame_in(request)) == Status::ok, "with a checksum");
  for (size_t k = 0; k < request.bytes.size(); ++k) {
    if (k < 6 || (k >= 32 && k < 36)) continue;  // what is no frame any more
    request.bytes.data()[k] ^= 4;
    const Status status = check_request(frame_in(request));
    CHECK(status != Status::ok, "byte %zu was changed", k);
    request.bytes.data()[k] ^= 4;
  }
  Request plain(Op::ping);
  CHECK(check_request(frame_in(plain)) == Status::ok, "without one");
  CHECK(check_request(frame_in(plain.set(field::header::checksum, 1))) == Status::malformed,
        "a checksum");
  plain.set(field::header::checksum, 0).set(field::header::flags, flag_reply);
  CHECK(check_request(frame_in(plain)) == Status::malformed, "a reply");
  plain.set(field::header::flags, 0);
  for (const int op : {0, 2, 4, 15, 255}) {
    plain.set(field::header::op, static_cast<uint8_t>(op));
    CHECK(check_request(frame_in(plain)) == Status::unknown_op, "operation %d", op);
  }
}

static void test_push() {
  const Limits limits;
  const std::vector<size_t> columns = {4};
  Push out;
  Request good = push({1, 2, 3}, {1, 2, 3});
  CHECK(parse_push(frame_in(good), limits, columns, &out) == Status::ok, "a push");
  CHECK(out.items == 3 && out.priorities[2] == 3 &&
            read_at<int32_t>(reinterpret_cast<const uint8_t *>(out.columns[0]) + 8) == 3,
        "its items");
  const auto refused = [&](Request &request) {
    return parse_push(frame_in(request), limits, columns, &out);
  };
  // Counts whose product with the item's bytes does not fit 32 bits, or wraps there.
  for (const uint32_t items : {4u, 2u, 0x40000001u, UINT32_MAX}) {
    const Status status = refused(good.set(field::push::items, items));
    CHECK(status == (items > limits.batch ? Status::bad_count : Status::malformed), "%u", items);
  }
  CHECK(refused(good.set(field::push::items, 0)) == Status::bad_count, "no items");
  good.set(field::push::items, 3).at<uint8_t>(100, 1);
  CHECK(refused(good) == Status::malformed, "bytes in a gap");
  good.at<uint8_t>(100, 0).section("", 1);
  CHECK(refused(good) == Status::malformed, "more than was announced");
}

static void test_table() {
  Talk talk;
  CHECK(talk.hello() == Status::ok, "hello");
  CHECK(talk.open(8) == Status::ok, "open");
  // The reply describes the table, so all of it but the direction is a request again.
  Request request(Op::open_table);
  request.bytes.clear();
  request.bytes.append(talk.reply.data(), talk.reply.size());
  request.set(field::header::flags, 0).set(field::open_table::flags, open_described);
  OpenTable out;
  std::string why;
  CHECK(parse_open_table(frame_in(request), &out, &why) == Status::ok, "%s", why.c_str());
  CHECK(out.config == talk.handler.tables()[0]->config(), "another table");
  for (size_t size = request.bytes.size() - 1; size >= body_offset; --size) {
    request.bytes.resize(size);
    request.close();
    CHECK(parse_open_table(frame_in(request), &out, &why) == Status::malformed, "%zu bytes", size);
  }
}

// Valid requests with a few bytes changed: whatever is in them, none is read beyond its end.
static void test_changed() {
  uint64_t state = 88172645463325252;
  Settings wanted = settings();
  wanted.limits.batch = 64;
  Talk talk(std::move(wanted));
  talk.hello(), talk.open(16);
  for (int round = 0; round < 20000; ++round) {
    Request requests[] = {push({1, 2, 3}, {1, 2, 3}),     sample(7, 3),
                          update({0, 1}, {1, 1}, {1, 2}), Request(Op::hello),
                          Request(Op::stats, 0),          Request(Op::fetch)};
    Request &request = requests[random_between(&state, 0, 5)];
    for (int64_t k = random_between(&state, 1, 4); k > 0; --k) {
      const auto at = random_between(&state, 5, static_cast<int64_t>(request.bytes.size()) - 1);
      request.bytes.data()[at] = static_cast<uint8_t>(random_bits(&state));
    }
    // In memory that ends with the frame, for the sanitizer to watch.
    const size_t size = request.bytes.size();
    auto *exact = static_cast<uint8_t *>(std::aligned_alloc(64, aligned(size)));
    std::memcpy(exact, request.bytes.data(), size);
    Peer other;
    Peer &peer = round % 8 == 0 ? other : talk.peer;
    talk.send(peer, exact, size);
    std::free(exact);
    CHECK(&peer == &other || talk.peer.session || talk.peer.state == Peer::State::closed, "peer");
    talk.handler.disconnect(other, 0);
    if (talk.peer.state != Peer::State::ready) {
      talk.handler.disconnect(talk.peer, 0);
      talk.handler.expire_unused(1000000);  // forget the session
      talk.peer = Peer();
      talk.hello();
    }
  }
}

int main() {
  test_header();
  test_request();
  test_push();
  test_table();
  test_changed();
  return finish();
}
