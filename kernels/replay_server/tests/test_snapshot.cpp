// Snapshots: the state when they began, whatever changes meanwhile; and every kind of damage.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "cases.hpp"
#include "crc32c.hpp"
#include "snapshot.hpp"

using namespace cases;

static uint64_t state = 0x5EED;
static std::string path;

static std::vector<std::byte> read_file() {
  FILE *file = fopen(path.c_str(), "rb");
  if (!file) abort();
  std::vector<std::byte> bytes(1 << 22);
  bytes.resize(fread(bytes.data(), 1, bytes.size(), file));
  fclose(file);
  return bytes;
}

static void write_file(const std::vector<std::byte> &bytes) {
  FILE *file = fopen(path.c_str(), "wb");
  if (!file) abort();
  if (!bytes.empty() && fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) abort();
  fclose(file);
}

static void change(Table *changed, int32_t first) {
  const auto count = static_cast<uint32_t>(random_between(&state, 1, 300));
  std::vector<float> priorities(count);
  for (float &priority : priorities)
    priority = static_cast<float>(random_between(&state, 0, 100)) / 7;
  push(changed, count, first, random_between(&state, 0, 1) ? priorities.data() : nullptr);
  Drawn drawn(100);
  UpdateCounts counts;
  if (changed->sample(random_bits(&state), 100, &drawn.out) != Status::ok) return;
  std::vector<float> errors(100);
  for (float &error : errors) error = static_cast<float>(random_between(&state, 0, 9));
  changed->update(100, drawn.slots.data(), drawn.generations.data(), errors.data(), &counts);
}

// Whether two tables answer alike from now on.
static void check_alike(Table *a, Table *b) {
  CHECK(a->config() == b->config() && a->total() == b->total(), "totals %g and %g", a->total(),
        b->total());
  for (int round = 0; round < 3; ++round) {
    Drawn one(200), other(200);
    const uint64_t seed = random_bits(&state);
    const Status status = a->sample(seed, 200, &one.out);
    CHECK(b->sample(seed, 200, &other.out) == status && same(one, other), "samples differ");
    push(a, 30, round, nullptr), push(b, 30, round, nullptr);
  }
  Stats first = a->stats(), second = b->stats();
  first.ages = second.ages = 0;  // which no snapshot has
  CHECK(memcmp(&first, &second, sizeof first) == 0, "statistics differ");
}

// Several tables and a mailbox, written in slices between which everything changes.
static void test_states(uint32_t capacity) {
  std::vector<std::unique_ptr<Table>> tables, twins;
  std::vector<Table *> plain;
  for (const Sampler sampler : {Sampler::prioritised, Sampler::uniform, Sampler::amper_fr}) {
    TableConfig wanted = config(sampler, capacity);
    tables.push_back(table(wanted)), twins.push_back(table(wanted));
    plain.push_back(tables.back().get());
  }
  Mailbox mailbox(1 << 20, 4);
  const std::vector<std::byte> large(600000, std::byte{7});
  mailbox.publish("weights", 3, large.data(), large.size());
  mailbox.publish("empty", 0, nullptr, 0);
  for (size_t k = 0; k < tables.size(); ++k)
    for (int32_t round = 0; round < 20; ++round) {
      const uint64_t before = state;
      change(tables[k].get(), round);
      state = before;
      change(twins[k].get(), round);
    }
  std::string why;
  SnapshotWriter writer, second;
  CHECK(writer.begin(path, plain, &mailbox, &why) == Status::ok, "%s", why.c_str());
  CHECK(second.begin(path, plain, &mailbox, &why) == Status::busy, "two at a time");
  CHECK(second.begin(path, {}, &mailbox, &why) == Status::busy, "two into one file");
  mailbox.publish("weights", 4, nullptr, 0);
  while (!writer.written()) {
    for (const auto &each : tables) change(each.get(), -1);
    CHECK(writer.step(1, &why) == Status::ok, "%s", why.c_str());
  }
  for (const auto &each : tables) change(each.get(), -2);
  CHECK(writer.finish(&why) == Status::ok, "%s", why.c_str());
  std::vector<std::unique_ptr<Table>> restored;
  Mailbox read(1 << 20, 4);
  CHECK(restore_snapshot(path, 1 << 30, &restored, &read, &why) == Status::ok, "%s", why.c_str());
  CHECK(restored.size() == 3, "%zu tables", restored.size());
  for (size_t k = 0; k < restored.size(); ++k) check_alike(twins[k].get(), restored[k].get());
  std::shared_ptr<const Message> message;
  CHECK(read.fetch("weights", 0, true, &message) == Status::ok && message->version == 3 &&
            message->bytes == large,
        "another message");
  CHECK(read.messages().size() == 2, "%zu messages", read.messages().size());
  CHECK(restore_snapshot(path, 100, &restored, &read, &why) == Status::limit, "a cap on bytes");
  Mailbox small(10, 4);
  CHECK(restore_snapshot(path, 1 << 30, &restored, &small, &why) == Status::limit, "on messages");
}

