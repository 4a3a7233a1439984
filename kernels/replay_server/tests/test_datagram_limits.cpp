// What a server of datagrams does with those that no client of ours would send.

#include "simulated.hpp"

using namespace simulated;

// Datagrams by hand, and what comes back.
struct Hand {
  World world;
  uint64_t token = 0;

  explicit Hand(DatagramSettings caps = {}, Settings wanted = settings())
      : world(1, {}, std::move(wanted), caps) {
    world.end.record = true;
  }

  std::vector<uint8_t> fragment(const Request &request, uint16_t number, uint32_t slice,
                                uint16_t count) {
    const uint8_t *bytes = request.bytes.data();
    const size_t begin = header_bytes + size_t{number} * slice;
    const size_t end = number + 1 == count ? request.bytes.size() : begin + slice;
    return datagram(bytes, number, count, bytes + begin, end - begin);
  }
  std::vector<uint8_t> datagram(const uint8_t *header, uint16_t number, uint16_t count,
                                const uint8_t *from, size_t bytes) {
    const Part part{from, bytes};
    std::vector<uint8_t> made(header_bytes + bytes);
    write_fragment_header(header, number, count, &part, 1, made.data());
    std::memcpy(made.data() + header_bytes, from, bytes);
    return made;
  }
  std::vector<uint8_t> whole(const Request &request) {
    return fragment(request, 0, static_cast<uint32_t>(request.bytes.size() - header_bytes), 1);
  }
  void put(const std::vector<uint8_t> &datagram, uint32_t from = 0) {
    world.server.receive(address_of(from), datagram.data(), datagram.size(), world.now_ms());
  }
  Header last() const {
    Header header;
    const std::vector<uint8_t> &bytes = world.end.sent.back();
    CHECK(read_datagram(bytes.data(), bytes.size(), &header) == DatagramCheck::ok, "no datagram");
    return header;
  }
  size_t replies() const { return world.end.sent.size(); }
  bool last_is(Op op) const { return replies() > 0 && last().op == static_cast<uint8_t>(op); }

  // A HELLO with the cookie that the one without got.
  Request hello(uint64_t greeting = 77, uint32_t from = 0) {
    Request asks(Op::hello);
    put(whole(asks.session(greeting)), from);
    CHECK(last_is(Op::cookie), "no cookie");
    const auto cookie = get(world.end.sent.back().data(), field::cookie::value);
    Request again(Op::hello);
    again.section(&cookie, sizeof cookie);
    return std::move(again.session(greeting));
  }
  void greet(uint64_t greeting = 77, uint32_t from = 0) {
    put(whole(hello(greeting, from)), from);
    CHECK(last_is(Op::welcome), "no welcome");
    token = last().session;
  }
  Request &numbered(Request &request, uint64_t number) {
    return request.session(token).number(number);
  }
  void ask(Request &&request, uint64_t number) { put(whole(numbered(request, number))); }
  void acknowledge(uint64_t number, const Ack &ack) {
    uint8_t bytes[body_offset];
    write_ack(token, number, 0, ack, bytes);
    put({bytes, bytes + sizeof bytes});
  }
  // The client has a reply of so many fragments.
  void thank(uint64_t number, uint32_t fragments) {
    Ack all;
    all.complete = true, all.next = fragments;
    acknowledge(number, all);
  }
  const DatagramCounts &counts() const { return world.server.counts(); }
};

static void test_unknown() {
  Hand hand;
  hand.put(hand.whole(Request(Op::ping).session(99).number(5)));
  CHECK(hand.last_is(Op::reset) && hand.last().session == 99 && hand.last().request == 5, "reset");
  CHECK(hand.counts().resets == 1 && hand.world.server.peers() == 0, "it is known now");
  Request hello(Op::hello);
  hello.session(0);
  hand.put(hand.whole(hello));
  CHECK(hand.replies() == 1, "a hello without a number is answered");
  const uint8_t garbage[100] = {1, 2, 3};
  hand.put({garbage, garbage + sizeof garbage});
  hand.put({garbage, garbage + 3});
  hand.put({});
  CHECK(hand.replies() == 1 && hand.counts().malformed == 4, "garbage is answered");
  CHECK(hand.world.handler.statistics().malformed == 4, "and not counted");
  // Of less than a whole header's frame nobody is told: he would get more than he sent.
  Request large(Op::ping);
  large.section(garbage, 100).session(99);
  std::vector<uint8_t> few = hand.datagram(large.bytes.data(), 1, 2, garbage, 1);
  hand.put(few);
  CHECK(hand.replies() == 1, "a small one is answered by a larger one");
}

