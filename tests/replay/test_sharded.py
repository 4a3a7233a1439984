"""A memory on four devices against exact probabilities in the whole.

Each device's state is its own; here they lie in leaves [devices, ...], split by `shard_map`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from chi_square import assert_distributed
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from accel_rl import replay

DEVICES, CAPACITY, BATCH, CALLS = 4, 128, 64, 2000
MASSES = (1.0, 30.0, 0.0, 0.02)  # of the parts, about; one is empty
EXAMPLE = {
    "id": np.int32(0),
    "frame": np.zeros(3, np.uint8),
    "flag": np.bool_(False),
    "x": np.zeros(2, np.float32),
    "small": np.float16(0),
}
SLOW = pytest.mark.slow
SAMPLERS = {
    "uniform": replay.uniform,
    "tree": lambda: replay.prioritised("tree"),
    "wide": lambda: replay.prioritised("wide"),
}
MARKS = {"uniform": (), "tree": pytest.mark.slow}
samplers = pytest.mark.parametrize("name", quick.only(["tree"], SAMPLERS))
KEYS = jax.random.split(jax.random.key(1), CALLS)


@functools.cache
def mesh():
    return jax.make_mesh(
        (DEVICES,), ("part",), axis_types=(AxisType.Auto,), devices=jax.devices()[:DEVICES]
    )


def everywhere(fn, *shared):
    """fn(state, ...) on each device's state; arguments after it are shared if so said."""

    def local(state, *args):
        result = fn(jax.tree.map(lambda x: x[0], state), *args)
        return jax.tree.map(lambda x: jnp.asarray(x)[None], result)

    specs = (P("part"), *(P() if each else P("part") for each in shared))
    return jax.jit(
        jax.shard_map(local, mesh=mesh(), in_specs=specs, out_specs=P("part"), check_vma=False)
    )


