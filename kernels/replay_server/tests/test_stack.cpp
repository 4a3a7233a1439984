// The network stack against packets that Linux sent and answered, and against those that contradict
// themselves. The captures are of two hosts: 10.9.0.1 with 02:00:00:00:00:0a, and 10.9.0.2 with
// 02:00:00:00:00:0b, whose part the stack plays.

#include "stack.hpp"

#include <cstring>

#include "stack_host.hpp"

using namespace wires;

namespace {

constexpr IpAddress asker = ipv4_address(0x0A090001), self = ipv4_address(0x0A090002);
constexpr uint16_t port = 7077;
const char arp_request[] =
    "ffffffffffff02000000000a0806000108000604000102000000000a0a0900010000000000000a090002";
const char arp_reply[] =
    "02000000000a02000000000b0806000108000604000202000000000b0a09000202000000000a0a090001";
const char echo_request[] =
    "02000000000b02000000000a080045000025ef5b4000400137680a0900010a0900020800213012340007"
    "616363656c5f726c21";
const char echo_reply[] =
    "02000000000a02000000000b080045000025a92000004001bda30a0900020a0900010000293012340007"
    "616363656c5f726c21";
const char datagram[] =
    "02000000000b02000000000a080045000033eb7f400040113b260a0900010a0900029c401ba5001f4ae6"
    "6120646174616772616d206f662032332062797465732e";

struct Host : wires::Host {
  Host() : wires::Host({self, port}) {}
};

// The header's checksum made right after a change: plainly, by its definition.
void repair(Packet *packet) {
  uint8_t *header = packet->data() + 14;
  header[10] = header[11] = 0;
  uint32_t sum = 0;
  for (size_t k = 0; k < size_t{header[0] & 15u} * 4; k += 2)
    sum += static_cast<uint32_t>(header[k] << 8 | header[k + 1]);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  sum = 0xFFFF - sum;
  header[10] = static_cast<uint8_t>(sum >> 8), header[11] = static_cast<uint8_t>(sum);
}

void test_answers() {
  Host host;
  host.give(packet(arp_request));
  Packet answer = host.answer(), wanted = packet(arp_reply);
  CHECK(answer.size() == 60 && std::equal(wanted.begin(), wanted.end(), answer.begin()),
        "ARP, %zu bytes", answer.size());
  host.give(packet(echo_request));
  answer = host.answer(), wanted = packet(echo_reply);
  CHECK(answer.size() == wanted.size(), "echo, %zu bytes", answer.size());
  // Linux numbers its packets, and lets routers cut them.
  answer.resize(wanted.size());
  std::copy_n(wanted.begin() + 18, 4, answer.begin() + 18);
  repair(&answer);
  CHECK(answer == wanted, "an echo is not as Linux has it");
  host.give(packet(datagram));
  CHECK(host.taken.size() == 1 && host.taken[0] == "a datagram of 23 bytes.", "UDP");
  CHECK(host.from.address == asker && host.from.port == 40000, "of another");
  const NetCounters &counters = host.stack.counters();
  CHECK(counters.received == 3 && counters.sent == 2 && counters.arp == 1 && counters.echoes == 1 &&
            counters.datagrams == 1 && counters.malformed == 0,
        "counters");
}

// Sends what Linux sent, in its place, and has it without ARP once a packet has come from there.
void test_sending() {
  Line in, out;
  End nic(&in, &out, 0x0A);
  Stack stack(&nic, {asker, 40000});
  uint8_t header[header_bytes];
  std::memset(header, 'h', sizeof header);
  const uint8_t text[] = {'a', 'b', 'c'};
  const Part parts[] = {{text, 1}, {text + 1, 2}};
  CHECK(!stack.send({self, port}, header, parts, 2, 1000), "to an unknown neighbour");
  CHECK(!stack.send({self, port}, header, parts, 2, 1001), "again");
  CHECK(stack.counters().unresolved == 2 && out.packets.size() == 1, "asks once in a while");
  Packet wanted = packet(arp_request);
  wanted.resize(60);
  CHECK(out.packets.front() == wanted, "a request for an address is not as Linux has it");
  out.packets.clear();
  CHECK(!stack.send({self, port}, header, parts, 2, 1000 + Neighbours::request_ms) &&
            out.packets.size() == 1,
        "asks again");
  out.packets.clear();
  in.packets.push_back(packet(arp_reply));
  stack.poll(1030, [](const UdpEndpoint &, const Part &) {}, {});
  CHECK(stack.send({self, port}, header, parts, 2, 1031), "to a known neighbour");
  Packet sent = out.packets.front();
  CHECK(sent.size() == 42 + 43, "%zu bytes", sent.size());
  Packet like = packet(datagram);
  like.resize(42);
  like[17] = 20 + 8 + 43;   // IPv4's length
  like[18] = like[19] = 0;  // its number
  like[39] = 8 + 43;        // UDP's length
  like[40] = like[41] = 0;  // and no checksum
  repair(&like);
  CHECK(std::equal(like.begin(), like.end(), sent.begin()), "headers are not as Linux has them");
  CHECK(std::string(sent.begin() + 42, sent.end()) == std::string(40, 'h') + "abc", "payload");
  const std::vector<uint8_t> much(1500 - 28 - 40 + 1);
  const Part most{much.data(), much.size() - 1}, more{much.data(), much.size()};
  CHECK(stack.send({self, port}, header, &most, 1, 1032), "as much as fits");
  CHECK(out.packets.back().size() == 1514, "%zu bytes", out.packets.back().size());
  CHECK(!stack.send({self, port}, header, &more, 1, 1032) && stack.counters().no_room == 1,
        "more than fits");
}

// Every packet cut everywhere: nothing is read behind its end, and nothing is taken for whole.
void test_truncated() {
  for (const char *hex : {arp_request, echo_request, datagram}) {
    const Packet whole = packet(hex);
    for (size_t count = 0; count < whole.size(); ++count) {
      Host host;
      host.give(Packet(whole.begin(), whole.begin() + static_cast<long>(count)));
      CHECK(host.answer().empty() && host.taken.empty(), "%zu bytes of %s", count, hex);
      CHECK(host.stack.counters().malformed == 1, "%zu bytes of %s not counted", count, hex);
    }
  }
}

void expect(const char *hex, size_t at, uint8_t value, uint64_t NetCounters::*counter,
            bool repairs) {
  Host host;
  Packet changed = packet(hex);
  changed[at] = value;
  if (repairs) repair(&changed);
  host.give(changed);
  CHECK(host.answer().empty() && host.taken.empty(), "byte %zu as %u taken", at, value);
  CHECK(host.stack.counters().*counter == 1, "byte %zu as %u not counted", at, value);
}

void test_contradictions() {
  const auto malformed = &NetCounters::malformed, not_ours = &NetCounters::not_ours;
  expect(datagram, 14, 0x55, malformed, true);                // IPv5
  expect(datagram, 14, 0x44, malformed, false);               // a header of 16 bytes
  expect(datagram, 14, 0x4F, malformed, false);               // one longer than the packet
  expect(datagram, 17, 0x34, malformed, true);                // longer than what came
  expect(datagram, 17, 0x13, malformed, true);                // shorter than its header
  expect(datagram, 20, 0x20, &NetCounters::fragments, true);  // more fragments follow
  expect(datagram, 21, 0x01, &NetCounters::fragments, true);  // not the first one
  expect(datagram, 22, 0, malformed, true);                   // no hop left
  expect(datagram, 22, 63, &NetCounters::bad_checksum, false);
  expect(datagram, 23, 6, not_ours, true);       // TCP
  expect(datagram, 29, 2, malformed, true);      // from 10.9.0.2 itself
  expect(datagram, 26, 127, malformed, true);    // from 127.9.0.1
  expect(datagram, 26, 224, malformed, true);    // from a group
  expect(datagram, 33, 3, not_ours, true);       // to 10.9.0.3
  expect(datagram, 6, 0x03, malformed, false);   // from a group's Ethernet address
  expect(datagram, 5, 0x0C, not_ours, false);    // to another Ethernet address
  expect(datagram, 13, 0x06, malformed, false);  // IPv4 as ARP
  expect(datagram, 12, 0x86, not_ours, false);   // another type
  expect(datagram, 37, 0xA6, not_ours, false);   // to another port
  expect(datagram, 39, 7, malformed, false);     // shorter than UDP's header
  expect(datagram, 39, 0x20, malformed, false);  // longer than what came
  expect(echo_request, 34, 13, &NetCounters::bad_checksum, false);
  expect(arp_request, 15, 6, malformed, false);  // of another medium
  expect(arp_request, 18, 8, malformed, false);  // addresses of 8 bytes
  expect(arp_request, 21, 3, malformed, false);  // neither request nor reply
  expect(arp_request, 31, 2, malformed, false);  // from 10.9.0.2 itself
  expect(arp_request, 41, 3, not_ours, false);   // for 10.9.0.3
  Host host;
  Packet longer = packet(datagram);
  longer.resize(longer.size() + 9);
  host.give(longer);
  CHECK(host.taken.size() == 1 && host.taken[0].size() == 23, "what fills a packet up was taken");
  Packet options = packet(datagram);
  options.insert(options.begin() + 34, {1, 1, 1, 1});
  options[14] = 0x46, options[17] = static_cast<uint8_t>(options[17] + 4);
  repair(&options);
  host.give(options);
  CHECK(host.taken.size() == 2 && host.taken[1].size() == 23, "options of IPv4");
}

void test_forwarding() {
  Host host;
  Packet other = packet(datagram);
  other[5] = 0x0C;
  host.give(other, true);
  host.give(packet(datagram), true);
  host.give(packet(arp_request), true);
  CHECK(host.foreign == 1 && host.taken.size() == 1 && !host.answer().empty(), "too much");
  Packet asks = packet(arp_request);
  asks[41] = 3;
  host.give(asks, true);
  Packet mangled = packet(arp_request);
  mangled[15] = 6;
  host.give(mangled, true);
  host.give(Packet(14, 0xFF), true);
  CHECK(host.foreign == 4 && host.stack.counters().forwarded == 4, "%zu forwarded", host.foreign);
  Packet elsewhere = packet(datagram);
  elsewhere[33] = 3;
  repair(&elsewhere);
  host.give(elsewhere, true);  // to this port's own Ethernet address: nobody else would take it
  CHECK(host.foreign == 4 && host.stack.counters().not_ours == 1, "what was for this port");
}

void test_neighbours() {
  Neighbours some(2);
  const IpAddress n1 = ipv4_address(1), n2 = ipv4_address(2), n3 = ipv4_address(3);
  const Mac a{2, 0, 0, 0, 0, 1}, b{2, 0, 0, 0, 0, 2};
  CHECK(!some.find(n1) && some.may_request(n1, 10) && !some.find(n1),
        "one that was only asked for");
  CHECK(!some.may_request(n1, 29) && some.may_request(n1, 30), "when to ask again");
  some.learn(n1, a, 40), some.learn(n2, b, 50), some.learn(n1, b, 60);
  CHECK(*some.find(n1) == b && *some.find(n2) == b, "what was heard last");
  some.learn(n3, a, 70);
  CHECK(some.size() == 2 && !some.find(n2) && some.find(n1) && some.find(n3),
        "the oldest made room");
}

}  // namespace

int main() {
  test_answers();
  test_sending();
  test_truncated();
  test_contradictions();
  test_forwarding();
  test_neighbours();
  return finish();
}
