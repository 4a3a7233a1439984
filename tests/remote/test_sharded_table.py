"""A memory in parts on several servers: probabilities, losses, and the contract of a port."""

import contextlib
import subprocess
import threading
import warnings

import jax
import numpy as np
import pytest
import walk
from port_conformance import check_port
from processes import LIMIT, frozen, start, wait_until
from table_model import uniforms

from accel_rl import remote, train
from accel_rl.remote import Column, Limiter, RemoteTable, ShardedTable, TableSpec
from accel_rl.remote.shares import words

ALPHA = 0.6
SPEC = TableSpec("t", 90, (Column("n", "i4"),), priority_exponent=ALPHA)


@pytest.fixture
def shards(serve):
    """Addresses of three servers."""
    return [serve().address for _ in range(3)]


def filled(table, priorities):
    """Items that know their number, and so their shard, as items go to shards in turn."""
    table.push([np.arange(len(priorities), dtype=np.int32)], priorities)


def weights_of(priorities):
    return (priorities.astype(np.float64) ** np.float64(np.float32(ALPHA))).astype(np.float32)


def test_it_is_a_replay_port(shards):
    """With totals that are asked for; those that are not are behind by a batch, as tested below."""
    number = 0

    def make_port(example, capacity, batch_size, **options):
        nonlocal number
        number += 1
        return remote.RemotePort(
            shards[:2], example, capacity, batch_size, table=str(number), fresh_totals=True,
            **options,
        )  # fmt: skip

    check_port(make_port, one_highest=False)