// Hellos from nowhere leave nothing behind, and a cookie is of its address, number and time.
static void test_cookies() {
  Hand hand;
  for (uint64_t k = 1; k <= 5000; ++k)
    hand.put(hand.whole(Request(Op::hello).session(k)), static_cast<uint32_t>(k));
  CHECK(hand.world.server.peers() == 0 && hand.world.handler.statistics().connections == 0,
        "%zu peers", hand.world.server.peers());
  CHECK(hand.world.end.sent.back().size() <= body_offset, "more than was sent");
  Request asks = hand.hello(77, 1);
  hand.put(hand.whole(asks), 2);
  CHECK(hand.last_is(Op::cookie), "another one's address");
  hand.put(hand.whole(asks.session(78)), 1);
  CHECK(hand.last_is(Op::cookie), "another number");
  hand.world.network.now_us += 70000000;
  hand.put(hand.whole(asks.session(77)), 1);
  CHECK(hand.last_is(Op::cookie) && hand.world.server.peers() == 0, "an old one");
  asks = hand.hello(77, 1);
  hand.world.network.now_us += 20000000;
  hand.put(hand.whole(asks), 1);
  CHECK(hand.last_is(Op::welcome) && hand.world.server.peers() == 1, "a good one");
  CHECK(hand.counts().resets == 0 && hand.counts().malformed == 0, "another answer");
}

static void test_siphash() {  // the paper's example
  uint8_t bytes[15];
  for (uint8_t k = 0; k < 15; ++k) bytes[k] = k;
  const SipKey key = {UINT64_C(0x0706050403020100), UINT64_C(0x0F0E0D0C0B0A0908)};
  CHECK(siphash(key, bytes, 15) == UINT64_C(0xA129CA6149BE45E5), "not SipHash-2-4");
}

static void test_replies_again() {
  Hand hand;
  hand.greet();
  hand.ask(opening(100), 1), hand.ask(push({1, 2, 3}), 2);
  hand.world.end.sent.clear();
  for (int k = 0; k < 3; ++k) hand.ask(sample(5, 64), 3);
  CHECK(hand.replies() == 3 && hand.world.end.sent[0] == hand.world.end.sent[1] &&
            hand.world.end.sent[1] == hand.world.end.sent[2],
        "the reply that is sent again is another one");
  CHECK(hand.world.handler.tables()[0]->stats().samples == 64, "drawn again");
  CHECK(hand.counts().duplicates == 2, "duplicates");
  for (int k = 0; k < 3; ++k) hand.ask(push({4}), 4);
  CHECK(hand.world.handler.tables()[0]->stats().inserts == 4, "pushed again");
  CHECK(hand.world.handler.statistics().repeated == 0, "the handler was asked again");
  // What is far older than the newest does nothing, and has no answer.
  for (uint64_t k = 5; k < 80; ++k) hand.ask(Request(Op::ping), k);
  const size_t before = hand.replies();
  hand.ask(push({5}), 3), hand.ask(sample(1, 1), 4);
  CHECK(hand.replies() == before, "a late one is answered");
  CHECK(hand.world.handler.tables()[0]->stats().inserts == 4, "a late push is carried out");
  // The same hello again has the same session, and one that comes late takes it from nobody.
  hand.put(hand.whole(Request(Op::hello).session(77)));  // of whom it knows it asks for no cookie
  CHECK(hand.last_is(Op::welcome) && hand.last().session == hand.token, "another session");
  CHECK(hand.world.handler.statistics().sessions == 1, "sessions");
}

// Credit for a whole reply is not taken at once: others wait while the server sends.
static void test_credit() {
  Hand hand;
  hand.world.network.slice = most_slice;
  hand.greet();
  hand.ask(opening(20000), 1), hand.ask(push({1}), 2);
  hand.world.end.sent.clear();
  hand.ask(sample(1, 40000), 3);
  Handler &handler = hand.world.handler;
  while (handler.pending())  // it is drawn in steps
    handler.serve_waiting(hand.world.now_ms(), [&](Peer &peer, FrameBuffer &frame) {
      hand.world.end.sent.clear();
      hand.world.server.deliver(peer, frame);
    });
  const size_t first = hand.replies();
  CHECK(first > 1 && hand.last().fragments > 24, "%zu of %d", first, hand.last().fragments);
  Ack ack;
  ack.next = 1, ack.credit = UINT32_MAX;
  hand.acknowledge(3, ack);
  CHECK(hand.replies() > first && hand.replies() <= 17, "%zu fragments", hand.replies());
}

