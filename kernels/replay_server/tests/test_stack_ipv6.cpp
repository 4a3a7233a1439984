// The network stack over IPv6: what it answers, sends and learns, and packets that contradict
// themselves.

#include "stack.hpp"

#include <cstring>

#include "ipv6_packets.hpp"
#include "stack_host.hpp"

using namespace ipv6_packets;

namespace {

struct Host : wires::Host {
  explicit Host(const IpAddress &own = self) : wires::Host({own, port}) {}
};

// The stack's reply to the asker, from its address.
Sent answer_to_asker(Bytes payload) {
  Sent sent;
  sent.to = asker_mac, sent.from = self_mac;
  sent.source = self, sent.destination = asker;
  sent.payload = std::move(payload);
  return sent;
}

void test_answers() {
  Host host;
  host.give(solicitation().packet());
  const Sent advertises =
      answer_to_asker(joined({{136, 0, 0, 0, 0x60, 0, 0, 0}, of(self), {2, 1}, of(self_mac)}));
  CHECK(host.answer() == advertises.packet(), "an advertisement");
  Sent unicast = solicitation();  // as a host asks whether a neighbour is still there
  unicast.to = self_mac, unicast.destination = self;
  unicast.payload.resize(24);
  host.give(unicast.packet());
  CHECK(host.answer() == advertises.packet(), "an advertisement for one without an option");
  Sent probe = solicitation();
  probe.source = nobody, probe.payload.resize(24);
  host.give(probe.packet());
  Sent to_all = advertises;
  to_all.to = {0x33, 0x33, 0, 0, 0, 1}, to_all.destination = all_nodes;
  to_all.payload[4] = 0x20;
  CHECK(host.answer() == to_all.packet(), "a probe for a duplicate address");
  host.give(echo().packet());
  Sent reply = answer_to_asker(echo().payload);
  reply.payload[0] = 129, reply.hops = 64;
  CHECK(host.answer() == reply.packet(), "echo");
  host.give(datagram().packet());
  CHECK(host.taken.size() == 1 && host.taken[0] == "a datagram of 23 bytes.", "UDP");
  CHECK(host.from.address == asker && host.from.port == 40000, "of another");
  const NetCounters &counters = host.stack.counters();
  CHECK(counters.received == 5 && counters.sent == 4 && counters.solicitations == 3 &&
            counters.echoes == 1 && counters.datagrams == 1 && counters.malformed == 0,
        "counters");
}

void test_sending() {
  Line in, out;
  End nic(&in, &out, 0x0B);
  Stack stack(&nic, {self, port});
  const UdpEndpoint to{asker, 40000};
  uint8_t header[header_bytes];
  std::memset(header, 'h', sizeof header);
  const auto ignore = [](const UdpEndpoint &, const Part &) {};
  CHECK(!stack.send(to, header, nullptr, 0, 1000), "to an unknown neighbour");
  CHECK(!stack.send(to, header, nullptr, 0, 1001) && out.packets.size() == 1, "asks once");
  Sent asks;
  asks.to = {0x33, 0x33, 0xFF, 0x0A, 0, 1}, asks.from = self_mac;
  asks.source = self;
  asks.destination = {{0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, 0x0A, 0, 1}};
  asks.payload = joined({{135, 0, 0, 0, 0, 0, 0, 0}, of(asker), {1, 1}, of(self_mac)});
  CHECK(out.packets.front() == asks.packet(), "a solicitation");
  out.packets.clear();
  in.packets.push_back(advertisement().packet());
  stack.poll(1002, ignore, {});
  // Parts of odd lengths, and one whose checksum would be 0.
  const Bytes text = of("abcdefgh");
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const Part parts[] = {{text.data(), cut}, {text.data() + cut, text.size() - cut}};
    CHECK(stack.send(to, header, parts, 2, 1003), "to a known neighbour");
    const size_t bytes = 8 + header_bytes + text.size();
    Sent wanted = answer_to_asker(joined({{high(port), low(port), 0x9C, 0x40, 0, low(bytes), 0, 0},
                                          Bytes(header_bytes, 'h'),
                                          text}));
    wanted.protocol = udp, wanted.hops = 64, wanted.at = 6;
    CHECK(out.packets.back() == wanted.packet(), "a datagram of parts cut at %zu", cut);
  }
  const size_t bytes = 8 + header_bytes + 2;
  const uint16_t rest = sum_of(self, asker, udp,
                               joined({{high(port), low(port), 0x9C, 0x40, 0, low(bytes), 0, 0},
                                       Bytes(header_bytes, 'h'),
                                       {0, 0}}));
  const uint8_t zero[] = {high(rest), low(rest)};
  const Part last{zero, 2};
  CHECK(stack.send(to, header, &last, 1, 1004), "sent");
  CHECK(out.packets.back()[60] == 0xFF && out.packets.back()[61] == 0xFF, "a checksum of 0");
  const Bytes much(1500 - 48 - 40 + 1);
  const Part most{much.data(), much.size() - 1}, more{much.data(), much.size()};
  CHECK(stack.send(to, header, &most, 1, 1005) && out.packets.back().size() == 1514, "most");
  CHECK(!stack.send(to, header, &more, 1, 1005) && stack.counters().no_room == 1, "more");
}

