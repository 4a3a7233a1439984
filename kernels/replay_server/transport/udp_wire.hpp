// Datagrams by a UDP socket of the kernel, several at a system call.

#ifndef ACCEL_RL_REPLAY_TRANSPORT_UDP_WIRE_HPP
#define ACCEL_RL_REPLAY_TRANSPORT_UDP_WIRE_HPP

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "../datagram/fragments.hpp"
#include "../datagram/wire.hpp"

namespace accel_rl::replay {

// Sends. Small datagrams are copied, and wait for push() with those of others.
class UdpWire : public Wire {
 public:
  UdpWire();

  // `connected`: all go to the socket's own peer.
  void open(int file, bool connected);
  bool send(const Address &to, const uint8_t *header, const Part *parts, size_t count) override;
  void flush() override;
  uint32_t slice_bytes(const Address &to) const override;
  size_t inbox_bytes() const override { return inbox_bytes_; }
  // Everything that is left; what the kernel does not take is lost.
  void push();
  // Whether the kernel has said that nobody is there, since the last call.
  bool refused();

 private:
  static constexpr size_t most = 64, copied_bytes = 2048;
  struct Message {
    Address to;
    size_t first = 0, pieces = 0;  // of iovecs_
    std::array<uint8_t, header_bytes + copied_bytes> bytes;
  };

  int file_ = -1;
  bool connected_ = false, refers_ = false, refused_ = false;
  size_t queued_ = 0, inbox_bytes_ = 0;
  std::unique_ptr<Message[]> messages_;
  std::vector<mmsghdr> headers_;
  std::vector<iovec> iovecs_;
};

// Receives.
class UdpInbox {
 public:
  UdpInbox();

  // How many came, without waiting; -1: none, and errno says why. They stay until the next call.
  int take(int file);
  static constexpr int most = 32;

  const uint8_t *bytes(int k) const { return memory_.get() + static_cast<size_t>(k) * stride; }
  // One more than most_datagram if it was longer.
  size_t count(int k) const { return headers_[static_cast<size_t>(k)].msg_len; }
  Address from(int k) const;

 private:
  static constexpr size_t stride = (most_datagram + 1 + 63) / 64 * 64;

  std::unique_ptr<uint8_t[]> memory_;
  std::array<mmsghdr, most> headers_ = {};
  std::array<iovec, most> iovecs_ = {};
  std::array<sockaddr_in6, most> from_ = {};
};

}  // namespace accel_rl::replay

#endif