static void test_pieces() {
  Hand hand;
  hand.greet();
  hand.ask(opening(20000), 1);
  Request large = push(numbers(2000, 0));  // 8,064 bytes
  hand.numbered(large, 2);
  constexpr uint16_t count = 4;
  constexpr uint32_t slice = 2048;
  hand.put(hand.fragment(large, 2, slice, count));
  const auto refused = [&hand](const std::vector<uint8_t> &datagram, const char *what) {
    const uint64_t before = hand.counts().malformed;
    hand.put(datagram);
    CHECK(hand.counts().malformed == before + 1, "%s is taken", what);
  };
  refused(hand.fragment(large, 0, 2047, 4), "another slice");
  refused(hand.fragment(large, 1, 4096, 2), "another count");
  refused(hand.fragment(large, 3, 2100, 4), "a last one of other slices");
  refused(hand.datagram(large.bytes.data(), 4, 4, large.bytes.data(), slice), "number 4 of 4");
  refused(hand.datagram(large.bytes.data(), 0, 0, large.bytes.data(), slice), "none of none");
  refused(hand.datagram(large.bytes.data(), 0, 4, large.bytes.data(), slice + 1), "too much");
  refused(hand.datagram(large.bytes.data(), 0, 900, large.bytes.data(), 9), "a tiny slice");
  Request longer = push(numbers(2040, 0));
  refused(hand.fragment(hand.numbered(longer, 2), 1, slice, count), "another length");
  Request other(Op::publish, 0);
  other.section(numbers(2000, 0).data(), 8000);
  refused(hand.fragment(hand.numbered(other, 2), 1, slice, count), "another operation");
  CHECK(hand.world.server.assembling_bytes() > 0, "what was right is gone");
  for (const uint16_t k : {3, 1, 1, 0}) hand.put(hand.fragment(large, k, slice, count));
  CHECK(hand.last_is(Op::push) && hand.last().status == 0, "the push gives %d", hand.last().status);
  CHECK(hand.world.handler.tables()[0]->size() == 2000, "items");
  CHECK(hand.world.server.assembling_bytes() == 0, "bytes are left");
  // Given up when nothing comes for long; what comes later is told so.
  Request half = push(numbers(2000, 0));
  hand.put(hand.fragment(hand.numbered(half, 3), 0, slice, count));
  hand.world.network.now_us += 20000000;
  hand.world.server.close_idle(hand.world.now_ms());
  CHECK(hand.world.server.assembling_bytes() == 0 && hand.counts().dropped_requests == 1, "kept");
  hand.put(hand.fragment(half, 1, slice, count));
  CHECK(hand.last_is(Op::reset), "it is waited for");
}

// Memory follows what came, not what a header claims.
static void test_claims() {
  DatagramSettings caps;
  caps.peer_bytes = 1 << 20;
  Hand hand(caps);
  hand.greet();
  std::vector<uint8_t> slice(usual_slice);
  Request claims(Op::push, 0);
  hand.numbered(claims, 1);
  const auto claim = [&](uint32_t length, uint16_t number) {
    claims.set(field::header::length, length);
    const size_t body = length - header_bytes;
    const auto count = static_cast<uint16_t>((body + usual_slice - 1) / usual_slice);
    return hand.datagram(claims.bytes.data(), number, count, slice.data(), slice.size());
  };
  hand.put(claim(16u << 20, 0));
  CHECK(hand.world.server.assembling_bytes() <= 256u << 10, "%u bytes for one datagram",
        static_cast<unsigned>(hand.world.server.assembling_bytes()));
  hand.put(claim(16u << 20, 11000));
  CHECK(hand.counts().malformed == 1, "a fragment without credit is taken");
  for (uint16_t k = 1; k < 1000; ++k) hand.put(claim(16u << 20, k));
  CHECK(hand.last_is(Op::push) && hand.last().status == static_cast<uint16_t>(Status::limit),
        "above the cap: %d", hand.last().status);
  CHECK(hand.world.server.assembling_bytes() == 0, "bytes are left");
  claims.number(2);
  hand.put(claim((16u << 20) + 64, 0));
  CHECK(hand.last().status == static_cast<uint16_t>(Status::too_large), "too large");
  claims.number(3);
  hand.put(claim(1u << 20, 0));
  CHECK(hand.last_is(Op::reset), "as with a stream, that was the end");
}

