// The golden trace by a client's link: the same requests have the same replies, byte for byte.

#ifndef ACCEL_RL_REPLAY_TESTS_TRACE_HPP
#define ACCEL_RL_REPLAY_TESTS_TRACE_HPP

#include <fstream>

#include "frames.hpp"
#include "link.hpp"

namespace frames {

inline Fault exchange(Link &link, const Request &request, uint64_t timeout_us = 20000000,
                      const Link::KeepWaiting &keep_waiting = {}) {
  const Part part = {request.bytes.data(), request.bytes.size()};
  return link.exchange(&part, 1, nullptr, 0, timeout_us, keep_waiting);
}

// Requests "> hex" and replies "< hex".
inline void check_trace(const char *path, Link &link, const char *name) {
  std::ifstream file(path);
  std::string line;
  Request request(Op::ping);
  int replies = 0;
  while (std::getline(file, line)) {
    if (line.size() < 2 || line[1] != ' ' || (line[0] != '>' && line[0] != '<')) continue;
    FrameBuffer bytes;
    for (size_t k = 2; k + 1 < line.size(); k += 2) {
      const auto byte = static_cast<uint8_t>(std::stoul(line.substr(k, 2), nullptr, 16));
      bytes.append(&byte, 1);
    }
    if (line[0] == '>') {
      request.bytes.swap(bytes);
      continue;
    }
    const Fault fault = exchange(link, request);
    CHECK(fault == Fault::none, "%s: fault %d of reply %d", name, int(fault), replies);
    if (fault != Fault::none) return;
    CHECK(link.reply_bytes() == bytes.size() &&
              std::memcmp(link.reply(), bytes.data(), bytes.size()) == 0,
          "%s: reply %d", name, replies);
    ++replies;
  }
  CHECK(replies > 0, "no trace in %s", path);
}

}  // namespace frames

#endif
