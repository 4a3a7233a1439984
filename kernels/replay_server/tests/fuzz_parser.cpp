// For libFuzzer: an input is a stream of frames from one client. Magic, version, length and token
// are put right, so that what lies behind them is reached; `raw` inputs are left as they are.
//
//   clang++ -std=c++17 -g -O1 -fsanitize=fuzzer,address,undefined -Icore -Iprotocol -Iserver
//     -I../tests tests/fuzz_parser.cpp core/*.cpp protocol/*.cpp server/*.cpp -o fuzz -pthread

#include <algorithm>

#include "frames.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace frames;
  if (size < 2) return 0;
  const bool raw = data[0] & 1;
  Talk talk;
  if (data[0] & 2) talk.hello(), talk.open(16);
  if (data[0] & 4) talk.send(push({1, 2, 3, 4}));
  ++data, --size;
  const Handler::Deliver deliver = [](Peer &, FrameBuffer &) {};
  while (size > 0) {
    // One byte says how much of the input the frame has behind its header.
    const size_t body = std::min<size_t>(size - 1, size_t{data[0]} * 4);
    const size_t length = raw ? body : std::max(body, body_offset);
    auto *exact = static_cast<uint8_t *>(std::aligned_alloc(64, aligned(length + 1)));
    auto *frame = exact;
    std::memset(frame, 0, length);
    std::memcpy(frame, data + 1, body);
    data += 1 + body, size -= 1 + body;
    if (!raw) {
      set(frame, field::header::magic, frame_magic);
      set(frame, field::header::version, frame_version);
      set(frame, field::header::op, get(frame, field::header::op) % (last_op + 1));
      const bool greets = get(frame, field::header::op) == static_cast<uint8_t>(Op::hello);
      set(frame, field::header::session,
          !greets && talk.peer.session ? talk.peer.session->token : 0);
      set(frame, field::header::flags, 0);
      set(frame, field::header::status, 0);
      set(frame, field::header::fragment, 0);
      set(frame, field::header::fragments, 1);
      set(frame, field::header::length, static_cast<uint32_t>(length));
      set(frame, field::header::checksum, 0);
    }
    talk.send(talk.peer, frame, length);
    std::free(exact);
    talk.handler.serve_waiting(talk.now_ms += 10, deliver);
    if (talk.outcome == Outcome::close || talk.outcome == Outcome::reply_and_close) break;
  }
  return 0;
}