// Who sends a request so slowly that it never ends does not keep its memory, and the one longest on
// its way makes room for others.
static void test_hogs() {
  DatagramSettings caps;
  caps.buffer_bytes = 1 << 20;
  Hand hand(caps);
  constexpr uint32_t slice = 2048;
  constexpr uint16_t count = 4;
  const auto put = [&](uint64_t token, uint32_t from, uint16_t number) {
    Request request = push(numbers(2000, 0));
    hand.put(hand.fragment(request.session(token).number(9), number, slice, count), from);
  };
  hand.greet();
  hand.ask(opening(20000), 1);
  put(hand.token, 0, 0);
  hand.world.network.now_us += 6000000;  // less than the pause that is allowed
  put(hand.token, 0, 1);
  hand.world.server.close_idle(hand.world.now_ms());
  CHECK(hand.world.server.assembling_bytes() > 0, "it has had 6 s");
  hand.world.network.now_us += 5000000;
  hand.world.server.close_idle(hand.world.now_ms());
  CHECK(hand.world.server.assembling_bytes() == 0 && hand.counts().dropped_requests == 1, "11 s");
  std::vector<uint64_t> tokens;
  uint64_t dropped = hand.counts().dropped_requests;
  for (uint32_t from = 1; hand.counts().dropped_requests == dropped; ++from) {
    CHECK(from < 1000, "nobody makes room");
    if (from == 1000) return;
    hand.greet(100 + from, from);
    Request ping(Op::ping);
    hand.put(hand.whole(hand.numbered(ping, 1)), from);
    tokens.push_back(hand.token);
    put(hand.token, from, 0);
    hand.world.network.now_us += 1000;
  }
  CHECK(hand.world.server.assembling_bytes() <= caps.buffer_bytes, "above the cap");
  const auto last = static_cast<uint32_t>(tokens.size());
  for (const uint16_t k : {1, 2, 3}) put(tokens.back(), last, k);
  CHECK(hand.last_is(Op::push) && hand.last().status == 0, "the newest: %d", hand.last().status);
  for (const uint16_t k : {1, 2, 3}) put(tokens[1], 2, k);
  CHECK(hand.last_is(Op::push) && hand.last().status == 0, "the second: %d", hand.last().status);
  const size_t before = hand.replies();
  for (const uint16_t k : {1, 2, 3}) put(tokens[0], 1, k);
  CHECK(hand.replies() == before || !hand.last_is(Op::push), "the oldest kept its place");
  CHECK(hand.world.handler.tables()[0]->stats().inserts == 4000, "items");
}

static void test_crowds() {
  DatagramSettings caps;
  caps.half_open = 4, caps.peers = 8;
  Hand hand(caps);
  hand.greet(7000, 9);
  hand.ask(Request(Op::ping), 1);  // it has used its session
  const uint64_t token = hand.token;
  for (uint64_t k = 1; k <= 50; ++k) hand.greet(k, static_cast<uint32_t>(k));
  CHECK(hand.world.server.peers() == 5, "%u peers",
        static_cast<unsigned>(hand.world.server.peers()));
  CHECK(hand.counts().evicted == 46, "%u evicted", static_cast<unsigned>(hand.counts().evicted));
  hand.token = token;
  hand.ask(Request(Op::ping), 2);
  CHECK(hand.last_is(Op::ping), "a client had to go for them");
  for (uint64_t k = 100; k < 120; ++k) {
    hand.greet(k);
    hand.ask(Request(Op::ping), 1);
    hand.world.network.now_us += 10000;
  }
  CHECK(hand.world.server.peers() <= 8, "%u clients",
        static_cast<unsigned>(hand.world.server.peers()));
  hand.ask(Request(Op::ping), 2);
  CHECK(hand.last_is(Op::ping), "the newest had to go");
  hand.world.network.now_us += uint64_t{3601} * 1000000;
  hand.world.server.close_idle(hand.world.now_ms());
  hand.world.network.now_us += 11000000;
  hand.world.server.close_idle(hand.world.now_ms());
  CHECK(hand.world.server.peers() == 0, "idle clients stay");
  CHECK(hand.world.handler.statistics().open == 0, "open");
}

