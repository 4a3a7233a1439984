// For libFuzzer: an input is packets that come to a stack, with those that it may send back. The
// checksums of IPv4, ICMP and ICMPv6 are put right, so that what lies behind them is reached.

#include "ipv6_packets.hpp"
#include "stack.hpp"
#include "wires.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace wires;
  if (size < 1) return 0;
  const uint8_t how = data[0];
  Line in, out;
  End nic(&in, &out, 0x0B);
  // The address of IPv6 is that of the packets in test_stack_ipv6.cpp.
  const IpAddress own = how & 8 ? ipv6_packets::self : ipv4_address(0x0A090002);
  Stack stack(&nic, {own, 7077});
  volatile uint64_t taken = 0;
  uint64_t now_ms = 0;
  const Stack::Take take = [&](const UdpEndpoint &from, const Part &datagram) {
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
    IpHeader header;
    if (how & 2 && packet.size() > ethernet_bytes &&
        read_ipv6({packet.data() + 14, packet.size() - 14}, &header) == Defect::none &&
        header.protocol == 58 && header.payload.count >= 4) {
      uint8_t *checksum = packet.data() + ethernet_bytes + ipv6_bytes + 2;
      store16(checksum, 0);
      store16(checksum, icmpv6_checksum(header));
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
