// Clients and a server with a bad network between them: every request ends, and is done once.

#include "simulated.hpp"

using namespace simulated;

constexpr uint32_t rounds = 40;

// Pushes, samples, updates and pings of one datagram and of many.
static void fill(Client &client) {
  client.script.emplace_back(Op::hello);
  client.script.push_back(opening(20000));
  for (uint32_t k = 0; k < rounds; ++k) {
    const uint32_t count = k % 4 == 3 ? 9000 : 1 + k % 5;
    client.script.push_back(push(numbers(count, static_cast<int32_t>(k))));
    client.script.push_back(sample(k, k % 5 == 4 ? 3000 : 16));
    client.script.push_back(update({k % 3}, {1}, {1.5F}));
    client.script.emplace_back(Op::ping);
    if (k % 8 == 7) client.script.back().section(numbers(20000, 0).data(), 80000);
  }
}

static uint64_t pushed() {
  uint64_t items = 0;
  for (uint32_t k = 0; k < rounds; ++k) items += k % 4 == 3 ? 9000 : 1 + k % 5;
  return items;
}

static void test_bad_network(const char *name, Faults faults, uint32_t slice) {
  World world(17, faults);
  world.network.slice = slice;
  for (int k = 0; k < 3; ++k) {
    Client &client = world.add();
    fill(client);
    client.on_reply = [name](Client &each) {
      CHECK(each.status() == Status::ok, "%s: request %u gives %d", name,
            static_cast<unsigned>(each.done), static_cast<int>(each.status()));
    };
  }
  world.run();
  for (const auto &each : world.clients)
    CHECK(each->done == each->script.size() && each->caller.fault() == Fault::none,
          "%s: ends at request %u with fault %d", name, static_cast<unsigned>(each->done),
          static_cast<int>(each->caller.fault()));
  world.drain();
  const Stats stats = world.handler.tables()[0]->stats();
  CHECK(stats.inserts == 3 * pushed(), "%s: %u items were pushed", name,
        static_cast<unsigned>(stats.inserts));
  CHECK(stats.updates + stats.stale == 3 * rounds, "%s: %u updates", name,
        static_cast<unsigned>(stats.updates + stats.stale));
  CHECK(stats.samples == 3 * (rounds / 5 * 3000 + (rounds - rounds / 5) * 16), "%s: %u samples",
        name, static_cast<unsigned>(stats.samples));
  const DatagramCounts &counts = world.server.counts();
  CHECK((faults.lost == 0) == (world.network.lost == 0), "%s: the network is not so", name);
  CHECK(faults.doubled == 0 || counts.duplicates > 0, "%s: no duplicates are counted", name);
  if (faults.damaged > 0)
    CHECK(counts.bad_checksums > 0 && counts.malformed > 0, "%s: damage is not counted", name);
  CHECK(world.server.assembling_bytes() == 0, "%s: bytes are left", name);
}

// The replies are those of a handler that is asked directly.
static void test_same_bytes() {
  World world(3, {0.05, 0.05, 0.2, 0});
  Talk direct;
  Client &client = world.add();
  fill(client);
  std::vector<std::vector<uint8_t>> replies;
  client.on_reply = [&replies](Client &each) {
    const uint8_t *reply = each.caller.reply();
    replies.emplace_back(reply, reply + each.caller.reply_bytes());
  };
  world.run();
  CHECK(replies.size() == client.script.size(), "%u replies",
        static_cast<unsigned>(replies.size()));
  for (size_t k = 0; k < replies.size(); ++k) {
    direct.send(client.script[k]);
    CHECK(replies[k].size() == direct.reply.size() &&
              std::memcmp(replies[k].data(), direct.reply.data(), replies[k].size()) == 0,
          "reply %u is another one", static_cast<unsigned>(k));
  }
}

// Nobody answers: the fault comes in bounded time, whatever the client was doing.
static void test_blackout() {
  World silent(1, {1, 0, 0, 0});
  Client &client = silent.add();
  client.script.emplace_back(Op::hello);
  const uint64_t began = silent.network.now_us;
  silent.run();
  CHECK(client.caller.fault() == Fault::closed && client.done == 0, "it goes on");
  const uint64_t took = silent.network.now_us - began;
  CHECK(took > 3000000 && took < 7000000, "after %u ms", static_cast<unsigned>(took / 1000));

  World world(1, {});
  Client &other = world.add();
  LimiterConfig limiter;
  limiter.min_size = 10;
  other.script.emplace_back(Op::hello);
  other.script.push_back(opening(100, limiter));
  other.script.push_back(sample(1, 1, 3600000));
  world.run(60);
  CHECK(other.caller.waits(), "a request that waits is given up");
  world.dead = true;
  const uint64_t died = world.network.now_us;
  for (; other.caller.busy() && world.network.now_us < died + 60000000;) world.step();
  CHECK(other.caller.fault() == Fault::closed, "a dead server is waited for");
  CHECK(world.network.now_us - died < 8000000, "too long");
}