// Replies are kept within bounds; who asks for one that was given up has to begin anew.
static void test_kept() {
  DatagramSettings caps;
  caps.reply_bytes = 64 << 10;
  Hand hand(caps);
  hand.greet();
  hand.ask(opening(100), 1), hand.ask(push({1, 2, 3}), 2);
  for (uint64_t k = 3; k < 23; ++k) hand.ask(sample(k, 400), k);  // 8.5 KB each
  const uint32_t pieces = hand.last().fragments;
  CHECK(hand.world.server.kept_bytes() <= caps.reply_bytes, "%u bytes are kept",
        static_cast<unsigned>(hand.world.server.kept_bytes()));
  CHECK(hand.counts().dropped_replies > 0, "none is dropped");
  hand.ask(sample(3, 400), 3);
  CHECK(hand.last_is(Op::reset), "drawn again under the same number");
  for (uint64_t k = 1; k < 23; ++k) hand.thank(k, pieces);
  CHECK(hand.world.server.kept_bytes() == 0, "acknowledged ones are kept");
  const size_t before = hand.replies();
  hand.ask(sample(22, 400), 22);
  CHECK(hand.replies() == before, "one that the client has is sent again");
}

// What acknowledges WELCOME may come late, with a number that a request has by then.
static void test_late_thanks() {
  Hand hand;
  hand.greet();
  hand.ask(opening(100), 1), hand.ask(push({1, 2, 3}), 2), hand.ask(sample(1, 400), 3);
  const uint32_t pieces = hand.last().fragments;
  hand.thank(2, 1), hand.thank(3, 1);
  for (const uint64_t number : {2, 3}) {
    const size_t before = hand.replies();
    hand.ask(Request(Op::ping), number);
    CHECK(hand.replies() == before + 1 && !hand.last_is(Op::reset), "reply %d is gone",
          int(number));
  }
  const uint64_t kept = hand.world.server.kept_bytes();
  hand.thank(3, pieces);
  CHECK(hand.world.server.kept_bytes() < kept, "it is kept for good");
}

// Memory that a large reply leaves for the next large frame keeps no other one from its own.
static void test_spare() {
  DatagramSettings caps;
  caps.buffer_bytes = 1 << 20;
  Hand hand(caps);
  hand.greet();
  hand.ask(opening(20000), 1), hand.ask(push({1, 2, 3}), 2), hand.ask(sample(1, 65536), 3);
  while (hand.world.handler.pending())  // a large sample is drawn in turns
    hand.world.handler.serve_waiting(hand.world.now_ms(), [&](Peer &peer, FrameBuffer &frame) {
      hand.world.server.deliver(peer, frame);
    });
  CHECK(hand.world.server.kept_bytes() > caps.buffer_bytes, "a small reply");
  hand.thank(3, hand.last().fragments);
  for (uint64_t number = 4; number < 7; ++number) {
    Request large = push(numbers(2000, 0));
    hand.numbered(large, number);
    for (const uint16_t k : {0, 1, 2, 3}) hand.put(hand.fragment(large, k, 2048, 4));
    CHECK(hand.last_is(Op::push) && hand.last().status == 0, "push %d gives %d", int(number),
          hand.last().status);
  }
}

// A session that nobody uses ends as one that was never made.
static void test_unused() {
  Hand hand;
  hand.greet(5, 1);
  hand.ask(Request(Op::ping), 1);
  hand.greet(6, 2);
  hand.world.network.now_us += 6000000;
  hand.world.server.close_idle(hand.world.now_ms());
  CHECK(hand.world.server.peers() == 1, "%d peers", int(hand.world.server.peers()));
  CHECK(hand.world.handler.statistics().timed_out == 1, "it was not counted");
}

int main() {
  test_unknown();
  test_cookies();
  test_siphash();
  test_replies_again();
  test_credit();
  test_pieces();
  test_claims();
  test_hogs();
  test_crowds();
  test_kept();
  test_late_thanks();
  test_spare();
  test_unused();
  return finish();
}
