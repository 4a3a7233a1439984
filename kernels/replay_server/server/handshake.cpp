// How a session begins and ends.

#include "handler.hpp"

namespace accel_rl::replay {

Outcome Handler::hello(Peer &peer, const Frame &frame, FrameBuffer *reply) {
  Hello request;
  if (parse_hello(frame, &request) != Status::ok)
    return refuse(frame.header, Status::malformed, reply);
  if (peer.state != Peer::State::fresh) return refuse(frame.header, Status::out_of_order, reply);
  if (draining_ && request.resume == 0)
    return fail_and_close(frame.header, Status::unavailable, drained, reply);
  std::memcpy(peer.transcript + challenge_bytes, request.nonce, nonce_bytes);
  write_at(peer.transcript + challenge_bytes + nonce_bytes, request.resume);
  if (!settings_.authenticate) return welcome(peer, frame.header, nullptr, reply);
  layout_.clear();
  const size_t at = layout_.add(challenge_bytes, 1);
  if (!settings_.random(peer.transcript, challenge_bytes) ||
      !begin_reply(reply, frame.header, Op::challenge, Status::ok, layout_))
    return Outcome::close;
  std::memcpy(reply->data() + at, peer.transcript, challenge_bytes);
  finish_reply(reply);
  peer.state = Peer::State::challenged;
  return Outcome::reply;
}

Outcome Handler::auth(Peer &peer, const Frame &frame, FrameBuffer *reply) {
  const uint8_t *mac;
  if (parse_auth(frame, &mac) != Status::ok) return refuse(frame.header, Status::malformed, reply);
  if (peer.state != Peer::State::challenged)
    return refuse(frame.header, Status::out_of_order, reply);
  return welcome(peer, frame.header, mac, reply);
}

Outcome Handler::welcome(Peer &peer, const Header &header, const uint8_t *mac, FrameBuffer *reply) {
  const auto resume = read_at<uint64_t>(peer.transcript + challenge_bytes + nonce_bytes);
  Session *session = resume ? sessions_.find(resume) : nullptr;
  uint64_t token = session ? resume : 0;
  uint8_t own[mac_bytes] = {};
  while (token == 0 || (!session && sessions_.find(token)))
    if (!settings_.random(reinterpret_cast<uint8_t *>(&token), sizeof token)) return Outcome::close;
  if (mac && !settings_.authenticate(peer.transcript, mac, token, own)) {
    ++statistics_.unauthenticated;
    return fail_and_close(header, Status::unauthenticated, "", reply);
  }
  const bool resumed = session != nullptr;
  if (!session) {
    if (sessions_.size() >= settings_.sessions && !sessions_.evict()) {
      ++statistics_.turned_away;
      return fail_and_close(header, Status::limit,
                            std::to_string(settings_.sessions) + " sessions are open", reply);
    }
    session = sessions_.add(token);
    if (log_.active()) log_session(*session);
  } else if (session->peer) {  // the client knows better that this connection is no more
    drop_waiting(*session->peer);
    session->peer->session = nullptr;
    session->peer->state = Peer::State::closed;
  }
  session->peer = &peer;
  peer.session = session;
  peer.state = Peer::State::ready;
  Header answer = header;
  answer.session = token;
  layout_.clear();
  const size_t at = mac ? layout_.add(mac_bytes, 1) : 0;
  if (!begin_reply(reply, answer, Op::welcome, Status::ok, layout_)) return Outcome::close;
  set(reply->data(), field::welcome::frame_bytes, settings_.limits.frame_bytes);
  set(reply->data(), field::welcome::items, settings_.limits.batch);
  set(reply->data(), field::welcome::session_ms, settings_.session_timeout_ms);
  set(reply->data(), field::welcome::resumed, resumed);
  if (mac) std::memcpy(reply->data() + at, own, mac_bytes);
  finish_reply(reply);
  return Outcome::reply;
}

Outcome Handler::bye(Peer &peer, const Frame &frame, FrameBuffer *reply) {
  if (parse_empty(frame) != Status::ok) return refuse(frame.header, Status::malformed, reply);
  layout_.clear();
  if (!begin_reply(reply, frame.header, Op::bye, Status::ok, layout_)) return Outcome::close;
  finish_reply(reply);
  drop_waiting(peer);
  const uint64_t token = peer.session->token;
  sessions_.remove(token);
  if (log_.active()) log_.add(log_format::ended, &token, sizeof token);
  peer.session = nullptr;
  peer.state = Peer::State::closed;
  return Outcome::reply_and_close;
}

void Handler::disconnect(Peer &peer, uint64_t now_ms) {
  if (peer.session) {
    peer.session->peer = nullptr;
    peer.session->left_ms = now_ms;
    peer.session = nullptr;
  }
  peer.state = Peer::State::closed;
  drop_waiting(peer);
}

}  // namespace accel_rl::replay
