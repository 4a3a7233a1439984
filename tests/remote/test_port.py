"""A remote table as a replay port: the contract, windows against NumPy, lock-step training."""

import threading
import time

import dpdk_servers
import jax
import numpy as np
import pytest
import quick
import walk
from port_conformance import check_port
from processes import LIMIT, frozen, wait_until

from accel_rl import remote, train
from accel_rl.remote.links import lane
from accel_rl.remote.windows import Windows
from accel_rl.types import Transition

ADDRESSES = ("tcp", "udp", "unix", "shm", "embedded")


def maker(address):
    """make_port of the contract: each port has a table of its own."""
    number = 0

    def make_port(example, capacity, batch_size, **options):
        nonlocal number
        number += 1
        return remote.RemotePort(
            address, example, capacity, batch_size, table=str(number), **options
        )

    return make_port


def test_a_table_is_a_replay_port(address):
    check_port(maker(address))


def steps_of(rng, length, envs):
    shape = length, envs
    return Transition(
        observation=rng.normal(size=(*shape, 2)).astype(np.float32),
        action=rng.integers(0, 5, shape).astype(np.int32),
        reward=rng.normal(size=shape).astype(np.float32),
        discount=(rng.random(shape) > 0.2).astype(np.float32),
        truncated=rng.random(shape) < 0.2,
        next_observation=rng.normal(size=(*shape, 2)).astype(np.float32),
        extras=None,
    )


def of_one(steps):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), steps)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_windows_end_where_episodes_do(n):
    rng, envs = np.random.default_rng(n), 3
    steps = steps_of(rng, 23, envs)
    windows, found, priorities = Windows(of_one(steps), envs, n), [], []
    given = rng.random((23, envs)).astype(np.float32)
    at = 0
    for length in (1, 2, 7, 1, 12):
        part = jax.tree.map(lambda leaf, a=at, b=at + length: leaf[a:b], steps)
        kept = given[at : at + length] if length != 7 else None
        items, known = windows.add(part, kept)
        found.append(items)
        priorities.append(known)
        at += length
    items = jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)
    known = np.concatenate(priorities)
    count = (23 - n + 1) * envs
    assert len(known) == count
    for item in range(count):
        t, e = divmod(item, envs)
        last = t
        while last < t + n - 1 and steps.discount[last, e] > 0 and not steps.truncated[last, e]:
            last += 1
        np.testing.assert_array_equal(items.observation[item], steps.observation[t, e])
        np.testing.assert_array_equal(items.next_observation[item], steps.next_observation[last, e])
        np.testing.assert_array_equal(items.reward[item], steps.reward[t : t + n, e])
        np.testing.assert_array_equal(items.truncated[item], steps.truncated[t : t + n, e])
        wanted = np.nan if 3 <= t < 10 else given[t, e]
        np.testing.assert_array_equal(known[item], wanted)


def test_what_is_wrong_is_refused(address):
    steps = steps_of(np.random.default_rng(0), 4, 2)
    example = of_one(steps)
    for options, message in (
        ({"n_step": 0}, "n_step must be at least 1, got 0"),
        ({"num_envs": 0}, "num_envs must be at least 1, got 0"),
        ({"batch_size": 65}, "batch_size must be from 1 to 64"),
        ({"samples_per_insert": -1.0}, "samples_per_insert must be finite and above 0, got -1.0"),
        ({"samples_per_insert": 1.0, "slack": 3.0}, "slack must be finite and at least 8"),
        ({"slack": 30.0}, "slack is for a table with samples_per_insert"),
    ):
        with pytest.raises(ValueError, match=message):
            remote.RemotePort(address, example, 64, **{"batch_size": 8, "num_envs": 2} | options)
    port = remote.RemotePort(address, example, 64, 8, num_envs=2)
    with pytest.raises(TypeError, match="leaves of transitions must be float32, got float64"):
        port.add(jax.tree.map(lambda leaf: leaf.astype(np.float64), steps))
    with pytest.raises(remote.TableDiffers):
        remote.RemotePort(address, example, 128, 8, num_envs=2)
    port.close()


@pytest.mark.parametrize("address", quick.only(["tcp", "embedded"], ADDRESSES), indirect=True)
def test_the_limiter_holds_both_sides(address):
    """A push and a sample wait for one another, and go on when the other came."""
    steps = steps_of(np.random.default_rng(0), 64, 2)
    port = remote.RemotePort(
        address, of_one(steps), 256, 8, num_envs=2, samples_per_insert=1.0, slack=16.0
    )
    added, sampled = [], []

    def add():
        for t in range(64):
            port.add(jax.tree.map(lambda leaf, t=t: leaf[t], steps))
            added.append(t)

    thread = threading.Thread(target=add, daemon=True)
    thread.start()
    with remote.ReplayClient(address) as client:
        wait_until(lambda: client.stats()["waiting"])
    assert len(added) == (8 + 16) // 2  # as many items as the slack allows above the start
    for number in range(16):
        sampled.append(port.sample(jax.random.key(number), 0.5, 0.9))
        if number == 12:
            thread.join(LIMIT)
    assert not thread.is_alive()
    assert len(sampled) == 16
    port.close()


