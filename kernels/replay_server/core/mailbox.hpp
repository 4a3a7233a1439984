// Named messages of which the newest version counts: how a learner hands out parameters.

#ifndef ACCEL_RL_REPLAY_MAILBOX_HPP
#define ACCEL_RL_REPLAY_MAILBOX_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "status.hpp"

namespace accel_rl::replay {

// Shared, so that one can be sent while a newer one takes its place.
struct Message {
  uint64_t version;
  std::vector<std::byte> bytes;
};
using Messages = std::map<std::string, std::shared_ptr<const Message>>;

class Mailbox {
 public:
  Mailbox(uint64_t most_bytes, uint32_t most_names)
      : most_bytes_(most_bytes), most_names_(most_names) {}

  // ok, bad_name, bad_version (versions of a name must grow), limit or out_of_memory.
  Status publish(const std::string &name, uint64_t version, const std::byte *bytes, size_t count);
  // ok or none_newer; also where nothing has that name. A first version may be 0: `any` takes it.
  Status fetch(const std::string &name, uint64_t newer_than, bool any,
               std::shared_ptr<const Message> *message) const;

  // False if nothing has that name. Its versions may begin anew.
  bool remove(const std::string &name);

  Mailbox emptied() const { return Mailbox(most_bytes_, most_names_); }  // with the same caps
  uint64_t bytes() const { return bytes_; }
  const Messages &messages() const { return messages_; }

 private:
  uint64_t most_bytes_, bytes_ = 0;  // of messages
  uint32_t most_names_;
  Messages messages_;
};

}  // namespace accel_rl::replay

#endif
