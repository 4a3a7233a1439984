// Server side of datagrams: assembles requests for the handler, and keeps replies until the client
// acknowledges them. Uses neither sockets nor a clock.

#ifndef ACCEL_RL_REPLAY_DATAGRAM_DATAGRAMS_HPP
#define ACCEL_RL_REPLAY_DATAGRAM_DATAGRAMS_HPP

#include <memory>
#include <unordered_map>
#include <vector>

#include "../core/siphash.hpp"
#include "../protocol/buffer.hpp"
#include "../server/handler.hpp"
#include "control.hpp"
#include "fragments.hpp"
#include "wire.hpp"

namespace accel_rl::replay {

struct DatagramSettings {
  SipKey cookie_key{};           // random bits
  uint32_t peers = 1024;         // then one that has been idle long leaves
  uint32_t half_open = 256;      // peers that have not used their session yet
  uint32_t handshake_ms = 5000;  // until the session stands, and is used
  uint32_t frame_ms = 10000;     // without a fragment of a request; for each MiB until it is whole
  uint32_t linger_ms = 10000;    // a peer that has left is known so long, for late datagrams
  uint32_t idle_ms = 3600 * 1000;  // without a datagram
  uint32_t silent_ms = 30000;      // without one, of a client whose request waits: it would ask
  uint64_t peer_bytes = uint64_t{32} << 20;    // of requests in pieces, of one peer
  uint64_t buffer_bytes = uint64_t{1} << 30;   // and of all
  uint64_t reply_bytes = uint64_t{256} << 20;  // of replies that are kept, of one peer
  uint64_t unread_bytes = uint64_t{1} << 30;   // and of all
};

struct DatagramCounts {
  uint64_t in = 0, out = 0;  // datagrams
  uint64_t malformed = 0;    // that were none, or contradicted others of their frame
  uint64_t bad_checksums = 0;
  uint64_t duplicates = 0;        // of what had come before
  uint64_t resets = 0;            // sent to those that are not known
  uint64_t retransmitted = 0;     // fragments of replies that were sent again
  uint64_t dropped_requests = 0;  // in pieces, that were given up
  uint64_t dropped_replies = 0;   // for room
  uint64_t evicted = 0;           // peers, for others
};
constexpr size_t datagram_counts_count = 10;
constexpr const char *datagram_count_names[datagram_counts_count] = {
    "in",     "out",           "malformed",        "bad_checksums",   "duplicates",
    "resets", "retransmitted", "dropped_requests", "dropped_replies", "evicted"};
static_assert(sizeof(DatagramCounts) == datagram_counts_count * sizeof(uint64_t),
              "listed as they lie");

// Everything is called by the serving thread, with the loop's mutex held. `transport` is what its
// peers name as theirs.
class Datagrams {
 public:
  Datagrams(Handler *handler, Wire *wire, Transport *transport, DatagramSettings settings)
      : handler_(handler), wire_(wire), transport_(transport), settings_(settings) {}
  ~Datagrams() { close(now_ms_); }
  Datagrams(const Datagrams &) = delete;
  Datagrams &operator=(const Datagrams &) = delete;

  // Handle a received datagram; the bytes are not kept.
  void receive(const Address &from, const uint8_t *bytes, size_t count, uint64_t now_ms);
  // Send a delayed reply to one of its own peers. May take over the frame's memory.
  void deliver(Peer &peer, FrameBuffer &frame);
  void close_idle(uint64_t now_ms);
  // Disconnect every peer from the handler.
  void close(uint64_t now_ms);

  const DatagramCounts &counts() const { return counts_; }
  size_t peers() const { return remotes_.size(); }
  uint64_t assembling_bytes() const { return assembling_; }
  uint64_t kept_bytes() const { return kept_; }

 private:
  // Numbers of requests that one peer may have on their way; what is older comes late.
  static constexpr size_t window = 64;

  struct Exchange {
    enum class Stage : uint8_t {
      none,
      receiving,  // the frame is the request, in pieces
      waiting,    // for the handler
      replied,    // the frame is the reply
      over,       // the client has its reply
      lost,       // what there was had to be given up
    };