// Learns from whoever asks or sends, and not from what it dropped.
void test_learning() {
  for (const Sent &sent : {solicitation(), advertisement(), datagram()}) {
    Host host;
    host.give(sent.packet());
    CHECK(host.stack.resolve(asker, 1001), "protocol %u taught nothing", sent.protocol);
  }
  Host host;
  Sent probe = solicitation();
  probe.source = nobody, probe.payload.resize(24);
  host.give(probe.packet());
  host.give(echo().packet());
  Sent bad = advertisement();
  bad.hops = 64;
  host.give(bad.packet());
  CHECK(!host.stack.resolve(asker, 1001) && !host.stack.resolve(nobody, 1001), "learned too much");
}

void expect(const Packet &packet, uint64_t NetCounters::*counter, const char *what) {
  Host host;
  host.give(packet);
  CHECK(host.answer().empty() && host.taken.empty(), "%s: taken", what);
  CHECK(host.stack.counters().*counter == 1, "%s: not counted", what);
  CHECK(!host.stack.resolve(asker, 1001), "%s: learned from", what);
}

// A packet with one byte of its payload changed, before its checksum is made.
Packet with(Sent sent, size_t at, uint8_t value) {
  sent.payload[at] = value;
  return sent.packet();
}
// And one with a byte changed afterwards.
Packet damaged(const Sent &sent, size_t at, uint8_t value) {
  Packet changed = sent.packet();
  changed[at] = value;
  return changed;
}

