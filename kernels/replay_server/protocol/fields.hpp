// Fixed fields of the protocol: type and offset of each, by frame. tests/remote/golden/fields.csv
// is the table that this header, docs/replay-protocol.md and accel_rl/remote/wire.py are checked
// against.

#ifndef ACCEL_RL_REPLAY_PROTOCOL_FIELDS_HPP
#define ACCEL_RL_REPLAY_PROTOCOL_FIELDS_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace accel_rl::replay {

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the protocol is little-endian, and so must be the machine"
#endif

// Values at any address: through memcpy, as a cast pointer would be misaligned, and alias.
template <typename T>
T read_at(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void write_at(uint8_t *to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// A field of a frame: its offset from the frame's first byte.
template <typename T>
struct Field {
  // An argument of this type takes no part in deduction: the field alone says how many bytes it
  // has.
  using Value = T;
  size_t offset;

  constexpr size_t end() const { return offset + sizeof(T); }
};

template <typename T>
T get(const uint8_t *frame, Field<T> field) {
  return read_at<T>(frame + field.offset);
}

template <typename T>
void set(uint8_t *frame, Field<T> field, typename Field<T>::Value value) {
  write_at<T>(frame + field.offset, value);
}

namespace field {

namespace header {
constexpr Field<uint32_t> magic{0};
constexpr Field<uint8_t> version{4};
constexpr Field<uint8_t> op{5};
constexpr Field<uint16_t> flags{6};
constexpr Field<uint64_t> session{8};  // token
constexpr Field<uint64_t> request{16};
constexpr Field<uint16_t> table{24};
constexpr Field<uint16_t> status{26};
constexpr Field<uint16_t> fragment{28};
constexpr Field<uint16_t> fragments{30};
constexpr Field<uint32_t> length{32};    // whole frame, header included
constexpr Field<uint32_t> checksum{36};  // CRC-32C; 0 without flag_checked
}  // namespace header

namespace hello {
constexpr Field<uint64_t> resume{40};  // token of a session to continue, or 0
constexpr Field<uint8_t[16]> nonce{48};
}  // namespace hello

namespace welcome {
constexpr Field<uint32_t> frame_bytes{40};  // largest frame
constexpr Field<uint32_t> items{44};        // most items of a request
constexpr Field<uint32_t> session_ms{48};   // how long a session without a connection is kept
constexpr Field<uint8_t> resumed{52};
}  // namespace welcome

namespace open_table {
constexpr Field<uint32_t> capacity{40};
constexpr Field<uint16_t> flags{44};  // OpenFlag
constexpr Field<uint8_t> sampler{46};
constexpr Field<uint8_t> columns{47};
constexpr Field<float> priority_exponent{48};
constexpr Field<uint8_t> name_bytes{52};
constexpr Field<uint8_t> limited{53};
constexpr Field<uint64_t> min_size{56};
constexpr Field<double> samples_per_insert{64};
constexpr Field<double> min_diff{72};
constexpr Field<double> max_diff{80};
constexpr Field<uint32_t> groups{88};
constexpr Field<float> csp_ratio{92};
constexpr Field<float> max_priority{96};
}  // namespace open_table

namespace push {
constexpr Field<uint32_t> items{40};
constexpr Field<uint32_t> timeout_ms{44};
constexpr Field<uint32_t> has_priorities{48};  // 0 or 1
}  // namespace push

namespace push_reply {
constexpr Field<uint32_t> items{40};
constexpr Field<uint32_t> held{44};  // items in the table
}  // namespace push_reply

namespace sample {
constexpr Field<uint64_t> seed{40};
constexpr Field<uint32_t> batch{48};
constexpr Field<uint32_t> timeout_ms{52};
}  // namespace sample

namespace sample_reply {
constexpr Field<uint32_t> batch{40};
constexpr Field<uint32_t> held{44};  // items in the table
constexpr Field<double> total{48};   // sum of weights
}  // namespace sample_reply

namespace update {
constexpr Field<uint32_t> items{40};
}  // namespace update

namespace update_reply {
constexpr Field<uint32_t> applied{40};
constexpr Field<uint32_t> stale{44};  // dropped, their item was overwritten
}  // namespace update_reply

namespace stats_reply {
constexpr Field<uint32_t> counts{40};
constexpr Field<double> total{48};  // sum of weights, of a table
}  // namespace stats_reply

namespace publish {
constexpr Field<uint64_t> version{40};
constexpr Field<uint32_t> value_bytes{48};
constexpr Field<uint16_t> name_bytes{52};
}  // namespace publish

namespace publish_reply {
constexpr Field<uint64_t> version{40};
}  // namespace publish_reply

namespace fetch {
constexpr Field<uint64_t> version{40};  // version that the client has
constexpr Field<uint8_t> any{48};       // 1: the client has none
constexpr Field<uint16_t> name_bytes{52};
}  // namespace fetch

namespace fetch_reply {
constexpr Field<uint64_t> version{40};
}  // namespace fetch_reply

namespace ack {
constexpr Field<uint8_t> complete{40};
constexpr Field<uint8_t> again{41};
constexpr Field<uint16_t> next{42};         // first missing fragment
constexpr Field<uint32_t> credit{44};       // fragments below may be sent
constexpr Field<uint64_t> beyond_low{48};   // bit k: fragment next + 1 + k is there
constexpr Field<uint64_t> beyond_high{56};  // bit k: fragment next + 65 + k
}  // namespace ack

namespace remove {
constexpr Field<uint8_t> message{40};  // 1: a name in the mailbox
constexpr Field<uint16_t> name_bytes{42};
}  // namespace remove

namespace next_table {
constexpr Field<uint16_t> from{40};  // the least number
}  // namespace next_table

namespace cookie {
constexpr Field<uint64_t> value{40};
}  // namespace cookie

}  // namespace field

}  // namespace accel_rl::replay

#endif
