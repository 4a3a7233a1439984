// For libFuzzer: an input is a stream of datagrams from one client. Magic, version, token and
// checksum are put right, so that what lies behind them is reached; `raw` inputs are left as they
// are.

#include <algorithm>

#include "simulated.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace simulated;
  if (size < 2) return 0;
  const bool raw = data[0] & 1;
  DatagramSettings caps;
  caps.peers = 4, caps.half_open = 2, caps.peer_bytes = 1 << 18, caps.reply_bytes = 1 << 16;
  World world(1, {1, 0, 0, 0}, settings(), caps);
  world.end.record = true;
  uint64_t token = 0;
  const auto put = [&world](uint8_t *frame, size_t length) {
    const Part rest{frame + header_bytes, length - header_bytes};
    write_fragment_header(frame, get(frame, field::header::fragment),
                          get(frame, field::header::fragments), &rest, 1, frame);
    world.server.receive(address_of(1), frame, length, world.now_ms());
  };
  if (data[0] & 2) {
    Request hello(Op::hello);
    hello.session(7);
    put(hello.bytes.data(), hello.bytes.size());
    const auto cookie = get(world.end.sent.back().data(), field::cookie::value);
    hello.section(&cookie, sizeof cookie);
    put(hello.bytes.data(), hello.bytes.size());
    token = first_token;
    Request open = opening(16), items = push({1, 2, 3, 4});
    for (Request *each : {&open, &items}) put(each->bytes.data(), each->bytes.size());
  }
  const size_t most_ms = data[0] & 4 ? 20000 : 10;
  ++data, --size;
  while (size > 0) {
    // One byte says how much of the input the datagram has behind its magic and version.
    const size_t body = std::min<size_t>(size - 1, size_t{data[0]} * 8);
    // Slices are large: one that is nearly all zeros may be, too.
    const size_t length = raw ? body : header_bytes + (body < 128 ? body + 1 : 512 + body);
    std::vector<uint8_t> frame(length);
    if (raw) {
      std::copy_n(data + 1, body, frame.begin());
      world.server.receive(address_of(1), frame.data(), length, world.now_ms());
    } else {
      std::copy_n(data + 1, std::min(body, length), frame.begin());
      set(frame.data(), field::header::magic, frame_magic);
      set(frame.data(), field::header::version, frame_version);
      set(frame.data(), field::header::op, get(frame.data(), field::header::op) % 19);
      set(frame.data(), field::header::flags, 0);
      // Numbers of requests and fragments that meet others, and lengths that may be so.
      if (token != 0 && get(frame.data(), field::header::op) != static_cast<uint8_t>(Op::hello))
        set(frame.data(), field::header::session, token);
      set(frame.data(), field::header::request, get(frame.data(), field::header::request) % 200);
      const uint16_t count = get(frame.data(), field::header::fragments) % 6;
      set(frame.data(), field::header::fragment, get(frame.data(), field::header::fragment) % 7);
      set(frame.data(), field::header::fragments, count);
      if (get(frame.data(), field::header::length) & 1)
        set(frame.data(), field::header::length,
            static_cast<uint32_t>(header_bytes + (length - header_bytes) * count));
      put(frame.data(), length);
    }
    data += 1 + body, size -= 1 + body;
    world.network.now_us += most_ms * 1000;
    world.handler.serve_waiting(world.now_ms(), [&world](Peer &peer, FrameBuffer &reply) {
      world.server.deliver(peer, reply);
    });
    world.server.close_idle(world.now_ms());
  }
  world.server.close(world.now_ms());
  if (world.server.assembling_bytes() != 0 || world.server.kept_bytes() != 0) abort();
  return 0;
}
