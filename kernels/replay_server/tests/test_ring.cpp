// The ring through which processes talk: a thread at each end, and positions that cannot be.

#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "random.hpp"
#include "ring.hpp"

using namespace accel_rl::replay;

static uint8_t byte_at(uint64_t position) {
  return static_cast<uint8_t>((position * 0x9E3779B97F4A7C15) >> 56);
}

// Every byte comes once, in its order, whatever the two ends do at once.
static void test_two_ends() {
  constexpr size_t size = 256, total = 300000;
  auto positions = std::make_unique<RingPositions>();
  std::vector<uint8_t> bytes(size);
  std::thread writer([&] {
    RingWriter ring(positions.get(), bytes.data(), size);
    uint64_t state = 1, at = 0;
    std::vector<uint8_t> part(2 * size);
    while (at < total) {
      const size_t count = std::min<uint64_t>(1 + random_bits(&state) % part.size(), total - at);
      for (size_t k = 0; k < count; ++k) part[k] = byte_at(at + k);
      for (size_t done = 0; done < count;) {
        done += ring.write(part.data() + done, count - done);
        if (done < count) std::this_thread::yield();
      }
      at += count;
    }
    CHECK(!ring.broken(), "the writer sees a broken ring");
  });
  RingReader ring(positions.get(), bytes.data(), size);
  uint64_t state = 2, at = 0, wrong = 0;
  std::vector<uint8_t> part(2 * size);
  while (at < total) {
    const size_t got = ring.read(part.data(), 1 + random_bits(&state) % part.size());
    for (size_t k = 0; k < got; ++k) wrong += part[k] != byte_at(at + k);
    at += got;
    if (got == 0) std::this_thread::yield();
  }
  writer.join();
  CHECK(wrong == 0 && !ring.broken() && ring.held() == 0, "%d wrong bytes",
        static_cast<int>(wrong));
}

// A position beyond what can be moves nothing, ever again.
static void test_broken() {
  constexpr size_t size = 64;
  for (const uint64_t wrong : {uint64_t{size + 5}, ~uint64_t{200}, uint64_t{1} << 63}) {
    RingPositions positions = {};
    std::vector<uint8_t> bytes(size), other(4 * size);
    RingReader reader(&positions, bytes.data(), size);
    RingWriter writer(&positions, bytes.data(), size);
    CHECK(writer.write(other.data(), 10) == 10 && reader.read(other.data(), 4) == 4, "good");
    positions.written = wrong, positions.read = wrong;
    CHECK(reader.held() == 0 && reader.read(other.data(), other.size()) == 0, "read");
    CHECK(writer.room() == 0 && writer.write(other.data(), other.size()) == 0, "written");
    positions.written = 10, positions.read = 4;
    CHECK(reader.broken() && writer.broken(), "it was mended");
    CHECK(reader.read(other.data(), 1) == 0 && writer.write(other.data(), 1) == 0, "moved");
  }
}

int main() {
  test_two_ends();
  test_broken();
  return finish();
}
