// Snapshots on a disk that is slow, or full: service goes on, and an older snapshot stays.

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "cases.hpp"
#include "snapshots.hpp"

using namespace cases;

static std::atomic<int> writes_until_full{-1};  // below 0: never
static std::atomic<bool> slow{false};
static std::atomic<int> writes_here{0};  // by the thread that serves
static const std::thread::id serving = std::this_thread::get_id();

extern "C" ssize_t __real_write(int file, const void *bytes, size_t count);
extern "C" ssize_t __wrap_write(int file, const void *bytes, size_t count) {
  if (count > 1000 && std::this_thread::get_id() == serving) ++writes_here;
  if (slow && count > 1000) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  if (writes_until_full > 0) {
    --writes_until_full;
  } else if (writes_until_full == 0) {
    errno = ENOSPC;
    return -1;
  }
  return __real_write(file, bytes, count);
}

static std::string path;

// How the snapshot ended.
static Status save(Snapshots *snapshots, Table *saved) {
  std::string why;
  const Status begun = snapshots->begin(path, 1, 1, {saved}, nullptr, &why);
  if (begun != Status::ok) return begun;
  CHECK(snapshots->begin(path, 1, 1, {saved}, nullptr, &why) == Status::busy, "two at a time");
  while (!snapshots->work())
    if (!snapshots->writing()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto end = snapshots->last();
  CHECK((end->status == Status::ok) == end->why.empty(), "why: %s", end->why.c_str());
  return end->status;
}

static uint32_t restored_size() {
  std::vector<std::unique_ptr<Table>> tables;
  std::string why;
  const Status status = restore_snapshot(path, 1 << 30, &tables, nullptr, &why);
  CHECK(status == Status::ok, "%s", why.c_str());
  return status == Status::ok ? tables[0]->size() : 0;
}

static bool is_partial() {
  struct stat found;
  return stat((path + ".partial").c_str(), &found) == 0;
}

int main() {
  char folder[] = "/tmp/accel_rl_slow_disk_XXXXXX";
  if (!mkdtemp(folder)) return 1;
  path = std::string(folder) + "/snapshot";
  const uint32_t capacity = 800000;  // half of it is 6 MB: more than is queued
  const auto made = table(config(Sampler::prioritised, capacity));
  push(made.get(), capacity / 2, 0, nullptr);
  {
    Snapshots snapshots;
    slow = true;
    CHECK(save(&snapshots, made.get()) == Status::ok, "a slow disk");
    slow = false;
    CHECK(restored_size() == capacity / 2, "what the slow disk has");
    push(made.get(), 1000, 0, nullptr);
    writes_until_full = 3;
    CHECK(save(&snapshots, made.get()) == Status::io_error, "a full disk");
    CHECK(!is_partial() && restored_size() == capacity / 2, "the older snapshot");
    writes_until_full = -1;
    CHECK(save(&snapshots, made.get()) == Status::ok, "after it was full");
    CHECK(restored_size() == capacity / 2 + 1000, "the newer snapshot");
    slow = true;
    push(made.get(), 1000, 0, nullptr);
    std::string why;
    CHECK(snapshots.begin(path, 1, 1, {made.get()}, nullptr, &why) == Status::ok, "%s",
          why.c_str());
    snapshots.work();
  }  // given up in the middle
  CHECK(writes_here == 0, "service waited for the disk %d times", writes_here.load());
  CHECK(!is_partial() && restored_size() == capacity / 2 + 1000, "after it was given up");
  unlink(path.c_str());
  rmdir(folder);
  return finish();
}