@pytest.mark.parametrize("sampler", ["prioritised", "uniform"])
def test_probabilities_are_those_of_the_draw_however_old_the_totals(shards, sampler):
    """Against NumPy: shares by what was known, odds within a shard by what is there."""
    spec = TableSpec("t", 90, SPEC.columns, sampler, ALPHA)
    rng = np.random.default_rng(0)
    priorities = rng.uniform(0.1, 5, 60).astype(np.float32)
    with ShardedTable(shards, spec) as table, ShardedTable(shards, spec) as other:
        filled(table, priorities)
        shard = np.arange(60) % 3
        assert table.stats()["inserts"] == 60
        for batch in (1, 7, 64):
            known = weights_of(priorities) if sampler == "prioritised" else np.ones(len(priorities))
            totals = [known[shard == s].sum(dtype=np.float64) for s in range(3)]
            table.sample(1, 3)  # after which it knows these totals
            if sampler == "prioritised":
                numbers = np.arange(0, 60, 2)
                priorities[numbers] = rng.uniform(0.1, 50, 30).astype(np.float32)
                slots = (numbers % 3 * 30 + numbers // 3).astype(np.uint32)
                assert other.set_priorities(slots, np.ones(30, np.uint32), priorities[::2]) == (
                    30,
                    0,
                )
            elif batch == 7:
                other.push([np.arange(60, 64, dtype=np.int32)])
                priorities = np.resize(priorities, 64)
                shard = np.append(shard, (np.arange(4) + 0) % 3)
            drawn = table.sample(77, batch)
            odds = np.array(totals) / sum(totals)
            position = uniforms(77, 0, batch) * sum(totals)
            counts = [
                (np.searchsorted(np.cumsum(totals), position, "right") == s).sum() for s in range(3)
            ]
            found = drawn.columns["n"]
            np.testing.assert_array_equal(np.bincount(shard[found], minlength=3), counts)
            now = weights_of(priorities) if sampler == "prioritised" else np.ones(len(priorities))
            sums = np.array([now[shard == s].sum(dtype=np.float64) for s in range(3)])
            expected = odds[shard[found]] * now[found] / sums[shard[found]]
            np.testing.assert_allclose(drawn.probabilities, expected, rtol=1e-6)
            assert drawn.size == len(priorities)
            np.testing.assert_allclose(drawn.total, sums.sum(), rtol=1e-6)
            assert (np.diff(shard[found]) >= 0).all()
            np.testing.assert_array_equal(drawn.slots // 30, shard[found])


def test_seeds_of_shards_are_the_generators_words(shards):
    """What a shard gives is what it gives to anybody with that seed."""
    with ShardedTable(shards, SPEC) as table:
        filled(table, np.ones(30, np.float32))
        drawn = table.sample(5, 16)
        for number, address in enumerate(shards):
            mine = drawn.slots // 30 == number
            with remote.ReplayClient(address) as client:
                alone = client.table("t").sample(int(words(5, 16 + number, 1)[0]), int(mine.sum()))
            np.testing.assert_array_equal(alone.slots + 30 * number, drawn.slots[mine])
            np.testing.assert_array_equal(alone.columns["n"], drawn.columns["n"][mine])


def test_a_weighted_mean_is_unbiased_with_stale_totals(shards):
    """Estimates of the mean over all items, by 1 / (N q).

    Every batch is drawn by the totals before priorities changed. For normal errors 4.5 standard
    errors are passed by chance in 7 of a million tests; seeds are fixed.
    """
    rng = np.random.default_rng(1)
    values = rng.normal(10, 3, 45)
    numbers = np.arange(45)
    slots, first = (numbers % 3 * 30 + numbers // 3).astype(np.uint32), np.ones(45, np.uint32)
    estimates, wrong = [], []
    with ShardedTable(shards, SPEC) as table, ShardedTable(shards, SPEC) as other:
        filled(table, np.ones(45, np.float32))
        for seed in range(300):
            # Shards' totals change by an order of magnitude between a look and the draw.
            scale = 10.0 ** rng.uniform(-1, 1, 3)
            priorities = (scale[numbers % 3] * rng.uniform(0.5, 2, 45)).astype(np.float32)
            other.set_priorities(slots, first, priorities)
            drawn = table.sample(seed, 16)
            found, weights = drawn.columns["n"], weights_of(priorities)
            estimates.append(np.mean(values[found] / (45 * drawn.probabilities)))
            wrong.append(np.mean(values[found] * weights.sum() / (45 * weights[found])))

    def errors(found):
        return abs(np.mean(found) - values.mean()) / (np.std(found) / np.sqrt(len(found)))

    assert errors(estimates) < 4.5
    assert errors(wrong) > 4.5  # as one table's probabilities, with which it would not be so


def test_requests_to_shards_go_side_by_side(shards, monkeypatch):
    """Each waits at a barrier until all are under way."""
    barrier, calls = threading.Barrier(3), {}
    with ShardedTable(shards, SPEC) as table:
        for name in ("push", "sample", "set_priorities"):
            real = getattr(RemoteTable, name)

            def meeting(self, *args, real=real, name=name, **kwargs):
                barrier.wait(20)
                calls[name] = calls.get(name, 0) + 1
                return real(self, *args, **kwargs)

            monkeypatch.setattr(RemoteTable, name, meeting)
        filled(table, np.ones(30, np.float32))
        drawn = table.sample(3, 64)
        table.update(drawn, np.ones(64, np.float32))
    assert calls == {"push": 3, "sample": 3, "set_priorities": 3}


def test_a_lost_shard_is_left_out_and_comes_back(serve, tmp_path):
    paths = [tmp_path / str(n) for n in range(3)]
    servers = [serve(host=None, unix_path=path) for path in paths]
    with ShardedTable([each.address for each in servers], SPEC) as table:
        filled(table, np.ones(60, np.float32))
        before = table.sample(1, 64)
        servers[1].close()
        with pytest.warns(RuntimeWarning, match="shard 1 of the replay buffer, at unix:.* is lost"):
            drawn = table.sample(2, 64)
        assert len(drawn.slots) == 64
        assert not (drawn.columns["n"] % 3 == 1).any()
        np.testing.assert_allclose(drawn.probabilities, 1 / 40)
        assert drawn.size == 40
        assert table.lost == 1
        gone = int((before.slots // 30 == 1).sum())
        assert table.update(before, np.ones(64, np.float32)) == (64 - gone, gone)
        filled(table, np.ones(6, np.float32))
        assert table.stats()["size"] == 46
        serve(host=None, unix_path=paths[1])
        wait_until(lambda: table.stats() and not table.lost)
        filled(table, np.ones(12, np.float32))
        stats = table.stats()
        assert (stats["size"], stats["lost"], stats["losses"]) == (58, 0, 1)
        table.sample(3, 64)  # by what the others held when they answered last
        drawn = table.sample(4, 64)
        assert (drawn.slots // 30 == 1).any()
        np.testing.assert_allclose(drawn.probabilities, 1 / 58)


def test_some_may_be_lost_from_the_beginning(serve, tmp_path):
    there, away = serve(), f"unix:{tmp_path}/absent"
    with pytest.warns(RuntimeWarning, match="shard 1 of the replay buffer, at unix:.* is lost"):
        table = ShardedTable([there.address, away], SPEC)
    with table:
        assert table.push([np.zeros(4, np.int32)]) == 4
        assert table.stats()["lost"] == 1
    with pytest.raises(remote.ConnectionLost, match="closed"):
        table.stats()
    with (
        pytest.warns(RuntimeWarning, match="is lost"),
        pytest.raises(remote.ConnectionLost, match="none of the 1 shards can be reached"),
    ):
        ShardedTable([away], SPEC)


def test_a_loss_that_is_an_error_elsewhere_is_none_here(serve):
    servers = [serve() for _ in range(2)]
    with ShardedTable([each.address for each in servers], SPEC) as table:
        filled(table, np.ones(20, np.float32))
        servers[0].close()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Nothing was sent on a connection that had ended: the other one takes all.
            assert table.push([np.zeros(4, np.int32)]) == 14
            assert table.push([np.zeros(4, np.int32)]) == 18
        assert table.stats()["doubtful"] == 0


@pytest.fixture
def servers(built):
    """Two servers in processes of their own."""
    with remote.ReplayServerProcess() as one, remote.ReplayServerProcess() as other:
        yield [one, other]


@pytest.mark.long  # waits for frozen servers
def test_no_item_is_pushed_twice_when_a_frozen_server_goes_on(servers):
    """It carries out what waited for it; the others must not have that, too."""
    addresses = [each.address for each in servers]
    with ShardedTable(addresses, SPEC, timeout=5.0) as table:
        with frozen(servers[1].process):
            with pytest.warns(RuntimeWarning, match="shard 1 .* is lost"):
                assert table.push([np.arange(10, dtype=np.int32)]) == 5
            stats = table.stats()
            assert (stats["lost"], stats["losses"], stats["doubtful"]) == (1, 1, 5)
        found = []
        for address in addresses:
            with remote.ReplayClient(address) as client:
                part = client.table("t")
                wait_until(lambda part=part: part.stats()["size"])
                drawn = part.sample(1, 400)
                found.append(set(drawn.columns["n"].tolist()))
                assert part.stats()["inserts"] == len(found[-1]) == 5
        assert found[0] | found[1] == set(range(10))


@pytest.mark.long  # waits for frozen servers
def test_frozen_shards_do_not_hold_up_the_end_of_a_process(servers):
    """A call waits there in a thread of the table."""
    script = (
        "import sys, threading, time, numpy as np\n"
        "from accel_rl.remote import Column, ShardedTable, TableSpec\n"
        "spec = TableSpec('t', 90, (Column('n', 'i4'),))\n"
        "table = ShardedTable(sys.argv[2:], spec, timeout=float(sys.argv[1]))\n"
        "push = lambda: table.push([np.zeros(4, np.int32)])\n"
        "push()\n"
        "print('open', flush=True)\n"
        "sys.stdin.readline()\n"
        "threading.Thread(target=push, daemon=True).start()\n"
        "time.sleep(0.5)\n"
    )
    words = ("-c", script, 2 * LIMIT, *[each.address for each in servers])
    with start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "open\n"
        with frozen(servers[0].process), frozen(servers[1].process):
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.wait(LIMIT) == 0


def test_a_push_that_is_more_than_the_shards_that_are_left_hold_goes_in_pieces(serve):
    """The limiter counts all of it before the shards have it: none of them may refuse a part."""
    servers = [serve() for _ in range(2)]
    limiter = Limiter(1, 1.0, -10_000.0, 10_000.0)
    spec = TableSpec("t", 90, SPEC.columns, priority_exponent=ALPHA, limiter=limiter)
    with ShardedTable([each.address for each in servers], spec) as table:
        servers[1].close()
        with pytest.warns(RuntimeWarning, match="shard 1 .* is lost"):
            table.stats()
        assert table.push([np.arange(60, dtype=np.int32)]) == 45
        assert set(table.sample(1, 2_000).columns["n"].tolist()) == set(range(15, 60))
        pace = servers[0].stats()["tables"]["t/limiter"]
        with pytest.raises(remote.RequestRefused, match="91 items, the capacity is 90"):
            table.push([np.arange(91, dtype=np.int32)])
        assert servers[0].stats()["tables"]["t/limiter"]["inserts"] == pace["inserts"] == 60


def test_a_loss_is_counted_though_another_shard_refuses(serve):
    servers = [serve() for _ in range(2)]
    with ShardedTable([each.address for each in servers], SPEC) as table:
        servers[1].close()
        calls = {}
        for shard in table._shards.live():
            calls[shard] = (
                RemoteTable.stats if shard.number else lambda each: each.push([np.zeros((1, 2))])
            )
        with (
            pytest.warns(RuntimeWarning, match="is lost"),
            pytest.raises(TypeError, match="n must"),
        ):
            table._shards.ask(calls)
        assert table.stats()["losses"] == 1


def test_the_limiter_is_one_for_all_shards(shards):
    """In shards it would hold up one for what another one has."""
    limiter = Limiter(4, 1.0, 4 - 16.0, 4 + 16.0)
    spec = TableSpec("l", 90, SPEC.columns, priority_exponent=ALPHA, limiter=limiter)
    with ShardedTable(shards, spec) as table:
        filled(table, np.array([100.0, 1e-3, 1e-3] * 6, np.float32))  # nearly all is in one shard
        with pytest.raises(remote.TryAgain):
            table.push([np.zeros(3, np.int32)])
        for wrong in (np.zeros(1, np.int64), np.zeros((1, 1), np.int32)):
            with pytest.raises((TypeError, ValueError), match="n must"):
                table.push([wrong])  # which the limiter does not count
        for seed in range(3):
            drawn = table.sample(seed, 8)
        assert (drawn.slots < 30).all()
        allowed = 0
        with contextlib.suppress(remote.TryAgain):
            for seed in range(9):
                table.sample(seed, 8)
                allowed += 8
        assert 18 - 3 * 8 - allowed >= 4 - 16 > 18 - 3 * 8 - allowed - 8
        filled(table, np.ones(12, np.float32))
        assert table.stats()["inserts"] == 30


def test_what_is_wrong_is_refused(shards):
    for addresses, spec, message in (
        ([], SPEC, "addresses must be one or more"),
        ([shards[0]] * 2, SPEC, "each once"),
        (shards, TableSpec("a", 9, SPEC.columns, "amper_fr"), "sampler must be uniform or priori"),
        (
            [*shards, "unix:/nowhere"],
            TableSpec("a", 2**32 - 1, SPEC.columns),
            "capacity over all shards must be from 1 to 4294967295",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            ShardedTable(addresses, spec)
    with ShardedTable(shards, SPEC) as table:
        with pytest.raises(remote.TryAgain):
            table.sample(1, 4)
        for bad in ([1, np.nan, 1], [1, -1, 1]):
            with pytest.raises(remote.RequestRefused, match="bad_priority"):
                table.push([np.zeros(3, np.int32)], bad)
        with pytest.raises(ValueError, match="columns must be"):
            table.push([np.zeros(3, np.int32)] * 2)
        with pytest.raises(ValueError, match="columns must be"):
            table.push({"n": np.zeros(3, np.int32), "m": np.zeros(3, np.int32)})
        with pytest.raises(remote.RequestRefused, match="0 items, the capacity is 90"):
            table.push([np.zeros(0, np.int32)])
        with pytest.raises(TypeError, match="n must be int32"):
            table.push([np.zeros(3, np.int64)])
        assert table.stats()["inserts"] == 0
        with pytest.raises(ValueError, match="batch must be from 1"):
            table.sample(1, 0)
        slots = np.array([90], np.uint32)
        with pytest.raises(remote.RequestRefused, match="slots must be below 90"):
            table.set_priorities(slots, slots, np.ones(1))


def test_a_shard_whose_weights_are_0_is_not_drawn_from(shards):
    """Also if it had some when it answered last."""
    with ShardedTable(shards, SPEC) as table, ShardedTable(shards, SPEC) as other:
        filled(table, np.ones(30, np.float32))
        assert set(table.sample(1, 60).slots // 30) == {0, 1, 2}
        slots = np.arange(30, 40, dtype=np.uint32)
        other.set_priorities(slots, np.ones(10, np.uint32), np.zeros(10))
        drawn = table.sample(2, 60)
        assert set(drawn.slots // 30) == {0, 2}
        np.testing.assert_allclose(drawn.probabilities, 1 / 20)


@pytest.mark.long  # trains twice
def test_lock_step_training_is_the_same_twice(serve):
    """Shares are drawn by the specified generator, of totals that the schedule orders."""
    found = []
    for _ in range(2):
        addresses = [serve().address for _ in range(2)]

        def port(memory, addresses=addresses):
            store = memory.parts[1]
            return remote.RemotePort(
                addresses, store.example, 64, 16, num_envs=store.ring.num_envs, alpha=ALPHA
            )

        program = walk.program("prioritised", policy_lag=1, priority_lag=1, port=port)
        hyper = {name: value for name, value in walk.HYPER.items() if name != "replay"}
        done = train.pipelined(program, jax.random.key(5), 300, hyper=hyper, period=100)
        found.append(jax.tree.map(np.asarray, (done.state.agent, done.rows[-1]["loss"])))
        program.buffer.close()
    for one, other in zip(jax.tree.leaves(found[0]), jax.tree.leaves(found[1]), strict=True):
        np.testing.assert_array_equal(one, other)
