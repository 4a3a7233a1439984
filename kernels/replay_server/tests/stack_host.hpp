// A host of the network stack at one end of a line.

#ifndef ACCEL_RL_REPLAY_TESTS_STACK_HOST_HPP
#define ACCEL_RL_REPLAY_TESTS_STACK_HOST_HPP

#include <string>
#include <vector>

#include "stack.hpp"
#include "wires.hpp"

namespace wires {

// The stack, a line to it, and what it made of a packet.
struct Host {
  Line in, out;
  End nic{&in, &out, 0x0B};
  Stack stack;
  std::vector<std::string> taken;
  UdpEndpoint from{};
  size_t foreign = 0;

  explicit Host(const UdpEndpoint &own) : stack(&nic, own) {}

  void give(const Packet &packet, bool forwards = false, uint64_t now_ms = 1000) {
    in.packets.push_back(packet);
    stack.poll(
        now_ms,
        [this](const UdpEndpoint &source, const Part &bytes) {
          from = source;
          taken.emplace_back(reinterpret_cast<const char *>(bytes.bytes), bytes.count);
        },
        forwards ? Stack::Foreign([this](const Part &) { return ++foreign, true; })
                 : Stack::Foreign());
  }
  Packet answer() {
    if (out.packets.empty()) return {};
    Packet first = out.packets.front();
    out.packets.pop_front();
    return first;
  }
};

}  // namespace wires

#endif
