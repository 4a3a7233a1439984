#include "udp_wire.hpp"

#include <algorithm>
#include <cerrno>

#include "endpoint.hpp"

namespace accel_rl::replay {

namespace {

constexpr uint32_t loopback_slice = most_slice;  // there no Ethernet limits it
constexpr int buffer_bytes = 4 << 20;

}  // namespace

UdpWire::UdpWire() : messages_(std::make_unique<Message[]>(most)), headers_(most) {
  iovecs_.reserve(4 * most);
}

void UdpWire::open(int file, bool connected) {
  file_ = file, connected_ = connected;
  for (const int option : {SO_RCVBUF, SO_SNDBUF})  // as far as the system allows
    setsockopt(file, SOL_SOCKET, option, &buffer_bytes, sizeof buffer_bytes);
  int granted = 0;
  socklen_t length = sizeof granted;
  // The kernel's bookkeeping takes part of it, and other peers share it.
  if (getsockopt(file, SOL_SOCKET, SO_RCVBUF, &granted, &length) == 0 && granted > 0)
    inbox_bytes_ = static_cast<size_t>(granted) / 4;
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
  return true;
}

void UdpWire::flush() {
  if (refers_) push();
}

void UdpWire::push() {
  for (size_t k = 0; k < queued_; ++k) {
    Message &message = messages_[k];
    msghdr &header = headers_[k].msg_hdr;
    header = {};
    if (!connected_) {
      header.msg_name = message.to.bytes.data();
      header.msg_namelen = message.to.size;
    }
    header.msg_iov = iovecs_.data() + message.first;
    header.msg_iovlen = message.pieces;
  }
  for (size_t sent = 0; sent < queued_;) {
    const int put = sendmmsg(file_, headers_.data() + sent, static_cast<unsigned>(queued_ - sent),
                             MSG_NOSIGNAL);
    if (put > 0) {
      sent += static_cast<size_t>(put);
    } else if (errno == ECONNREFUSED) {
      refused_ = true;  // of an earlier one: the error is taken, and this one can go
      if (connected_) break;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      break;
    } else if (errno != EINTR) {
      ++sent;  // it has no way there: others may
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
  return is_loopback(reinterpret_cast<const sockaddr *>(to.bytes.data())) ? loopback_slice
                                                                          : usual_slice;
}

UdpInbox::UdpInbox() : memory_(new uint8_t[stride * most]) {
  for (size_t k = 0; k < most; ++k) {
    iovecs_[k] = {memory_.get() + k * stride, most_datagram + 1};
    msghdr &header = headers_[k].msg_hdr;
    header.msg_name = &from_[k];
    header.msg_iov = &iovecs_[k];
    header.msg_iovlen = 1;
  }
}

int UdpInbox::take(int file) {
  for (mmsghdr &each : headers_) each.msg_hdr.msg_namelen = sizeof(sockaddr_in6);
  return recvmmsg(file, headers_.data(), most, MSG_DONTWAIT, nullptr);
}

Address UdpInbox::from(int k) const {
  const auto index = static_cast<size_t>(k);
  return Address::of(&from_[index], headers_[index].msg_hdr.msg_namelen);
}

}  // namespace accel_rl::replay
