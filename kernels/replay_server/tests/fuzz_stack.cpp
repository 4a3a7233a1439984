// For libFuzzer: an input is packets that come to a stack, with those that it may send back. The
// checksums of IPv4 and ICMP are put right, so that what lies behind them is reached.

#include "stack.hpp"
#include "wires.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace wires;
  if (size < 1) return 0;
  const uint8_t how = data[0];
  Line in, out;
  End nic(&in, &out, 0x0B);
  Stack stack(&nic, {0x0A090002, 7077});
  volatile uint64_t taken = 0;
  uint64_t now_ms = 0;
  const Stack::Take take = [&](const Udp4Endpoint &from, const Part &datagram) {
    for (size_t k = 0; k < datagram.count; ++k) taken = taken + datagram.bytes[k];
    const uint8_t header[header_bytes] = {};
    stack.send(from, header, &datagram, 1, now_ms);
  };
  Stack::Foreign foreign;
  if (how & 1) foreign = [&](const Part &packet) { return nic.send(&packet, 1); };
  for (++data, --size; size > 0;) {
    const size_t count = std::min<size_t>(size - 1, size_t{data[0]} * 6);
    Packet packet(data + 1, data + 1 + count);
    data += 1 + count, size -= 1 + count;
    if (how & 2 && packet.size() >= 14 + ipv4_bytes) {
      uint8_t *header = packet.data() + 14;
      const size_t bytes = std::min(size_t{header[0] & 15u} * 4, packet.size() - 14);
      store16(header + 10, 0);
      store16(header + 10, internet_checksum(header, bytes));
      const size_t total = std::min<size_t>(load16(header + 2), packet.size() - 14);
      if (header[9] == 1 && total >= bytes + 4) {
        store16(header + bytes + 2, 0);
        store16(header + bytes + 2, internet_checksum(header + bytes, total - bytes));
      }
    }
    in.packets.push_back(std::move(packet));
    stack.poll(now_ms += 7, take, foreign);
    if (!out.packets.empty() && how & 4) {  // back again, as from a loop in the network
      in.packets.push_back(out.packets.front());
      stack.poll(now_ms, take, foreign);
    }
    out.packets.clear();
  }
  return 0;
}
