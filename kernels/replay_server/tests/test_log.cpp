// What a server has after it was killed: all that was logged, whatever snapshots are there; and
// every kind of damage.

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "frames.hpp"

using namespace frames;
namespace files = std::filesystem;

static std::atomic<bool> is_full{false}, is_stuck{false};

extern "C" ssize_t __real_write(int file, const void *bytes, size_t count);
extern "C" ssize_t __wrap_write(int file, const void *bytes, size_t count) {
  while (is_stuck) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!is_full || count < 8) return __real_write(file, bytes, count);
  errno = ENOSPC;
  return -1;
}

static uint64_t state = 0x5EED;
static files::path folder;

// Removed after the servers that write there are gone.
struct Folder {
  Folder() { files::create_directory(folder); }
  ~Folder() { files::remove_all(folder); }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
};

static const auto nobody = [](Peer &, FrameBuffer &) {};

static Settings logged(uint32_t snapshots = 1) {
  Settings made = settings();
  made.snapshot_path = folder / "snapshot";
  made.snapshots = snapshots;
  made.log = true, made.log_ms = 5;
  made.sessions = 4;
  return made;
}

static std::vector<std::string> recover(Talk *talk, Status wanted = Status::ok) {
  std::vector<std::string> notes;
  std::string why;
  const Status status = talk->handler.recover(&notes, &why);
  CHECK(status == wanted, "%d: %s", static_cast<int>(status), why.c_str());
  return notes;
}

static void snapshot(Talk *talk) {
  talk->handler.log().flush();  // or a segment is made after those that nobody needs were removed
  std::string why;
  CHECK(talk->handler.begin_snapshot(&why) == Status::ok, "%s", why.c_str());
  const auto end = talk->handler.snapshots().last();
  while (talk->handler.snapshots().active()) talk->handler.serve_waiting(talk->now_ms, nobody);
  CHECK(end->status == Status::ok, "%s", end->why.c_str());
}

static Request named(Op op, const std::string &name, uint64_t version) {
  const uint32_t value = 77;
  const auto name_bytes = static_cast<uint16_t>(name.size());
  Request request(op);
  if (op == Op::publish) {
    request.set(field::publish::version, version).set(field::publish::value_bytes, 4);
    request.set(field::publish::name_bytes, name_bytes);
  } else {
    request.set(field::remove::message, version > 0).set(field::remove::name_bytes, name_bytes);
  }
  request.section(name.data(), name.size());
  if (op == Op::publish) request.section(&value, 4);
  return request;
}

// A request of any kind, often one that is refused.
static Request any() {
  const auto table = static_cast<uint16_t>(random_between(&state, 0, 2));
  const auto count = random_between(&state, 1, 12);
  const std::string name(1, static_cast<char>('a' + random_between(&state, 0, 2)));
  std::vector<int32_t> items;
  std::vector<float> priorities;
  std::vector<uint32_t> slots, generations;
  for (int64_t k = 0; k < count; ++k) {
    items.push_back(static_cast<int32_t>(random_between(&state, 0, 1000)));
    priorities.push_back(static_cast<float>(random_between(&state, 0, 50)) / 7);
    slots.push_back(static_cast<uint32_t>(random_between(&state, 0, 9)));
    generations.push_back(static_cast<uint32_t>(random_between(&state, 1, 3)));
  }
  Request made(Op::ping);
  switch (random_between(&state, 0, 9)) {
    case 0:
      return named(Op::publish, name, random_between(&state, 0, 30));
    case 1:
      return random_between(&state, 0, 5) > 0
                 ? named(Op::publish, name, 31)
                 : named(Op::remove, name, random_between(&state, 0, 1));
    case 2:
    case 3:
      made = sample(random_bits(&state), static_cast<uint32_t>(count));
      break;
    case 4:
    case 5:
      made = update(slots, generations, priorities);
      break;
    case 6:
      return opening(static_cast<uint32_t>(random_between(&state, 9, 10)), {}, name.c_str());
    default:
      made = push(items, random_between(&state, 0, 1) ? priorities : std::vector<float>());
  }
  made.set(field::header::table, table);
  return made;
}

