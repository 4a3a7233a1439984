// Sessions: who may send requests, and which of them were done already.

#ifndef ACCEL_RL_REPLAY_SERVER_SESSIONS_HPP
#define ACCEL_RL_REPLAY_SERVER_SESSIONS_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "../protocol/frame.hpp"

namespace accel_rl::replay {

struct Peer;

// How the last requests that change something ended, so that none is done twice.
class Recent {
 public:
  struct End {
    uint64_t request;
    Status status;
    std::array<uint8_t, fixed_bytes> fixed;
  };
  static constexpr size_t kept = 64;

  // Null if the request is not among them.
  const End *find(uint64_t request) const {
    if (count_ == 0 || request > highest_) return nullptr;  // nearly always
    for (size_t k = 0; k < count_; ++k)
      if (ends_[k].request == request) return &ends_[k];
    return nullptr;
  }
  // Whether it may be one of those that were forgotten; 0, which no change has, always is.
  bool is_too_old(uint64_t request) const { return request <= forgotten_; }

  // The oldest first.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (size_t k = 0; k < count_; ++k) visit(ends_[(next_ + kept - count_ + k) % kept]);
  }
  size_t count() const { return count_; }
  uint64_t forgotten() const { return forgotten_; }
  void forget(uint64_t request) { forgotten_ = std::max(forgotten_, request); }

  void add(uint64_t request, Status status, const uint8_t *fixed) {
    End &end = ends_[next_];
    if (count_ == kept && end.request > forgotten_) forgotten_ = end.request;
    end.request = request;
    end.status = status;
    std::memcpy(end.fixed.data(), fixed, fixed_bytes);
    next_ = (next_ + 1) % kept;
    if (count_ < kept) ++count_;
    highest_ = std::max(highest_, request);
  }

 private:
  std::array<End, kept> ends_;
  size_t next_ = 0, count_ = 0;
  uint64_t highest_ = 0, forgotten_ = 0;
};

struct Session {
  uint64_t token = 0;
  Peer *peer = nullptr;  // of the connection that it has; null: none for now
  uint64_t left_ms = 0;  // when it lost its last one
  Recent recent;
};

class Sessions {
 public:
  Session *find(uint64_t token) {
    const auto found = sessions_.find(token);
    return found == sessions_.end() ? nullptr : found->second.get();
  }
  Session *add(uint64_t token) {
    auto session = std::make_unique<Session>();
    session->token = token;
    return sessions_.emplace(token, std::move(session)).first->second.get();
  }
  void remove(uint64_t token) { sessions_.erase(token); }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto &each : sessions_) visit(*each.second);
  }
  size_t size() const { return sessions_.size(); }

  // Forget the one that has been without a connection longest; false: all have one.
  bool evict() {
    auto oldest = sessions_.end();
    for (auto each = sessions_.begin(); each != sessions_.end(); ++each)
      if (!each->second->peer &&
          (oldest == sessions_.end() || each->second->left_ms < oldest->second->left_ms))
        oldest = each;
    if (oldest == sessions_.end()) return false;
    sessions_.erase(oldest);
    return true;
  }

  // Forget those that have been without a connection for too long.
  void expire(uint64_t now_ms, uint64_t timeout_ms) {
    for (auto each = sessions_.begin(); each != sessions_.end();) {
      const Session &session = *each->second;
      const bool over = !session.peer && now_ms - session.left_ms >= timeout_ms;
      each = over ? sessions_.erase(each) : std::next(each);
    }
  }

 private:
  std::unordered_map<uint64_t, std::unique_ptr<Session>> sessions_;
};

}  // namespace accel_rl::replay

#endif
