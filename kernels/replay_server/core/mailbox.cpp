#include "mailbox.hpp"

#include <new>

#include "schema.hpp"

namespace accel_rl::replay {

Status Mailbox::publish(const std::string &name, uint64_t version, const std::byte *bytes,
                        size_t count) {
  if (!is_name(name)) return Status::bad_name;
  const auto found = messages_.find(name);
  if (found != messages_.end() && version <= found->second->version) return Status::bad_version;
  const uint64_t replaced = found == messages_.end() ? 0 : found->second->bytes.size();
  if (found == messages_.end() && messages_.size() >= most_names_) return Status::limit;
  if (count > most_bytes_ - (bytes_ - replaced)) return Status::limit;
  try {
    auto message = std::make_shared<Message>();
    message->version = version;
    message->bytes.assign(bytes, bytes + count);
    messages_[name] = std::move(message);
  } catch (const std::bad_alloc &) {
    return Status::out_of_memory;
  }
  bytes_ += count - replaced;
  return Status::ok;
}

Status Mailbox::fetch(const std::string &name, uint64_t newer_than, bool any,
                      std::shared_ptr<const Message> *message) const {
  const auto found = messages_.find(name);
  if (found == messages_.end() || (!any && found->second->version <= newer_than))
    return Status::none_newer;
  *message = found->second;
  return Status::ok;
}

bool Mailbox::remove(const std::string &name) {
  const auto found = messages_.find(name);
  if (found == messages_.end()) return false;
  bytes_ -= found->second->bytes.size();
  messages_.erase(found);
  return true;
}

}  // namespace accel_rl::replay
