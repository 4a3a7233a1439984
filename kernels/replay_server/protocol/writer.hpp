// Builds replies. One is laid out first, so that samples are gathered straight into it.

#ifndef ACCEL_RL_REPLAY_PROTOCOL_WRITER_HPP
#define ACCEL_RL_REPLAY_PROTOCOL_WRITER_HPP

#include <string>
#include <vector>

#include "../core/table.hpp"
#include "buffer.hpp"
#include "frame.hpp"

namespace accel_rl::replay {

// Where sections of a frame go, and the gaps between them.
class Layout {
 public:
  struct Gap {
    size_t begin, end;
  };

  void clear() { end_ = body_offset, gaps_.clear(); }

  // The offset of a section of `count` times `each` bytes.
  size_t add(uint64_t count, uint64_t each) {
    const uint64_t begin = aligned(end_);
    if (begin > end_) gaps_.push_back({static_cast<size_t>(end_), static_cast<size_t>(begin)});
    end_ = begin + count * each;
    return static_cast<size_t>(begin);
  }

  uint64_t length() const { return end_; }
  const std::vector<Gap> &gaps() const { return gaps_; }

 private:
  uint64_t end_ = body_offset;
  std::vector<Gap> gaps_;
};

// A reply to `request`: header, zero in fixed fields and gaps; sections are the caller's to write.
// False where there is no memory.
bool begin_reply(FrameBuffer *out, const Header &request, Op op, Status status,
                 const Layout &layout);

// Put in the checksum, if the request had one. The last that is done to a frame.
void finish_reply(FrameBuffer *out);

// A whole reply that says what is wrong; `why` is cut to most_message_bytes.
constexpr size_t most_message_bytes = 1024;
bool write_error(FrameBuffer *out, const Header &request, Status status, const std::string &why);

// The description of a table, as in OPEN_TABLE's request and reply: fixed fields and what follows
// them. Behind the fixed fields it takes description_bytes.
size_t description_bytes(const TableConfig &config);
void write_description(uint8_t *frame, const TableConfig &config);

}  // namespace accel_rl::replay

#endif