void test_contradictions() {
  const auto malformed = &NetCounters::malformed, not_ours = &NetCounters::not_ours;
  const auto bad_checksum = &NetCounters::bad_checksum;
  expect(damaged(datagram(), 14, 0x50), malformed, "IPv5");
  expect(damaged(datagram(), 19, 32), malformed, "longer than what came");
  expect(damaged(datagram(), 19, 7), malformed, "shorter than UDP's header");
  expect(damaged(datagram(), 21, 0), malformed, "no hop left");
  expect(damaged(datagram(), 20, 6), not_ours, "TCP");
  expect(damaged(datagram(), 20, 1), not_ours, "ICMP of IPv4");
  for (const uint8_t extension : {0, 43, 50, 51, 59, 60, 135})
    expect(damaged(datagram(), 20, extension), not_ours, "an extension header");
  expect(damaged(datagram(), 20, 44), &NetCounters::fragments, "a fragment");
  expect(damaged(datagram(), 53, 3), not_ours, "to another address");
  expect(damaged(datagram(), 57, 0xA6), not_ours, "to another port");
  expect(damaged(datagram(), 59, 7), malformed, "UDP's length below its header");
  expect(damaged(datagram(), 59, 32), malformed, "UDP's length above what came");
  expect(damaged(datagram(), 6, 3), malformed, "from a group's Ethernet address");
  expect(damaged(datagram(), 5, 0x0C), not_ours, "to another Ethernet address");
  expect(damaged(datagram(), 13, 0xDE), not_ours, "another type");
  for (const IpAddress &source : {self, nobody, all_nodes, ipv4_address(0x0A090001),
                                  IpAddress{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}}) {
    for (Sent sent : {datagram(), echo(), advertisement(), solicitation()}) {
      sent.source = source;  // a solicitation of nobody must have no option
      expect(sent.packet(), malformed, "from what is no other host's address");
    }
  }
  expect(damaged(echo(), 62, 'A'), bad_checksum, "echo");
  expect(with(echo(), 0, 129), not_ours, "an echo's reply");
  expect(with(echo(), 1, 1), not_ours, "an echo with a code");
  expect(with(echo(), 0, 134), not_ours, "a router's advertisement");
  for (const Sent &good : {solicitation(), advertisement()}) {
    expect(damaged(good, 57, 1), bad_checksum, "a neighbour's checksum");
    Sent sent = good;
    sent.hops = 254;
    expect(sent.packet(), malformed, "from behind a router");
    expect(with(good, 1, 1), malformed, "a code");
    expect(with(good, 25, 0), malformed, "an option without length");
    expect(with(good, 25, 2), malformed, "an option longer than the message");
    expect(with(good, 26, 3), malformed, "the Ethernet address of a group");
    expect(with(good, 8, 0xFF), malformed, "a group as target");
    sent = good;
    sent.payload.resize(23);
    expect(sent.packet(), malformed, "shorter than its target");
    sent.payload.resize(25);
    expect(sent.packet(), malformed, "half an option");
    sent = good;
    sent.payload[25] = 2;
    sent.payload.resize(40);
    expect(sent.packet(), malformed, "an Ethernet address of 14 bytes");
    for (const IpAddress &target : {ipv4_address(0x0A090001), nobody}) {
      sent = good;
      std::copy(target.bytes.begin(), target.bytes.end(), sent.payload.begin() + 8);
      expect(sent.packet(), malformed, "no host as target");
    }
  }
  Sent claims = advertisement();
  std::copy(self.bytes.begin(), self.bytes.end(), claims.payload.begin() + 8);
  expect(claims.packet(), malformed, "another host has this address");
  expect(with(solicitation(), 22, 1), not_ours, "for another host of the group");
  Sent strange = solicitation();
  strange.destination = all_nodes;
  expect(strange.packet(), not_ours, "to another group than its Ethernet address");
  strange = solicitation();
  strange.to = self_mac, strange.destination = self, strange.payload[22] = 1;
  expect(strange.packet(), not_ours, "for another host, sent here");
  strange = echo();
  strange.to = self_group_mac, strange.destination = self_group;
  expect(strange.packet(), not_ours, "an echo to the group");
  Host host;
  Packet longer = datagram().packet();
  longer.resize(longer.size() + 9);
  host.give(longer);
  CHECK(host.taken.size() == 1 && host.taken[0].size() == 23, "what fills a packet up was taken");
  Sent options = solicitation();  // a nonce before the Ethernet address
  const Bytes nonce{14, 1, 1, 2, 3, 4, 5, 6};
  options.payload.insert(options.payload.begin() + 24, nonce.begin(), nonce.end());
  host.give(options.packet());
  CHECK(!host.answer().empty() && host.stack.resolve(asker, 1001), "an unknown option");
}

// Every packet cut everywhere: nothing is read behind its end, and nothing is taken for whole.
void test_truncated() {
  for (const Sent &sent : {solicitation(), advertisement(), echo(), datagram()}) {
    const Packet whole = sent.packet();
    for (size_t count = 0; count < whole.size(); ++count)
      expect(Packet(whole.begin(), whole.begin() + static_cast<long>(count)),
             &NetCounters::malformed, "a truncated packet");
  }
}

