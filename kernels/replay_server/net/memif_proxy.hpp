// Proxy of a server's memif socket. DPDK 22.11 ends the whole process if a client connects to
// its listener and is gone before that has greeted it, so clients connect here: a thread passes on
// what both say, and stays with DPDK's listener until it has its greeting.

#ifndef ACCEL_RL_REPLAY_NET_MEMIF_PROXY_HPP
#define ACCEL_RL_REPLAY_NET_MEMIF_PROXY_HPP

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace accel_rl::replay {

class MemifProxy {
 public:
  // Listens at `path`, which only this user may open. All who have the same path share one. Null
  // with `why`.
  static std::shared_ptr<MemifProxy> at(const std::string &path, std::string *why);
  // After the last port of DPDK's behind it is gone.
  ~MemifProxy();
  MemifProxy(const MemifProxy &) = delete;
  MemifProxy &operator=(const MemifProxy &) = delete;

  // Where DPDK has to listen: in a folder of this user's beside `path`.
  const std::string &inner() const { return inner_; }

  static constexpr size_t most_path_bytes = 100;

 private:
  struct Pair {
    int client = -1, dpdk = -1;  // no client: it is gone
    bool greeted = false;
  };

  explicit MemifProxy(const std::string &path);
  bool open(std::string *why);
  void run();
  void accept_client();
  bool serve(Pair *pair, bool of_client, bool of_dpdk);

  const std::string path_, folder_, inner_;
  const pid_t owner_;
  int listener_ = -1, end_ = -1;
  bool bound_ = false, private_ = false;
  std::vector<Pair> pairs_;
  std::thread thread_;
};

}  // namespace accel_rl::replay

#endif