static void save(Table *saved, const Mailbox *mailbox) {
  SnapshotWriter writer;
  std::string why;
  CHECK(writer.begin(path, {saved}, mailbox, &why) == Status::ok, "%s", why.c_str());
  CHECK(writer.step(SIZE_MAX / 2, &why) == Status::ok && writer.written(), "%s", why.c_str());
  CHECK(writer.finish(&why) == Status::ok, "%s", why.c_str());
}

static Status restore(std::string *why) {
  std::vector<std::unique_ptr<Table>> tables;
  Mailbox mailbox(1000, 4);
  const Status status = restore_snapshot(path, 1 << 30, &tables, &mailbox, why);
  CHECK((status == Status::ok) == (tables.size() == 1), "tables of a file that is refused");
  CHECK(status == Status::ok || mailbox.messages().empty(), "messages of a file that is refused");
  return status;
}

static void test_damage() {
  const auto made = table(config(Sampler::prioritised, 50));
  push(made.get(), 40, 0, nullptr);
  Mailbox mailbox(1000, 4);
  const std::byte data[20] = {};
  mailbox.publish("weights", 3, data, sizeof data);
  save(made.get(), &mailbox);
  const std::vector<std::byte> right = read_file();
  std::string why;
  CHECK(restore(&why) == Status::ok, "%s", why.c_str());
  for (size_t k = 0; k < right.size(); ++k) {
    std::vector<std::byte> wrong = right;
    wrong[k] ^= static_cast<std::byte>(1 << (k % 8));
    write_file(wrong);
    CHECK(restore(&why) == Status::damaged && !why.empty(), "byte %zu: %s", k, why.c_str());
  }
  for (size_t k = 0; k < right.size(); ++k) {
    write_file({right.begin(), right.begin() + static_cast<ptrdiff_t>(k)});
    CHECK(restore(&why) == Status::truncated, "%zu bytes: %s", k, why.c_str());
  }
  std::vector<std::byte> wrong = right;
  wrong.push_back(std::byte{0}), write_file(wrong);
  CHECK(restore(&why) == Status::damaged, "a byte too many");
  wrong = right, wrong[8] = std::byte{3};
  const uint32_t sum = crc32c(wrong.data(), 20);
  memcpy(wrong.data() + 20, &sum, 4), write_file(wrong);
  CHECK(restore(&why) == Status::newer_format, "%s", why.c_str());
  unlink(path.c_str());
  CHECK(restore(&why) == Status::io_error, "no file");
}

static bool exists(const std::string &name) {
  struct stat found;
  return stat(name.c_str(), &found) == 0;
}

static void test_giving_up() {
  const auto made = table(config(Sampler::prioritised, 50));
  push(made.get(), 40, 0, nullptr);
  save(made.get(), nullptr);
  const std::vector<std::byte> before = read_file();
  {
    SnapshotWriter writer;
    std::string why;
    push(made.get(), 5, 100, nullptr);
    CHECK(writer.begin(path, {made.get()}, nullptr, &why) == Status::ok, "%s", why.c_str());
    CHECK(writer.finish(&why) == Status::io_error, "finished before it is complete");
    CHECK(exists(path + ".partial"), "there is no partial file");
  }
  CHECK(read_file() == before && !exists(path + ".partial"), "something is left");
  SnapshotWriter writer;
  std::string why;
  CHECK(writer.begin("/nowhere/at/all", {made.get()}, nullptr, &why) == Status::io_error &&
            why.find("/nowhere/at/all") != std::string::npos,
        "%s", why.c_str());
  save(made.get(), nullptr);
  CHECK(read_file() != before, "the snapshot is not new");
}

int main() {
  char folder[] = "/tmp/accel_rl_snapshot_XXXXXX";
  if (!mkdtemp(folder)) return 1;
  path = std::string(folder) + "/snapshot";
  test_states(1000);
  test_states(30000);
  test_damage();
  test_giving_up();
  unlink(path.c_str());
  rmdir(folder);
  return finish();
}