// A request waits as long as its client asks for it.
static void test_vanished() {
  World world(1, {});
  LimiterConfig limiter;
  limiter.min_size = 10;
  for (Client *each : {&world.add(), &world.add()}) {
    each->script.emplace_back(Op::hello);
    each->script.push_back(opening(100, limiter));
    each->script.push_back(sample(1, 1, 3600000));
  }
  world.run(100);
  CHECK(world.handler.statistics().waiting == 2, "requests that wait are dropped");
  world.clients[0]->caller.abandon(Fault::interrupted);
  for (const uint64_t until = world.network.now_us + 40000000; world.network.now_us < until;)
    world.step();
  CHECK(world.handler.statistics().waiting == 1, "that of a client that has vanished waits");
  CHECK(world.clients[1]->caller.waits(), "the other one does not");
}

// Two clients wait for each other by way of the limiter.
static void test_waiting() {
  World world(5, {0.2, 0.1, 0.2, 0});
  LimiterConfig limiter;
  limiter.min_size = 4, limiter.active = true, limiter.samples_per_insert = 1;
  limiter.min_diff = -4, limiter.max_diff = 4;
  Client &actor = world.add(), &learner = world.add();
  for (Client *each : {&actor, &learner}) {
    each->script.emplace_back(Op::hello);
    each->script.push_back(opening(2000, limiter));
    each->on_reply = [](Client &client) {
      CHECK(client.status() == Status::ok, "request %u gives %d",
            static_cast<unsigned>(client.done), static_cast<int>(client.status()));
    };
  }
  for (int k = 0; k < 50; ++k) {
    actor.script.push_back(push(numbers(4, k), {}, 600000));
    learner.script.push_back(sample(static_cast<uint64_t>(k), 4, 600000));
  }
  world.run(3000);
  CHECK(actor.done == actor.script.size() && learner.done == learner.script.size(), "%u and %u",
        static_cast<unsigned>(actor.done), static_cast<unsigned>(learner.done));
  const Stats stats = world.handler.tables()[0]->stats();
  CHECK(stats.inserts == 200 && stats.samples == 200 && stats.waited > 0, "%u, %u",
        static_cast<unsigned>(stats.inserts), static_cast<unsigned>(stats.samples));
}

// HELLO and AUTH may be lost like everything else, and are not done twice.
static void test_secret() {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Settings wanted = settings();
    wanted.authenticate = [](const uint8_t *, const uint8_t *mac, uint64_t, uint8_t *own) {
      std::memset(own, 7, mac_bytes);
      return mac[0] == 9;
    };
    World world(seed, {0.3, 0.2, 0.2, 0}, std::move(wanted));
    const uint8_t right[mac_bytes] = {9}, wrong[mac_bytes] = {8};
    Client &good = world.add(), &bad = world.add();
    for (Client *each : {&good, &bad}) {
      each->script.emplace_back(Op::hello);
      each->script.emplace_back(Op::auth);
      each->script.back().section(each == &good ? right : wrong, mac_bytes);
      each->script.back().session(uint64_t{0});
    }
    good.script.emplace_back(Op::ping);
    world.run();
    CHECK(good.done == 3 && good.status() == Status::ok, "ends at %u",
          static_cast<unsigned>(good.done));
    CHECK(bad.status() == Status::unauthenticated, "a wrong proof gives %d",
          static_cast<int>(bad.status()));
    world.drain();
    CHECK(world.handler.statistics().unauthenticated == 1, "it was asked twice");
    CHECK(world.handler.statistics().sessions == 1, "%u sessions",
          static_cast<unsigned>(world.handler.statistics().sessions));
  }
}

int main() {
  test_bad_network("a good one", {}, usual_slice);
  test_bad_network("5 %", {0.05, 0.05, 0.1, 0}, usual_slice);
  test_bad_network("large slices", {0.05, 0.05, 0.1, 0}, 8192);
  test_bad_network("30 %", {0.3, 0.1, 0.3, 0}, usual_slice);
  test_bad_network("damaged", {0, 0, 0, 0.05}, usual_slice);
  test_same_bytes();
  test_blackout();
  test_vanished();
  test_waiting();
  test_secret();
  return finish();
}