    Stage stage = Stage::none;
    uint64_t request = 0, touched_ms = 0, begun_ms = 0;
    Fragments fragments;  // of the frame
    Received received;
    uint32_t granted = 0;       // fragments of the request below it may come
    uint32_t acknowledged = 0;  // the first that was missing when credit was given
    uint32_t sent = 0;          // fragments of the reply
    FrameBuffer frame;
    uint64_t counted = 0;  // of its memory, among what is assembled or kept
  };
  struct Remote : Peer {
    Address address;
    uint64_t greeting = 0;   // the client's number in HELLO and AUTH
    uint64_t token = 0;      // 0: none yet
    bool confirmed = false;  // it has used its token, or knows the secret
    bool gone = false;       // has left the handler: known only for what comes late
    uint8_t greeted = 0;     // the operation that `welcome` answers
    uint64_t heard_ms = 0;
    uint64_t highest = 0;  // number of a request
    uint64_t assembling = 0, kept = 0;
    FrameBuffer welcome;
    std::vector<Exchange> exchanges;  // by number modulo window, once it is confirmed

    Exchange &at(uint64_t request) { return exchanges[request % window]; }
  };
  using Stage = Exchange::Stage;

  // Peers.
  void dispatch(const Address &from, const uint8_t *bytes, size_t count);
  void handle_handshake(const Address &from, const uint8_t *bytes, size_t count,
                        const Header &header);
  uint64_t cookie_of(const Address &from, const Header &header, uint64_t age) const;
  bool has_cookie(const Address &from, const uint8_t *bytes, size_t count, const Header &header);
  Remote *admit(const Address &from, uint64_t greeting);
  void send_handshake_reply(Remote &remote, uint8_t op, Outcome outcome);
  void confirm(Remote &remote);
  void evict_half_open();
  void disconnect(Remote &remote);
  void remove(Remote &remote);
  void malformed();
  bool is_closed(const Remote &remote) const;
  void reset(const Address &to, const Header &header, size_t count);
  // Their requests.
  bool is_late(const Remote &remote, uint64_t request) const;
  void take_request(Remote &remote, const uint8_t *bytes, size_t count, const Header &header);
  void resend(Remote &remote, Exchange &exchange);
  void take_whole(Remote &remote, Exchange &exchange, const uint8_t *bytes, size_t count);
  void take_fragment(Remote &remote, Exchange &exchange, const uint8_t *bytes, size_t count,
                     const Header &header);
  bool make_room(Remote &remote, Exchange &exchange, size_t bytes);
  bool drop_slowest(const Exchange &but);
  void handle(Remote &remote, Exchange &exchange, uint8_t *bytes);
  void acknowledge(Remote &remote, Exchange &exchange);
  // And replies.
  void finish(Remote &remote, Exchange &exchange, Outcome outcome, FrameBuffer *reply);
  bool keep(Remote &remote, Exchange &exchange, FrameBuffer *reply);
  bool evict_replies(Remote &remote, const Exchange &exchange, uint64_t bytes);
  bool drop_oldest(Remote &remote, const Exchange &but);
  void take_ack(Remote &remote, const uint8_t *bytes, size_t count, const Header &header);
  bool send_fragment(Remote &remote, const Exchange &exchange, uint32_t fragment);
  void send_below(Remote &remote, Exchange &exchange, uint32_t fragment);
  void release(Remote &remote, Exchange &exchange);

  Handler *handler_;
  Wire *wire_;
  Transport *transport_;
  DatagramSettings settings_;
  DatagramCounts counts_;
  std::unordered_map<uint64_t, std::unique_ptr<Remote>> remotes_;  // by greeting
  std::unordered_map<uint64_t, Remote *> by_token_;
  uint64_t now_ms_ = 0, spared_ms_ = 0, assembling_ = 0, kept_ = 0;
  FrameBuffer whole_, reply_, spare_;  // spare_: of the last large frame, for the next one
  uint8_t control_[body_offset] = {};
};

}  // namespace accel_rl::replay

#endif
