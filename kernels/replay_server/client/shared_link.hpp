// A client's side of memory that a server on this machine shares with it.

#ifndef ACCEL_RL_REPLAY_CLIENT_SHARED_LINK_HPP
#define ACCEL_RL_REPLAY_CLIENT_SHARED_LINK_HPP

#include <memory>
#include <string>

#include "../transport/shared_layout.hpp"
#include "byte_link.hpp"

namespace accel_rl::replay {

class SharedLink : public ByteLink {
 public:
  // To the server whose socket is at `path`. `busy`: looks for a reply again and again, which takes
  // a core, instead of sleeping until it is there. `timeout_us` is for what the server has to do;
  // `keep_waiting` is asked when a signal came. Null with `why`.
  static std::unique_ptr<SharedLink> open(const std::string &path, bool busy, uint64_t timeout_us,
                                          const KeepWaiting &keep_waiting, std::string *why);
  ~SharedLink() override;
  SharedLink(const SharedLink &) = delete;
  SharedLink &operator=(const SharedLink &) = delete;

 protected:
  ssize_t put(const uint8_t *from, size_t count) override;
  ssize_t take(uint8_t *to, size_t room) override;
  Fault wait(bool to_put, Deadline *deadline) override;

 private:
  SharedLink(int file, void *memory, uint64_t ring_bytes, bool busy);

  bool ready(bool to_put) { return to_put ? requests_.room() > 0 : replies_.held() > 0; }
  bool spin(bool to_put);
  void wake_server(uint32_t wanted);
  bool hung_up() const;

  int file_;
  SharedWords *words_;
  size_t bytes_;
  bool busy_;
  RingWriter requests_;
  RingReader replies_;
};

}  // namespace accel_rl::replay

#endif
