#include "udp_wire.hpp"

#include <netinet/udp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "endpoint.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint32_t loopback_slice = most_slice;  // there no Ethernet limits it
constexpr int buffer_bytes = 4 << 20;
// Datagrams in a message, and its bytes, below the headers of IPv6 and UDP.
constexpr size_t most_segments = 64, most_segmented = 65535 - 48;
constexpr int ipv4_headers = 28, ipv6_headers = 48;  // with UDP's

// Most bytes of a datagram on the path to a connected socket's peer; 0: unknown.
size_t path_bytes(int file, sa_family_t family) {
  const bool is_v4 = family == AF_INET;
  int mtu = 0;
  socklen_t length = sizeof mtu;
  if (getsockopt(file, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_MTU : IPV6_MTU, &mtu,
                 &length) != 0)
    return 0;
  return static_cast<size_t>(std::max(mtu - (is_v4 ? ipv4_headers : ipv6_headers), 0));
}

}  // namespace

UdpWire::UdpWire()
    : messages_(std::make_unique<Message[]>(most)), headers_(most), controls_(most), runs_(most) {
  iovecs_.reserve(4 * most);
}

UdpWire::~UdpWire() {
  if (route_ >= 0) close(route_);
}

void UdpWire::open(int file, bool connected) {
  file_ = file, connected_ = connected;
  for (const int option : {SO_RCVBUF, SO_SNDBUF})  // as far as the system allows
    setsockopt(file, SOL_SOCKET, option, &buffer_bytes, sizeof buffer_bytes);
  int granted = 0;
  socklen_t length = sizeof granted;
  // The kernel's bookkeeping takes part of it, and other peers share it; and what one peer is sent
  // at once, others wait for.
  if (getsockopt(file, SOL_SOCKET, SO_RCVBUF, &granted, &length) == 0 && granted > 0)
    inbox_bytes_ = static_cast<size_t>(granted) / 16;
  int family = 0;
  length = sizeof family;
  if (!connected && getsockopt(file, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0)
    route_ = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int whole = 0;
  segments_ = setsockopt(file, SOL_UDP, UDP_SEGMENT, &whole, sizeof whole) == 0;
}

bool UdpWire::send(const Address &to, const uint8_t *header, const Part *parts, size_t count) {
  if (queued_ == most) push();
  Message &message = messages_[queued_++];
  message.to = to;
  message.first = iovecs_.size();
  std::memcpy(message.bytes.data(), header, header_bytes);
  size_t bytes = 0;
  for (size_t k = 0; k < count; ++k) bytes += parts[k].count;
  if (bytes <= copied_bytes) {
    uint8_t *at = message.bytes.data() + header_bytes;
    for (size_t k = 0; k < count; ++k) {
      std::memcpy(at, parts[k].bytes, parts[k].count);
      at += parts[k].count;
    }
    iovecs_.push_back({message.bytes.data(), header_bytes + bytes});
  } else {
    refers_ = true;
    iovecs_.push_back({message.bytes.data(), header_bytes});
    for (size_t k = 0; k < count; ++k)
      iovecs_.push_back({const_cast<uint8_t *>(parts[k].bytes), parts[k].count});
  }
  message.pieces = iovecs_.size() - message.first;
  message.size = header_bytes + bytes;
  return true;
}

void UdpWire::flush() {
  if (refers_) push();
}

// All of a run are of one size, but for a smaller last one.
UdpWire::Run UdpWire::run_from(size_t message, bool alone) const {
  const Message &first = messages_[message];
  Run run{1, first.pieces, first.size};
  if (!segments_ || alone) return run;
  for (size_t k = message + 1; k < queued_ && run.count < most_segments; ++k) {
    const Message &next = messages_[k];
    if (messages_[k - 1].size != first.size || next.size > first.size ||
        run.bytes + next.size > most_segmented || !(connected_ || next.to == first.to))
      break;
    ++run.count, run.pieces += next.pieces, run.bytes += next.size;
  }
  return run;
}

void UdpWire::prepare(size_t header, size_t message, const Run &run) {
  Message &first = messages_[message];
  msghdr &filled = headers_[header].msg_hdr;
  filled = {};
  if (!connected_) {
    filled.msg_name = first.to.bytes.data();
    filled.msg_namelen = first.to.size;
  }
  filled.msg_iov = iovecs_.data() + first.first;
  filled.msg_iovlen = run.pieces;
  if (run.count == 1) return;
  Control &given = controls_[header];
  filled.msg_control = given.bytes.data();
  filled.msg_controllen = sizeof given;
  cmsghdr *control = CMSG_FIRSTHDR(&filled);
  const auto size = static_cast<uint16_t>(first.size);
  control->cmsg_level = SOL_UDP;
  control->cmsg_type = UDP_SEGMENT;
  control->cmsg_len = CMSG_LEN(sizeof size);
  std::memcpy(CMSG_DATA(control), &size, sizeof size);
}

void UdpWire::push() {
  size_t alone = 0;  // messages below it are given one by one
  for (size_t message = 0; message < queued_;) {
    size_t headers = 0;
    for (size_t k = message; k < queued_; k += runs_[headers++].count) {
      runs_[headers] = run_from(k, k < alone);
      prepare(headers, k, runs_[headers]);
    }
    const int put = sendmmsg(file_, headers_.data(), static_cast<unsigned>(headers), MSG_NOSIGNAL);
    if (put > 0) {
      for (int k = 0; k < put; ++k) message += runs_[static_cast<size_t>(k)].count;
    } else if (errno == ECONNREFUSED) {
      refused_ = true;  // of an earlier one: the error is taken, and this one can go
      if (connected_) break;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      break;
    } else if (errno != EINTR) {
      // It has no route there, or not as a run: its datagrams may have one, and others.
      if (runs_[0].count > 1)
        alone = message + runs_[0].count;
      else
        ++message;
    }
  }
  queued_ = 0;
  refers_ = false;
  iovecs_.clear();
}

bool UdpWire::refused() {
  const bool was = refused_;
  refused_ = false;
  return was;
}

uint32_t UdpWire::slice_bytes(const Address &to) const {
  const auto *peer = reinterpret_cast<const sockaddr *>(to.bytes.data());
  if (is_loopback(peer)) return loopback_slice;
  // Disconnected first, as the last route may begin at another of this host's addresses.
  const sockaddr nobody = {AF_UNSPEC, {}};
  size_t bytes = 0;
  if (connected_)
    bytes = path_bytes(file_, peer->sa_family);
  else if (connect(route_, &nobody, sizeof nobody) == 0 && connect(route_, peer, to.size) == 0)
    bytes = path_bytes(route_, peer->sa_family);
  return bytes > 0 ? largest_slice(bytes) : usual_slice;
}

UdpInbox::UdpInbox() : memory_(new uint8_t[stride * most]) {
  datagrams_.reserve(size_t{most} * most_segments);
  for (size_t k = 0; k < most; ++k) {
    iovecs_[k] = {memory_.get() + k * stride, stride};
    msghdr &header = headers_[k].msg_hdr;
    header.msg_name = &from_[k];
    header.msg_iov = &iovecs_[k];
    header.msg_iovlen = 1;
    header.msg_control = controls_[k].bytes.data();
  }
}

void UdpInbox::open(int file) {
  const int together = 1;
  setsockopt(file, SOL_UDP, UDP_GRO, &together, sizeof together);
}

int UdpInbox::take(int file) {
  for (mmsghdr &each : headers_) {
    each.msg_hdr.msg_namelen = sizeof(sockaddr_in6);
    each.msg_hdr.msg_controllen = sizeof(Control);
  }
  const int taken = recvmmsg(file, headers_.data(), most, MSG_DONTWAIT, nullptr);
  full_ = taken == static_cast<int>(most);
  datagrams_.clear();
  for (int k = 0; k < taken; ++k) split(static_cast<unsigned>(k));
  return taken < 0 ? taken : static_cast<int>(datagrams_.size());
}

// The datagrams of a message: the last may be smaller.
void UdpInbox::split(unsigned message) {
  msghdr &header = headers_[message].msg_hdr;
  const size_t bytes = headers_[message].msg_len;
  int each = 0;
  const cmsghdr *control = CMSG_FIRSTHDR(&header);
  if (control && control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO)
    std::memcpy(&each, CMSG_DATA(control), sizeof each);
  const size_t size = each > 0 ? static_cast<size_t>(each) : std::max<size_t>(bytes, 1);
  const uint8_t *at = memory_.get() + message * stride;
  for (size_t begin = 0; begin == 0 || begin < bytes; begin += size)
    datagrams_.push_back({at + begin, std::min(size, bytes - begin), message});
}

Address UdpInbox::from(int k) const {
  const unsigned message = datagram(k).message;
  return Address::of(&from_[message], headers_[message].msg_hdr.msg_namelen);
}

}  // namespace accel_rl::replay
