// The peers: how they come, and how they go.

#include "datagrams.hpp"

#include <new>

namespace accel_rl::replay {

namespace {

constexpr uint64_t spare_ms = 5000;    // memory for large frames is kept so long
constexpr uint64_t cookie_ms = 30000;  // a cookie holds for so long, or twice as long

}  // namespace

void Datagrams::receive(const Address &from, const uint8_t *bytes, size_t count, uint64_t now_ms) {
  now_ms_ = now_ms;
  ++counts_.in;
  handler_->counters().bytes_in += count;
  try {
    dispatch(from, bytes, count);
  } catch (const std::bad_alloc &) {  // as if it had been lost
  }
  wire_->flush();
}

void Datagrams::dispatch(const Address &from, const uint8_t *bytes, size_t count) {
  Header header;
  const DatagramCheck check = read_datagram(bytes, count, &header);
  if (check == DatagramCheck::bad_checksum) ++counts_.bad_checksums;
  if (check != DatagramCheck::ok || header.flags & flag_reply) return malformed();
  if (header.op == static_cast<uint8_t>(Op::hello) || header.op == static_cast<uint8_t>(Op::auth))
    return handle_handshake(from, bytes, count, header);
  const auto found = by_token_.find(header.session);
  if (found == by_token_.end()) return reset(from, header, count);
  Remote &remote = *found->second;
  confirm(remote);
  remote.address = from;
  if (!remote.gone) remote.heard_ms = now_ms_;
  if (header.op == static_cast<uint8_t>(Op::ack)) return take_ack(remote, bytes, count, header);
  take_request(remote, bytes, count, header);
}

void Datagrams::malformed() {
  ++counts_.malformed;
  ++handler_->counters().malformed;
}

uint64_t Datagrams::cookie_of(const Address &from, const Header &header, uint64_t age) const {
  struct {
    uint64_t greeting, period;
    std::array<uint8_t, Address::most_bytes> address;
    uint32_t size;
  } const what = {header.session, now_ms_ / cookie_ms - age, from.bytes, from.size};
  static_assert(sizeof what == 48, "no padding");
  return siphash(settings_.cookie_key, reinterpret_cast<const uint8_t *>(&what), sizeof what);
}

// Whether a HELLO comes from where it says: then it has a cookie that was sent there. Until then
// nothing of it is kept, so that hellos from nowhere cost the server no room.
bool Datagrams::has_cookie(const Address &from, const uint8_t *bytes, size_t count,
                           const Header &header) {
  if (count == body_offset + cookie_bytes) {
    const auto given = read_at<uint64_t>(bytes + body_offset);
    if (given == cookie_of(from, header, 0) || given == cookie_of(from, header, 1)) return true;
  }
  write_cookie(header, cookie_of(from, header, 0), control_);
  if (send_whole(wire_, from, control_, sizeof control_)) ++counts_.out;
  return false;
}

// HELLO and AUTH, which one datagram holds, as their replies.
void Datagrams::handle_handshake(const Address &from, const uint8_t *bytes, size_t count,
                                 const Header &header) {
  if (header.session == 0 || header.fragments != 1 || header.length != count) return malformed();
  const auto found = remotes_.find(header.session);
  Remote *remote = found == remotes_.end() ? nullptr : found->second.get();
  const bool hello = header.op == static_cast<uint8_t>(Op::hello);
  if (!remote && !hello) return reset(from, header, count);
  if (remote && remote->greeted == header.op && remote->welcome.size() > 0) {
    ++counts_.duplicates;
    if (send_whole(wire_, from, remote->welcome.data(), remote->welcome.size())) ++counts_.out;
    return;
  }
  if (remote && (hello || is_closed(*remote) || remote->token != 0)) {
    ++counts_.duplicates;  // it came late
    return;
  }
  if (header.length > handler_->most_bytes(Peer())) return;
  if (hello) {
    if (count < body_offset || count > body_offset + cookie_bytes) return malformed();
    if (!has_cookie(from, bytes, count, header)) return;
    count = body_offset;
  }
  if (!whole_.resize(count)) return;
  if (!remote) remote = admit(from, header.session);
  std::memcpy(whole_.data(), bytes, count);
  restore_frame_header(whole_.data());
  set(whole_.data(), field::header::length, static_cast<uint32_t>(count));
  Frame frame{whole_.data(), {}};
  read_header(frame.bytes, UINT32_MAX, &frame.header);
  send_handshake_reply(*remote, header.op, handler_->handle(*remote, frame, &reply_, now_ms_));
}

void Datagrams::send_handshake_reply(Remote &remote, uint8_t op, Outcome outcome) {
  if (outcome == Outcome::close || outcome == Outcome::waits) return remove(remote);
  remote.greeted = op;
  remote.welcome.swap(reply_);
  uint8_t *welcome = remote.welcome.data();
  const Part rest{welcome + header_bytes, remote.welcome.size() - header_bytes};
  write_fragment_header(welcome, 0, 1, &rest, 1, welcome);
  if (wire_->send(remote.address, welcome, &rest, 1)) ++counts_.out;
  handler_->counters().bytes_out += remote.welcome.size();
  if (outcome == Outcome::reply_and_close) return disconnect(remote);
  if (remote.state != Peer::State::ready) return;
  remote.token = remote.session->token;
  const auto before = by_token_.find(remote.token);
  if (before != by_token_.end()) disconnect(*before->second);  // the session goes on here
  by_token_[remote.token] = &remote;
  if (op == static_cast<uint8_t>(Op::auth)) confirm(remote);
}

// From now on it is one of the clients.
void Datagrams::confirm(Remote &remote) {
  if (remote.confirmed) return;
  remote.exchanges.resize(window);
  remote.confirmed = true;
}

Datagrams::Remote *Datagrams::admit(const Address &from, uint64_t greeting) {
  evict_half_open();
  auto made = std::make_unique<Remote>();
  Remote *remote = made.get();
  remote->transport = transport_;
  remote->address = from;
  remote->greeting = greeting;
  remote->heard_ms = now_ms_;
  remotes_.emplace(greeting, std::move(made));
  ++handler_->counters().connections;
  ++handler_->counters().open;
  return remote;
}

// Make room for a peer. Too many half-open ones: evict the oldest of them, so that hellos alone do
// not displace clients. Too many in all: one that has left, else a half-open one, else the idlest.
void Datagrams::evict_half_open() {
  uint32_t count = 0;
  Remote *gone = nullptr, *oldest = nullptr, *idlest = nullptr;
  const auto longer = [](const Remote &each, const Remote *than) {
    return !than || each.heard_ms < than->heard_ms;
  };
  for (auto &each : remotes_) {
    Remote &remote = *each.second;
    if (remote.gone) {
      if (longer(remote, gone)) gone = &remote;
    } else if (!remote.confirmed) {
      ++count;
      if (longer(remote, oldest)) oldest = &remote;
    } else if (longer(remote, idlest)) {
      idlest = &remote;
    }
  }
  const bool crowded = count >= settings_.half_open && oldest;
  if (!crowded && remotes_.size() < settings_.peers) return;
  Remote *chosen = crowded ? oldest : gone ? gone : oldest ? oldest : idlest;
  if (!chosen) return;
  if (!chosen->gone) ++counts_.evicted, ++handler_->counters().turned_away;
  remove(*chosen);
}

// Whether it is a client no longer, here or because its session went on elsewhere.
bool Datagrams::is_closed(const Remote &remote) const {
  return remote.gone || remote.state == Peer::State::closed;
}

void Datagrams::disconnect(Remote &remote) {
  if (remote.gone) return;
  handler_->disconnect(remote, now_ms_);
  remote.gone = true;
  remote.heard_ms = now_ms_;
  --handler_->counters().open;
}

void Datagrams::remove(Remote &remote) {
  disconnect(remote);
  for (Exchange &each : remote.exchanges) release(remote, each);
  const auto found = by_token_.find(remote.token);
  if (found != by_token_.end() && found->second == &remote) by_token_.erase(found);
  remotes_.erase(remote.greeting);
}

// Nothing is said to what is shorter than the answer: nobody gets more than he sent.
void Datagrams::reset(const Address &to, const Header &header, size_t count) {
  if (count < body_offset || header.op == static_cast<uint8_t>(Op::reset)) return;
  write_reset(header, control_);
  ++counts_.resets;
  if (send_whole(wire_, to, control_, sizeof control_)) ++counts_.out;
}

void Datagrams::close_idle(uint64_t now_ms) {
  now_ms_ = now_ms;
  std::vector<Remote *> old;
  const auto since = [this](uint64_t ms) { return now_ms_ - ms; };
  for (auto &each : remotes_) {
    Remote &remote = *each.second;
    if (remote.state == Peer::State::closed) disconnect(remote);
    const bool client = remote.state == Peer::State::ready && remote.confirmed;
    const uint32_t most_ms = remote.gone          ? settings_.linger_ms
                             : remote.waiting > 0 ? settings_.silent_ms
                             : client             ? settings_.idle_ms
                                                  : settings_.handshake_ms;
    if (since(remote.heard_ms) >= most_ms) {
      if (!remote.gone) ++handler_->counters().timed_out;
      old.push_back(&remote);
    } else if (remote.assembling > 0) {
      for (Exchange &exchange : remote.exchanges)
        if (exchange.stage == Stage::receiving &&
            (since(exchange.touched_ms) >= settings_.frame_ms ||
             since(exchange.begun_ms) >=
                 most_frame_ms(settings_.frame_ms, exchange.frame.size()))) {
          ++counts_.dropped_requests;
          ++handler_->counters().timed_out;
          release(remote, exchange);
          exchange.stage = Stage::lost;
        }
    }
  }
  for (Remote *each : old) remove(*each);
  if (since(spared_ms_) >= spare_ms) spare_.release();
}

void Datagrams::close(uint64_t now_ms) {
  now_ms_ = now_ms;
  while (!remotes_.empty()) remove(*remotes_.begin()->second);
}

}  // namespace accel_rl::replay
