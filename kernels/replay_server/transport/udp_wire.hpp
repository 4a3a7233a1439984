// Datagrams by a UDP socket of the kernel, several at a system call. Those of one frame to one
// address go through the kernel's stack as one (segmentation and receive offload of UDP, Linux 4.18
// and 5.0), where there is such a kernel and the path allows it.

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
  ~UdpWire() override;
  UdpWire(const UdpWire &) = delete;
  UdpWire &operator=(const UdpWire &) = delete;

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
  // Datagrams from one message on that the kernel is given as one.
  struct Run {
    size_t count = 1, pieces = 0, bytes = 0;
  };
  struct alignas(cmsghdr) Control {
    std::array<uint8_t, CMSG_SPACE(sizeof(uint16_t))> bytes;
  };
  struct Message {
    Address to;
    size_t first = 0, pieces = 0, size = 0;  // of iovecs_; bytes
    std::array<uint8_t, header_bytes + copied_bytes> bytes;
  };

  Run run_from(size_t message, bool alone) const;
  void prepare(size_t header, size_t message, const Run &run);

  int file_ = -1;
  int route_ = -1;  // of an unconnected one: connects to peers, to ask for their paths' MTU
  bool connected_ = false, refers_ = false, refused_ = false;
  bool segments_ = false;  // the kernel cuts a message into datagrams
  size_t queued_ = 0, inbox_bytes_ = 0;
  std::unique_ptr<Message[]> messages_;
  std::vector<mmsghdr> headers_;
  std::vector<Control> controls_;
  std::vector<Run> runs_;  // of headers_
  std::vector<iovec> iovecs_;
};

// Receives.
class UdpInbox {
 public:
  UdpInbox();

  // Ask the kernel to hand over a sender's datagrams together.
  static void open(int file);
  // How many came, without waiting; -1: none, and errno says why. They stay until the next call.
  int take(int file);
  // There may be more: the last take() had no room for them.
  bool full() const { return full_; }

  const uint8_t *bytes(int k) const { return datagram(k).bytes; }
  // More than most_datagram if it was longer.
  size_t count(int k) const { return datagram(k).count; }
  Address from(int k) const;

 private:
  static constexpr unsigned most = 32;
  static constexpr size_t stride = 65536;  // more than UDP carries, in one datagram or in several
  struct Datagram {
    const uint8_t *bytes;
    size_t count;
    unsigned message;
  };
  struct alignas(cmsghdr) Control {
    std::array<uint8_t, CMSG_SPACE(sizeof(int))> bytes;
  };

  void split(unsigned message);
  const Datagram &datagram(int k) const { return datagrams_[static_cast<size_t>(k)]; }

  std::unique_ptr<uint8_t[]> memory_;
  std::vector<Datagram> datagrams_;
  bool full_ = false;
  std::array<mmsghdr, most> headers_ = {};
  std::array<iovec, most> iovecs_ = {};
  std::array<Control, most> controls_ = {};
  std::array<sockaddr_in6, most> from_ = {};
};

}  // namespace accel_rl::replay

#endif