def items(ids):
    """Leaves of several dtypes, all of them told by the number."""
    ids = np.asarray(ids, np.int32)
    return {
        "id": ids,
        "frame": np.stack([ids % 256, ids // 256, 255 - ids % 256], -1).astype(np.uint8),
        "flag": ids % 3 == 0,
        "x": np.stack([ids + 0.5, -ids], -1).astype(np.float32),
        "small": (ids % 100).astype(np.float16),
    }


@functools.cache
def memory(name, is_stratified=True):
    made = SAMPLERS[name]()
    made = replay.make(EXAMPLE, CAPACITY, BATCH, made, stratified=is_stratified, least_size=1)
    return made, replay.shard(made, "part")


def priorities(name):
    rng = np.random.default_rng(3)
    given = rng.random((DEVICES, CAPACITY)) + 0.05
    if name == "uniform":
        return np.float32(given)
    return np.float32(given * np.reshape(MASSES, (-1, 1)))


@functools.cache
def filled(name, is_stratified=True):
    """States of differently filled parts; and the exact probability of each global item."""
    made, _ = memory(name, is_stratified)
    sizes = (CAPACITY, 50, 0, 100)
    given, states = priorities(name), []
    expected = np.zeros((DEVICES, CAPACITY))
    for device, size in enumerate(sizes):
        state = made.init()
        if size:
            ids = device * CAPACITY + np.arange(size)
            state = made.add(state, items(ids), given[device, :size])
        states.append(state)
        weight = given[device, :size].astype(float) ** 0.6
        expected[device, :size] = 1 if name == "uniform" else weight
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *states)
    return stacked, expected.ravel() / expected.sum()


@functools.cache
def draws(name, is_stratified):
    state, expected = filled(name, is_stratified)
    _, sharded = memory(name, is_stratified)

    def often(state, keys):
        def step(carry, key):
            drawn = sharded.sample(state, key, 0.5)
            return carry, (drawn.batch["id"], drawn.indices, drawn.probabilities, drawn.weights)

        return jax.lax.scan(step, 0, keys)[1]

    found = everywhere(often, True)(state, KEYS)  # [devices, calls, batch]
    return expected, *map(np.asarray, found)


@pytest.mark.parametrize(
    ("is_stratified", "name"),
    [
        *(
            pytest.param(True, name, id=f"stratified-{name}", marks=MARKS.get(name, SLOW))
            for name in SAMPLERS
        ),
        *(pytest.param(False, name, id=f"independent-{name}", marks=SLOW) for name in SAMPLERS),
    ],
)
def test_draws_are_from_the_whole(name, is_stratified):
    expected, ids, indices, p, weights = draws(name, is_stratified)
    mine = p > 0
    np.testing.assert_array_equal(mine.sum(axis=0), 1)  # every lane is one device's
    assert not mine[2].any()
    device = np.broadcast_to(np.arange(DEVICES)[:, None, None], ids.shape)
    np.testing.assert_array_equal(ids[mine], device[mine] * CAPACITY + indices[mine])
    np.testing.assert_allclose(p[mine], expected[ids[mine]], rtol=1e-5)
    # Too rare for a test of each: items of fewer than 10 expected draws are one class.
    rare = (expected > 0) & (expected * mine.sum() < 10)
    classes = np.where(rare, rare.argmax(), np.arange(expected.size))
    shares = np.bincount(classes, expected, minlength=expected.size)
    drawable = np.flatnonzero(shares)
    assert_distributed(classes[ids[mine]], drawable, shares[drawable])
    # Weights are over the whole batch's maximum, and 0 for what is another's.
    whole = p.sum(axis=0)
    wanted = (whole.min(axis=-1, keepdims=True) / whole) ** 0.5
    np.testing.assert_allclose(weights.sum(axis=0), wanted, rtol=1e-5)
    np.testing.assert_array_equal(weights[~mine], 0)


@pytest.mark.parametrize("name", quick.only(["uniform"], ["uniform", "tree"]))
def test_stratified_draws_are_shared_out_evenly(name):
    """Each part gets its mass of the batch, up to one at either border."""
    expected, _, _, p, _ = draws(name, True)
    share = expected.reshape(DEVICES, -1).sum(axis=1)[:, None] * BATCH
    assert (np.abs((p > 0).sum(axis=-1) - share) < 2).all()


def spoilt(sample):
    """What others hold, as garbage that must not get through."""
    mine = sample.probabilities > 0

    def spoil(leaf):
        there = mine.reshape(mine.shape + (1,) * (leaf.ndim - 1))
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            return jnp.where(there, leaf, jnp.asarray(np.nan, leaf.dtype))
        bad = np.asarray(True if leaf.dtype == bool else np.iinfo(leaf.dtype).max, leaf.dtype)
        return jnp.where(there, leaf, bad)

    batch = jax.tree.map(spoil, sample.batch)
    return type(sample)(
        batch, sample.indices, sample.probabilities, sample.weights, sample.generations
    )


@pytest.mark.long  # compiles the memory for a device and for eight
@samplers
def test_the_whole_batch_is_made_everywhere(name):
    state, expected = filled(name)
    _, sharded = memory(name)

    def both(state, key):
        drawn = sharded.sample(state, key)
        return drawn, replay.whole_batch(spoilt(drawn), "part")

    local, whole = everywhere(both, True)(state, jax.random.key(3))
    jax.tree.map(lambda x: np.testing.assert_array_equal(x, np.broadcast_to(x[:1], x.shape)), whole)
    jax.tree.map(lambda a, b: np.testing.assert_equal(a.dtype, b.dtype), local, whole)
    whole = jax.tree.map(lambda x: np.asarray(x[0]), whole)
    wanted = items(whole.batch["id"])
    jax.tree.map(np.testing.assert_array_equal, whole.batch, wanted)
    np.testing.assert_allclose(whole.probabilities, expected[whole.batch["id"]], rtol=1e-5)
    np.testing.assert_array_equal(whole.indices, whole.batch["id"] % CAPACITY)
    assert whole.weights.max() == 1
    np.testing.assert_allclose(
        whole.weights, whole.probabilities.min() / whole.probabilities, rtol=1e-5
    )


def test_updates_change_what_a_device_owns():
    _, sharded = memory("tree")
    state, _ = filled("tree")

    def change(state, key):
        drawn = sharded.sample(state, key)
        return drawn, sharded.update(state, drawn, drawn.batch["id"].astype(jnp.float32) + 1)

    drawn, changed = everywhere(change, True)(state, jax.random.key(5))
    before, after = (
        np.asarray(x.index.sampler.sums.leaves).reshape(DEVICES, -1)[:, :CAPACITY]
        for x in (state, changed)
    )
    expected = before.astype(float)
    owned = 0
    for device in range(DEVICES):
        for lane in np.flatnonzero(np.asarray(drawn.probabilities[device]) > 0):
            slot = int(drawn.indices[device, lane])
            expected[device, slot] = (device * CAPACITY + slot + 1.0) ** 0.6
            owned += 1
    assert owned == BATCH
    np.testing.assert_allclose(after, expected, rtol=1e-5)
    assert (after != before).any(axis=1).tolist()[1]


@samplers
def test_size_is_of_the_whole(name):
    state, _ = filled(name)
    made, _ = memory(name)
    for batch_size, can in ((BATCH, True), (128, True)):
        sharded = replay.shard(
            replay.make(EXAMPLE, CAPACITY, batch_size, SAMPLERS[name](), least_size=1), "part"
        )
        sizes, ready = everywhere(lambda s, f=sharded: (f.size(s), f.can_sample(s)))(state)
        np.testing.assert_array_equal(sizes, 278)
        np.testing.assert_array_equal(ready, can)
    empty = jax.tree.map(lambda x: jnp.stack([x] * DEVICES), made.init())
    _, sharded = memory(name)
    sizes, ready = everywhere(lambda s: (sharded.size(s), sharded.can_sample(s)))(empty)
    np.testing.assert_array_equal(sizes, 0)
    np.testing.assert_array_equal(ready, False)


@samplers
def test_a_memory_of_nothing(name):
    made, sharded = memory(name)
    empty = jax.tree.map(lambda x: jnp.stack([x] * DEVICES), made.init())
    drawn = everywhere(sharded.sample, True)(empty, jax.random.key(0))
    np.testing.assert_array_equal(drawn.probabilities, 0)
    np.testing.assert_array_equal(drawn.weights, 0)


@pytest.mark.parametrize(
    "name", quick.only(["tree"], ["uniform", "tree", "amper_fr", "rank_based"])
)
def test_in_a_loop(name):
    """add, sample, update, 60 steps over several laps; every sample is one of the whole."""
    make = {**SAMPLERS, "amper_fr": replay.amper_fr, "rank_based": replay.rank_based}[name]
    made = replay.make(EXAMPLE, 16, BATCH, make(), least_size=1)
    sharded = replay.shard(made, "part")

    def loop(numbers, keys):
        def step(state, given):
            number, key = given
            new = {
                "id": number,
                "frame": jnp.full(3, number % 256, jnp.uint8),
                "flag": number % 3 == 0,
                "x": jnp.full(2, number, jnp.float32),
                "small": jnp.float16(0),
            }
            state = sharded.add(state, new)
            drawn = sharded.sample(state, key)
            state = sharded.update(state, drawn, 1 + drawn.batch["x"][:, 0] % 5)
            whole = replay.whole_batch(drawn, "part")
            return state, (whole.batch["id"], whole.probabilities, drawn.probabilities)

        return jax.lax.scan(step, made.init(), (numbers, keys))[1]

    numbers = np.int32(np.arange(60) * DEVICES + np.arange(DEVICES)[:, None])
    ids, p, own = map(
        np.asarray, everywhere(loop, True)(numbers, jax.random.split(jax.random.key(2), 60))
    )
    np.testing.assert_array_equal(ids, np.broadcast_to(ids[:1], ids.shape))
    step = np.arange(60)[:, None]
    ids, p = ids[0], p[0]
    drawn = p > 0
    assert drawn.mean() > (0.9 if name in ("amper_fr", "rank_based") else 0.9999)
    assert (ids <= step * DEVICES + DEVICES - 1)[drawn].all()
    assert (ids >= (step - 15) * DEVICES)[drawn].all()
    assert ((own > 0).sum(axis=0) <= 1).all()
    if name == "uniform":
        np.testing.assert_allclose(p, np.broadcast_to(1 / (4 * np.minimum(step + 1, 16)), p.shape))


@SLOW
@pytest.mark.parametrize("name", ["amper_fr", "rank_based"])
def test_samplers_without_positions_share_by_mass(name):
    """The shares of parts, by their masses; what is drawn there is theirs."""
    make = {"amper_fr": lambda: replay.amper_fr("exact"), "rank_based": replay.rank_based}[name]
    made = replay.make(np.int32(0), CAPACITY, BATCH, make(), least_size=1)
    sharded = replay.shard(made, "part")
    states = []
    rng = np.random.default_rng(0)
    sizes, totals = (128, 50, 0, 100), np.zeros(DEVICES)
    for device, size in enumerate(sizes):
        state = made.init()
        if size:
            given = np.float32(rng.random(size) + 0.01) * np.float32(device + 1)
            state = made.add(state, np.full(size, device, np.int32), given)
            totals[device] = size if name == "rank_based" else (given.astype(float) ** 0.6).sum()
        states.append(state)
    state = jax.tree.map(lambda *x: jnp.stack(x), *states)

    def often(state, keys):
        def step(carry, key):
            drawn = sharded.sample(state, key)
            return carry, (drawn.batch, drawn.probabilities)

        return jax.lax.scan(step, 0, keys)[1]

    where, p = map(np.asarray, everywhere(often, True)(state, KEYS[:300]))
    mine = p > 0
    np.testing.assert_array_equal(mine.sum(axis=0), 1)
    device = np.broadcast_to(np.arange(DEVICES)[:, None, None], where.shape)
    np.testing.assert_array_equal(where[mine], device[mine])
    share = totals[:, None] / totals.sum() * BATCH
    assert (np.abs(mine.sum(axis=-1) - share) < 2).all()