// Whether two servers hold the same, and answer alike.
static void check_alike(Talk *a, Talk *b) {
  const auto &ours = a->handler.tables(), &theirs = b->handler.tables();
  CHECK(ours.size() == theirs.size(), "%zu and %zu tables", ours.size(), theirs.size());
  for (size_t k = 0; k < std::min(ours.size(), theirs.size()); ++k) {
    CHECK(!ours[k] == !theirs[k], "table %zu is there once", k);
    if (!ours[k] || !theirs[k]) continue;
    Stats one = ours[k]->stats(), other = theirs[k]->stats();
    one.ages = other.ages = one.refused = other.refused = 0;  // no log has these
    CHECK(memcmp(&one, &other, sizeof one) == 0, "table %zu: statistics differ", k);
    for (int round = 0; round < 5; ++round) {
      Request request = sample(random_bits(&state), 8);
      request.set(field::header::table, static_cast<uint16_t>(k));
      const Status status = a->send(request);
      CHECK(b->send(request) == status, "table %zu: samples are answered differently", k);
      const size_t bytes = a->reply.size();
      CHECK(bytes == b->reply.size() &&
                memcmp(a->reply.data() + body_offset, b->reply.data() + body_offset,
                       bytes - body_offset) == 0,
            "table %zu: samples differ", k);
    }
  }
  for (const char *name : {"a", "b", "c"}) {
    Request request(Op::fetch);
    request.set(field::fetch::any, 1).set(field::fetch::name_bytes, 1).section(name, 1);
    const Status status = a->send(request);
    CHECK(b->send(request) == status, "message %s is there once", name);
    CHECK(a->get(field::fetch_reply::version) == b->get(field::fetch_reply::version), "%s", name);
  }
}

static Status resume(Talk *talk) {
  Request request(Op::hello);
  return talk->send(request.set(field::hello::resume, first_token));
}

// A server that ends and begins anew at any time, and one that never does.
static void test_histories(uint32_t snapshots) {
  const Folder made;
  auto talk = std::make_unique<Talk>(logged(snapshots));
  CHECK(recover(talk.get()).empty(), "notes of nothing");
  Talk twin;
  talk->hello(), twin.hello();
  for (int round = 0; round < 3000; ++round) {
    Request request = any();
    const Status status = twin.send(request);
    CHECK(talk->send(request) == status, "round %d: other answers", round);
    if (random_between(&state, 0, 200) == 0) snapshot(talk.get());
    if (random_between(&state, 0, 200) > 0) continue;
    const uint64_t next = talk->next;
    talk.reset();
    talk = std::make_unique<Talk>(logged(snapshots));
    const auto notes = recover(talk.get());
    CHECK(notes.empty(), "%s", notes[0].c_str());
    talk->next = next;
    CHECK(resume(talk.get()) == Status::ok && talk->get(field::welcome::resumed) == 1, "forgotten");
    twin.next = talk->next;
    if (status == Status::ok && request.bytes.data()[5] != static_cast<uint8_t>(Op::sample)) {
      // What was answered is not done again.
      const Status again = talk->send(talk->peer, request.bytes.data(), request.bytes.size());
      CHECK(again == Status::ok, "a repeated request: %d", static_cast<int>(again));
    }
    check_alike(talk.get(), &twin);
  }
}