void test_families() {
  Host four(ipv4_address(0x0A090002));
  four.give(datagram().packet());
  four.give(solicitation().packet());
  Sent mapped = datagram();
  mapped.destination = ipv4_address(0x0A090002), mapped.source = ipv4_address(0x0A090001);
  four.give(mapped.packet());
  CHECK(four.taken.empty() && four.answer().empty(), "a server of IPv4 took IPv6");
  CHECK(four.stack.counters().not_ours == 2 && four.stack.counters().malformed == 1, "counters");
  IpAddress parsed;
  CHECK(parse_address("10.9.0.2", &parsed) && parsed == ipv4_address(0x0A090002), "IPv4");
  CHECK(parse_address("fd00:9::b:2", &parsed) && parsed == self, "IPv6");
  for (const char *text : {"", "localhost", "::ffff:10.9.0.2", "[fd00::1]", "fe80::1%eth0", "1"})
    CHECK(!parse_address(text, &parsed), "%s was taken", text);
  for (const char *text : {"::", "::1", "ff02::1", "0.0.0.0", "127.0.0.1", "224.0.0.1"})
    CHECK(parse_address(text, &parsed) && !is_host(parsed), "%s is a host", text);
  CHECK(is_host(self) && is_host(ipv4_address(0x0A090002)), "hosts");
}

void test_forwarding() {
  Host host;
  host.give(datagram().packet(), true);
  host.give(solicitation().packet(), true);
  CHECK(host.foreign == 0 && host.taken.size() == 1 && !host.answer().empty(), "its own");
  Sent router = echo();
  router.to = {0x33, 0x33, 0, 0, 0, 1}, router.destination = all_nodes;
  Sent shared = echo();
  shared.to = self_group_mac, shared.destination = self_group;
  Sent distant = solicitation();
  distant.hops = 3;
  for (const Packet &packet :
       {damaged(datagram(), 5, 0x0C), damaged(advertisement(), 5, 0x0C), router.packet(),
        shared.packet(), with(solicitation(), 22, 1), damaged(solicitation(), 57, 1),
        distant.packet(), damaged(solicitation(), 14, 0x50)}) {
    const size_t before = host.foreign;
    host.give(packet, true);
    CHECK(host.foreign == before + 1 && host.answer().empty(), "not passed on");
  }
  host.give(damaged(datagram(), 53, 3), true);
  CHECK(host.foreign == 8 && host.stack.counters().not_ours == 1, "what was for this port");
}

// Random bytes behind headers that are right so far, and good packets with random bytes changed.
void test_random() {
  uint64_t state = 7;
  const auto draw = [&state](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % below;
  };
  Host host;
  const Sent kinds[] = {solicitation(), advertisement(), echo(), datagram()};
  for (size_t round = 0; round < 20000; ++round) {
    Sent sent = kinds[draw(4)];
    if (round % 2) {
      sent.payload.resize(1 + draw(200));
      for (size_t k = 1; k < sent.payload.size(); ++k) sent.payload[k] = low(draw(256));
    }
    Packet packet = sent.packet();
    for (size_t changes = draw(4); changes > 0; --changes)
      packet[draw(packet.size())] = low(draw(256));
    packet.resize(1 + draw(packet.size()) + draw(20) * (round % 3));
    host.give(packet, round % 5 == 0, round);
    host.out.packets.clear();
  }
  const NetCounters &counters = host.stack.counters();
  CHECK(counters.received == 20000 && counters.malformed > 0 && counters.bad_checksum > 0, "all");
  host.give(solicitation().packet(), false, 30000);
  CHECK(!host.answer().empty(), "it does not answer any more");
}

}  // namespace

int main() {
  test_answers();
  test_sending();
  test_learning();
  test_contradictions();
  test_truncated();
  test_families();
  test_forwarding();
  test_random();
  return finish();
}