@pytest.mark.long  # waits
def test_a_port_of_a_frozen_server_is_closed_soon(built):
    """Each of its three clients waits 30 s for a reply, and would for another to its good-bye."""
    steps = steps_of(np.random.default_rng(0), 8, 2)
    with remote.ReplayServerProcess() as server:
        port = remote.RemotePort(server.address, of_one(steps), 64, 8, num_envs=2)
        port.add(steps)
        with frozen(server.process):
            began = time.monotonic()
            port.close()
            assert time.monotonic() - began < 30
            with pytest.raises(RuntimeError, match="closed"):
                port.add(steps)


def test_a_push_waits_for_room_to_wait_in(serve, connect):
    """What waits for the limiter of others may take all the room that the server has for that."""
    server = serve(waiting_bytes=6_000)
    spec = remote.TableSpec(
        "t", 1_000, (remote.Column("x", "f4"),), limiter=remote.Limiter(1, 1.0, 0.0, 1_000.0)
    )
    first, second, third = (connect(server.address).table(spec) for _ in range(3))
    rows = [np.zeros(1_000, np.float32)]
    first.push(rows)
    waiting = threading.Thread(target=first.push, args=(rows,), kwargs={"wait": LIMIT}, daemon=True)
    waiting.start()
    wait_until(lambda: server.stats()["waiting"])
    with pytest.raises(remote.TryAgain):  # at once, where it is not to wait
        second.push(rows)
    with pytest.raises(remote.TryAgain):
        second.push(rows, wait=0.3)
    pushing = threading.Thread(
        target=second.push, args=(rows,), kwargs={"wait": LIMIT}, daemon=True
    )
    pushing.start()
    third.sample(1, 1_000)
    waiting.join(LIMIT)
    third.sample(2, 1_000)
    pushing.join(LIMIT)
    assert not waiting.is_alive()
    assert not pushing.is_alive()
    assert third.stats()["inserts"] == 3_000


def trained(address):
    """Parameters and last loss after a lock-step training over a port there."""
    make_port = maker(address)
    ports = []

    def port(memory):
        store = memory.parts[1]
        ports.append(make_port(store.example, 64, 16, num_envs=store.ring.num_envs, alpha=0.6))
        return ports[-1]

    program = walk.program("prioritised", policy_lag=1, priority_lag=1, port=port)
    hyper = {name: value for name, value in walk.HYPER.items() if name != "replay"}
    done = train.pipelined(program, jax.random.key(5), 300, hyper=hyper, period=100)
    found = jax.tree.map(np.asarray, (done.state.agent, done.rows[-1]["loss"]))
    ports[0].close()
    return found


@pytest.fixture(scope="module")
def trained_embedded(built):
    with remote.ReplayServer(host=None) as server:
        return trained(server)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("tcp", marks=pytest.mark.long),
        pytest.param("unix", marks=pytest.mark.slow),
        pytest.param("shm", marks=pytest.mark.slow),
        pytest.param("udp", marks=pytest.mark.long),
        pytest.param("memif", marks=pytest.mark.long),
    ],
)
def test_lock_step_training_is_the_same_over_every_transport(
    serve, tmp_path, kind, trained_embedded
):
    """The same seeds draw the same batches, so the same parameters come of it."""
    if kind == "memif":
        dpdk_servers.require_dpdk()
        with remote.ReplayServerProcess(**dpdk_servers.memif(tmp_path / "socket", 3)) as server:
            found = trained(server.address)
    elif kind == "tcp":
        found = trained(serve().address)
    elif kind == "udp":
        found = trained(serve(udp_port=0).addresses[1])
    else:
        found = trained(serve(host=None, **{f"{kind}_path": tmp_path / "socket"}).address)
    one, other = jax.tree.leaves(trained_embedded), jax.tree.leaves(found)
    for embedded, remotely in zip(one, other, strict=True):
        np.testing.assert_array_equal(embedded, remotely)


def test_connections_over_memif_have_an_interface_each():
    assert lane("memif:/path", 0) == "memif:/path?id=0"
    assert lane("memif:/path?id=250", 2) == "memif:/path?id=252"
    with pytest.raises(ValueError, match=r"id must .* 252 .*id=251"):
        lane("memif:/path?id=251", 2)
    assert lane("shm:/path?busy=1", 2) == "shm:/path?busy=1"