static std::vector<char> bytes_of(const files::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

static void write_bytes(const files::path &path, const std::vector<char> &bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
}

static uint64_t held(Talk *talk) {
  const auto &tables = talk->handler.tables();
  return tables.empty() ? 0 : tables[0]->stats().inserts;
}

// A table is on the disk when its client hears of it, whatever the interval.
static void test_a_new_table() {
  const Folder made;
  Settings slow = logged();
  slow.log_ms = 3600000;
  std::vector<char> killed;
  {
    Talk talk(slow);
    recover(&talk), talk.hello(), talk.open(10), talk.send(push({1}));
    killed = bytes_of(folder / "snapshot.log.0");
  }
  files::remove_all(folder), files::create_directory(folder);
  write_bytes(folder / "snapshot.log.0", killed);
  Talk again(slow);
  recover(&again);
  CHECK(again.handler.tables().size() == 1 && held(&again) == 0, "%zu tables, %zu items",
        again.handler.tables().size(), held(&again));
}

// Who asks for a new table waits for the disk, and nobody else does.
static void test_a_disk_that_hangs() {
  const Folder made;
  Talk talk(logged());
  recover(&talk), talk.hello();
  Peer second;
  Request hello(Op::hello);
  talk.send(second, hello.bytes.data(), hello.bytes.size());
  is_stuck = true;
  const auto opens = [&](Peer &peer) {
    Request request = opening(10);
    request.session(peer.session->token).number(1000);
    Frame frame;
    frame_of(request.bytes.data(), request.bytes.size(), UINT32_MAX, &frame);
    return talk.handler.handle(peer, frame, &talk.reply, talk.now_ms);
  };
  CHECK(opens(talk.peer) == Outcome::waits && opens(second) == Outcome::waits, "it is not there");
  CHECK(talk.handler.statistics().waiting == 2, "two wait");
  CHECK(talk.send(Request(Op::ping)) == Status::ok, "a neighbour");
  talk.handler.disconnect(second, talk.now_ms);
  int told = 0;
  const auto deliver = [&](Peer &peer, FrameBuffer &frame) {
    told += &peer == &talk.peer ? 1 : 100;
    CHECK(get(frame.data(), field::header::status) == 0, "no table");
  };
  talk.handler.serve_waiting(talk.now_ms, deliver);
  CHECK(told == 0, "it is told before the disk has it");
  is_stuck = false;
  while (talk.handler.awaits_disk()) talk.handler.serve_waiting(talk.now_ms, deliver);
  CHECK(told == 1 && talk.handler.statistics().waiting == 0, "told %d times", told);
}

// Items are pushed one in a group: whatever is wrong with a byte, those before it are there.
static void test_damage() {
  const Folder made;
  constexpr uint64_t pushed = 5;
  {
    Talk talk(logged());
    recover(&talk), talk.hello(), talk.open(100);
    for (uint64_t k = 0; k < pushed; ++k) {
      talk.send(push({1}));
      std::this_thread::sleep_for(std::chrono::milliseconds(15));
    }
  }
  const files::path segment = folder / "snapshot.log.0";
  const std::vector<char> right = bytes_of(segment);
  const auto check = [&](const std::vector<char> &wrong, size_t at, bool is_cut) {
    files::remove_all(folder), files::create_directory(folder);
    write_bytes(segment, wrong);
    uint64_t first = 0;
    {
      Talk talk(logged());
      const auto notes = recover(&talk);
      first = held(&talk);
      CHECK(!notes.empty() || (is_cut && first < pushed), "byte %zu: nothing is said", at);
      CHECK(first * right.size() <= (at + 1) * (pushed + 1), "byte %zu: %zu held", at, first);
      CHECK(is_cut || files::exists(segment.string() + ".damaged"), "byte %zu: no copy", at);
      talk.next = 100;
      resume(&talk), talk.open(100);
      CHECK(talk.send(push({2})) == Status::ok, "byte %zu: no push", at);
    }
    Talk again(logged());  // what came after it is there, too
    const auto notes = recover(&again);
    CHECK(notes.empty() && held(&again) == first + 1, "byte %zu: %s", at,
          notes.empty() ? "lost" : notes[0].c_str());
  };
  for (size_t k = 0; k < right.size(); k += k < file_head_bytes ? 3 : 7) {
    std::vector<char> wrong = right;
    wrong[k] = static_cast<char>(wrong[k] ^ 1 << (k % 8));
    check(wrong, k, false);
    check({right.begin(), right.begin() + static_cast<long>(k)}, k, true);
  }
}

// A snapshot that is damaged: the one before it and the log have the same.
static void test_generations() {
  const Folder made;
  Talk twin;
  {
    Talk talk(logged(2));
    recover(&talk);
    for (Talk *each : {&talk, &twin}) each->hello(), each->open(10);
    for (int round = 0; round < 4; ++round) {
      for (int32_t k = 0; k < 7; ++k) CHECK(talk.send(push({k})) == twin.send(push({k})), "pushes");
      if (round < 3) snapshot(&talk);
    }
  }
  CHECK(!files::exists(folder / "snapshot.2") && !files::exists(folder / "snapshot.log.1"), "kept");
  std::vector<char> wrong = bytes_of(folder / "snapshot");
  wrong[wrong.size() / 2] = static_cast<char>(wrong[wrong.size() / 2] ^ 1);
  write_bytes(folder / "snapshot", wrong);
  {
    Talk talk(logged(2));
    const auto notes = recover(&talk);
    CHECK(notes.size() == 1 && files::exists(folder / "snapshot.damaged"), "%zu notes",
          notes.size());
    talk.next = twin.next;
    CHECK(resume(&talk) == Status::ok, "not resumed");
    twin.next = talk.next;
    check_alike(&talk, &twin);
  }
  // Without the first segment that it needs, nothing of the log fits.
  files::remove(folder / "snapshot.log.2");
  {
    Talk talk(logged(2));
    const auto notes = recover(&talk);
    CHECK(notes.size() == 2 && held(&talk) == 14, "%zu notes, %zu held", notes.size(), held(&talk));
  }
  // The only snapshot is damaged, and the log begins after it.
  files::remove_all(folder), files::create_directory(folder);
  write_bytes(folder / "snapshot", wrong);
  Talk none(logged());
  recover(&none, Status::damaged);
  CHECK(files::exists(folder / "snapshot"), "it was set aside, though nothing replaces it");
}

// A full disk: changes are refused until a snapshot has what was not written.
static void test_full_disk() {
  const Folder made;
  uint64_t pushed = 0;
  {
    Talk talk(logged());
    recover(&talk), talk.hello(), talk.open(100);
    talk.send(push({1}));
    is_full = true;
    for (int k = 0; k < 1000 && talk.send(push({2})) == Status::ok; ++k)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(talk.send(push({3})) == Status::limit, "it is taken");
    CHECK(talk.send(sample(1, 2)) == Status::ok, "samples change nothing");
    is_full = false;
    talk.now_ms += 10000;
    CHECK(talk.send(push({4})) == Status::limit, "it is taken before there is a snapshot");
    while (talk.handler.snapshots().active()) talk.handler.serve_waiting(talk.now_ms, nobody);
    CHECK(talk.send(push({5})) == Status::ok, "it is refused after there is a snapshot");
    CHECK(files::exists(folder / "snapshot"), "no snapshot");
    pushed = held(&talk);
  }
  Talk again(logged());
  CHECK(recover(&again).empty() && held(&again) == pushed, "%zu held", held(&again));
}

// A log that has grown long is replaced by a snapshot.
static void test_long_log() {
  const Folder made;
  Settings wanted = logged();
  wanted.log_bytes = 10000;
  Talk talk(wanted);
  recover(&talk), talk.hello(), talk.open(1000);
  for (int k = 0; k < 1000; ++k) {
    talk.send(push({k}));
    if (talk.handler.pending()) talk.handler.serve_waiting(talk.now_ms, nobody);
  }
  while (talk.handler.snapshots().active()) talk.handler.serve_waiting(talk.now_ms, nobody);
  uint64_t bytes = 0;
  for (const auto &each : files::directory_iterator(folder))
    if (each.path().string().find(".log.") != std::string::npos) bytes += each.file_size();
  CHECK(talk.handler.statistics().snapshots > 0 && bytes < 60000, "%zu bytes", bytes);
}

// What nobody asks for is removed, and stays so.
static void test_unused() {
  const Folder made;
  Settings wanted = logged();
  wanted.unused_ms = 100;
  const auto check = [](Talk *talk) {
    const auto &tables = talk->handler.tables();
    CHECK(tables.size() == 3 && !tables[0] && tables[1] && tables[2], "%zu", tables.size());
    Request request(Op::fetch);
    request.set(field::fetch::any, 1).set(field::fetch::name_bytes, 1);
    CHECK(talk->send(request.section("a", 1)) == Status::none_newer, "message a");
    Request other(Op::fetch);
    other.set(field::fetch::any, 1).set(field::fetch::name_bytes, 1);
    CHECK(talk->send(other.section("b", 1)) == Status::ok, "message b");
  };
  {
    Talk talk(wanted);
    recover(&talk), talk.hello();
    for (const char *name : {"x", "y", "z"}) talk.open(9, {}, name);
    for (const char *name : {"a", "b"}) talk.send(named(Op::publish, name, 1));
    Request waits = sample(1, 2, 1000);
    talk.send(waits.set(field::header::table, 2));
    CHECK(talk.outcome == Outcome::waits, "a sample of an empty table");
    talk.now_ms += 60;
    talk.send(opening(9, {}, "y")), talk.send(named(Op::publish, "b", 2));
    talk.handler.expire_unused(talk.now_ms + 39);
    CHECK(talk.handler.tables()[0] != nullptr, "too early");
    talk.handler.expire_unused(talk.now_ms + 40);
    check(&talk);
  }
  Talk again(wanted);
  recover(&again), again.next = 100;
  resume(&again);
  check(&again);
}

int main() {
  char made[] = "/tmp/accel_rl_log_XXXXXX";
  if (!mkdtemp(made)) return 1;
  folder = files::path(made) / "server";
  test_histories(1);
  test_histories(3);
  test_a_new_table();
  test_a_disk_that_hangs();
  test_damage();
  test_generations();
  test_full_disk();
  test_long_log();
  test_unused();
  rmdir(made);
  return finish();
}
