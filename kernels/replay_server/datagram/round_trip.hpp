// When a client loses patience: from measured round trips, longer each time, and not for ever.

#ifndef ACCEL_RL_REPLAY_DATAGRAM_ROUND_TRIP_HPP
#define ACCEL_RL_REPLAY_DATAGRAM_ROUND_TRIP_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace accel_rl::replay {

struct RoundTripSettings {
  uint32_t first_us = 5000;  // while no round trip is known
  uint32_t least_us = 2000, most_us = 250000;
  uint32_t tries = 25;  // without a sign of life: about 5 s
};

class RoundTrip {
 public:
  explicit RoundTrip(RoundTripSettings settings)
      : settings_(settings), usual_us_(settings.first_us) {}

  void begin(uint64_t now_us) {
    began_us_ = now_us;
    clean_ = true, heard_ = false;
    tries_ = 0;
    wait_us_ = usual_us_;
    next_us_ = now_us + wait_us_;
  }
  // The server is alive; `further`: and there is progress.
  void heard(uint64_t now_us, bool further) {
    if (clean_ && !heard_) measure(static_cast<double>(now_us - began_us_));
    heard_ = true;
    tries_ = 0;
    if (further) wait_us_ = usual_us_;
    next_us_ = now_us + wait_us_;
  }
  // next_us() has come. False: too often.
  bool expire(uint64_t now_us) {
    // What may only be a longer path is kept until a round trip tells (Karn's rule).
    if (!heard_) usual_us_ = std::min<uint64_t>(2 * usual_us_, settings_.most_us);
    clean_ = false;
    wait_us_ = std::min<uint64_t>(2 * wait_us_, settings_.most_us);
    next_us_ = now_us + wait_us_;
    return ++tries_ <= settings_.tries;
  }
  // Whether what seems to be missing may be asked for again: once in a round trip.
  bool may_retransmit(uint64_t now_us) {
    const auto round_us = std::max<uint64_t>(static_cast<uint64_t>(mean_us_), 200);
    if (now_us < retransmitted_us_ + round_us) return false;
    retransmitted_us_ = now_us;
    return true;
  }
  uint64_t next_us() const { return next_us_; }

 private:
  // As TCP does it (RFC 6298).
  void measure(double round_us) {
    if (mean_us_ == 0) {
      mean_us_ = round_us;
      deviation_us_ = round_us / 2;
    } else {
      deviation_us_ += (std::abs(mean_us_ - round_us) - deviation_us_) / 4;
      mean_us_ += (round_us - mean_us_) / 8;
    }
    const auto patience = static_cast<uint64_t>(mean_us_ + 4 * deviation_us_);
    usual_us_ = std::clamp<uint64_t>(patience, settings_.least_us, settings_.most_us);
  }

  RoundTripSettings settings_;
  double mean_us_ = 0, deviation_us_ = 0;
  uint64_t usual_us_, wait_us_ = 0;  // for a new request; for this one now
  uint64_t began_us_ = 0, next_us_ = 0, retransmitted_us_ = 0;
  uint32_t tries_ = 0;
  bool clean_ = true, heard_ = false;  // nothing was sent again; the server has said something
};

}  // namespace accel_rl::replay

#endif
