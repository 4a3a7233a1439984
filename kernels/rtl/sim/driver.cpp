// Drives a simulated design from a file of requests and writes a file of responses.
//
//   simulate REQUESTS RESPONSES [WORDS]
//
// Files hold native 64-bit words. A request is 6 of them: operation, a, b, c, the clocks to wait
// before it is offered, and the clocks for which its response is not taken. Operation 255 asserts
// reset for `a` clocks, whatever is under way. A response is 6 + WORDS: the clocks in which the
// request was taken and the response given (0 and 0 where reset lost it), x, y, z, 0, then WORDS
// words of 32 match lines. Clocks are counted from 1. The exit status is 1 where the design hangs
// or changes a response that waits.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "Vport.h"
#include "verilated.h"

namespace {

constexpr size_t fields = 6;
constexpr uint64_t reset_operation = 255, patience = 1u << 22;

[[noreturn]] void fail(const char *what, const char *more = "") {
  std::fprintf(stderr, "simulate: %s%s\n", what, more);
  std::exit(1);
}

std::vector<uint64_t> read_words(const char *path) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path, "rb"), std::fclose);
  if (!file) fail("cannot read ", path);
  std::vector<uint64_t> words;
  uint64_t buffer[4096];
  while (size_t n = std::fread(buffer, sizeof *buffer, 4096, file.get()))
    words.insert(words.end(), buffer, buffer + n);
  if (words.size() % fields) fail("requests must be of 6 words each: ", path);
  return words;
}

struct shown {
  uint64_t x, y, z;
  bool operator!=(const shown &o) const { return x != o.x || y != o.y || z != o.z; }
};

class simulation {
 public:
  simulation(std::vector<uint64_t> requests, size_t words)
      : requests_(std::move(requests)),
        count_(requests_.size() / fields),
        width_(fields + words),
        responses_(count_ * width_) {
    port_.clock = 0;
    reset(2);
  }

  const std::vector<uint64_t> &run() {
    while (next_ < count_ || !waiting_.empty()) {
      const uint64_t *request = &requests_[next_ * fields];
      if (next_ < count_ && request[0] == reset_operation) {
        waiting_.clear();
        next_++;
        reset(request[1]);
      } else {
        step(next_ < count_ ? request : nullptr);
      }
    }
    return responses_;
  }

 private:
  void reset(uint64_t clocks) {
    port_.reset = 1;
    port_.request_valid = 0;
    port_.response_ready = 0;
    while (clocks--) tick();
    port_.reset = 0;
    waited_ = held_ = 0;
  }

  void tick() {
    port_.eval();
    port_.clock = 1;
    port_.eval();
    port_.clock = 0;
    clock_++;
  }

  void step(const uint64_t *request) {
    bool offered = request && waited_ >= request[4];
    port_.request_valid = offered;
    if (offered) {
      port_.operation = request[0];
      port_.a = request[1];
      port_.b = request[2];
      port_.c = request[3];
    }
    port_.response_ready = !waiting_.empty() && held_ >= requests_[waiting_.front() * fields + 5];
    port_.eval();
    if (port_.response_valid) take_response();
    if (offered && port_.request_ready) {
      responses_[next_ * width_] = clock_;
      waiting_.push_back(next_++);
      waited_ = 0;
      quiet_ = 0;
    } else if (request && !offered) {
      waited_++;
    }
    if (++quiet_ > patience) fail("the design neither takes a request nor responds");
    tick();
  }

  void take_response() {
    if (waiting_.empty()) fail("a response to no request");
    shown now{port_.x, port_.y, port_.z};
    if (held_ && now != held_response_) fail("a response changed while it waited");
    held_response_ = now;
    held_++;
    if (!port_.response_ready) return;
    uint64_t *out = &responses_[waiting_.front() * width_];
    out[1] = clock_;
    out[2] = now.x;
    out[3] = now.y;
    out[4] = now.z;
    for (size_t word = 0; word + fields < width_; word++) {
      port_.select = word;
      port_.eval();
      out[fields + word] = port_.word;
    }
    waiting_.pop_front();
    held_ = 0;
    quiet_ = 0;
  }

  Vport port_;
  std::vector<uint64_t> requests_;
  size_t count_, width_, next_ = 0;
  std::vector<uint64_t> responses_;
  std::deque<size_t> waiting_;
  shown held_response_{};
  uint64_t clock_ = 1, waited_ = 0, held_ = 0, quiet_ = 0;
};

}  // namespace

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4) fail("usage: simulate REQUESTS RESPONSES [WORDS]");
  // Registers start at random, so that what reset forgets shows.
  Verilated::randReset(2);
  Verilated::randSeed(1);
  simulation all(read_words(argv[1]), argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0);
  const std::vector<uint64_t> &responses = all.run();
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(argv[2], "wb"), std::fclose);
  if (!file || std::fwrite(responses.data(), 8, responses.size(), file.get()) != responses.size())
    fail("cannot write ", argv[2]);
}
