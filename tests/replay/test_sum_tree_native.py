"""The sum tree in C against its definition in JAX: the same state and draws, bit for bit."""

import dataclasses
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import Mesh, PartitionSpec
from kernels_present import needs_kernels

from accel_rl import native, testing
from accel_rl.replay import Span, prioritised, sum_tree, sum_tree_native
from accel_rl.replay.ring import Ring

FORMS = (sum_tree, sum_tree_native)
FAILURES = (ValueError, jax.errors.JaxRuntimeError)  # jax may report either
WEIGHTS = {
    "even": lambda rng, n: rng.random(n),
    "zero": lambda rng, n: np.zeros(n),
    "equal": lambda rng, n: np.full(n, 0.1),
    "few": lambda rng, n: rng.choice([0, 0.5, 1.5], n),
    "wide": lambda rng, n: 10.0 ** rng.uniform(-37, 30, n),
    "subnormal": lambda rng, n: rng.choice([0, 1e-45, 1e-40, 1e-39, 2e-38], n),
}
JITTED = {
    ops: (jax.jit(ops.assign), jax.jit(ops.assign_range, static_argnums=3), jax.jit(ops.draw))
    for ops in FORMS
}


def assert_equal_bits(found, wanted):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def filled(capacity, seed=0):
    weights = jnp.asarray(np.random.default_rng(seed).random(capacity), jnp.float32)
    return sum_tree.assign(sum_tree.init(capacity), jnp.arange(capacity, dtype=jnp.int32), weights)


def several(capacity, num):
    weights = jnp.asarray(np.random.default_rng(num).random((num, capacity)), jnp.float32)
    fill = jax.vmap(sum_tree.assign_range, (None, None, 0, None))
    return fill(sum_tree.init(capacity), jnp.int32(0), weights, capacity)


def each(ops, function):
    """`function` over leading axes; the definition tree by tree: mapped, its divisions differ."""
    if ops is sum_tree_native:
        return jax.vmap(function)
    return lambda *operands: jax.lax.map(lambda one: function(*one), operands)


def randoms(seed, *shape):
    rng = np.random.default_rng(seed)
    words = jnp.asarray(rng.integers(0, 2**32, (*shape[:-1], 2, shape[-1])), jnp.uint32)
    return jnp.asarray(rng.random(shape), jnp.float32), words


@needs_kernels
@pytest.mark.parametrize("capacity", quick.only([1, 1000], [1, 5, 8, 9, 20, 100, 1000, 300_000]))
def test_histories_agree(capacity):
    rng = np.random.default_rng(capacity)
    trees = [sum_tree.init(capacity)] * 2
    names = list(WEIGHTS)
    for _ in range(25):
        n = int(rng.choice([1, 16, 300]))
        make = WEIGHTS[names[rng.integers(len(names))]]
        if rng.random() < 0.5:
            n = min(n, capacity)
            first, weights = jnp.int32(rng.integers(capacity)), jnp.asarray(make(rng, n), "float32")
            trees = [
                JITTED[ops][1](tree, first, weights, capacity)
                for ops, tree in zip(FORMS, trees, strict=True)
            ]
        else:
            most = capacity if rng.random() < 0.5 else min(capacity, 50)
            slots = rng.integers(-2, most + 2, n)
            slots[rng.random(n) < 0.02] = rng.choice([-(2**31), 2**31 - 1])
            slots, weights = jnp.asarray(slots, jnp.int32), jnp.asarray(make(rng, n), jnp.float32)
            trees = [
                JITTED[ops][0](tree, slots, weights) for ops, tree in zip(FORMS, trees, strict=True)
            ]
        assert_equal_bits(*reversed(trees))
        where = randoms(rng.integers(2**31), 64)
        assert_equal_bits(*(JITTED[ops][2](trees[0], *where) for ops in FORMS))


@needs_kernels
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(-2, 21), min_size=4, max_size=4),
            st.lists(st.floats(0, 2, width=32), min_size=4, max_size=4),
            st.booleans(),
            st.integers(0, 2**32 - 1),
        ),
        max_size=8,
    )
)
def test_short_histories_agree(steps):
    trees = [sum_tree.init(20)] * 2
    for slots, weights, is_range, word in steps:
        slots, weights = jnp.asarray(slots, jnp.int32), jnp.asarray(weights, jnp.float32)
        first = jnp.clip(slots[0], 0, 19)
        for k, ops in enumerate(FORMS):
            assign, assign_range, _ = JITTED[ops]
            trees[k] = (
                assign_range(trees[k], first, weights, 20)
                if is_range
                else assign(trees[k], slots, weights)
            )
        assert_equal_bits(*reversed(trees))
        words = jnp.full((2, 4), word, jnp.uint32)
        positions = jnp.asarray([0, 0.25, 0.5, word / 2**33], jnp.float32)
        assert_equal_bits(*(JITTED[ops][2](trees[0], positions, words) for ops in FORMS))


@needs_kernels
@pytest.mark.long  # compiles draws of three capacities
def test_draws_at_the_edges_between_leaves_agree():
    """Random words next to where the choice of a leaf changes: products must be rounded alike."""
    for capacity in (8, 16, 32):
        tree = filled(capacity, capacity)
        cumulated = np.cumsum(np.asarray(tree.leaves, np.float64)) / float(tree.total)
        around = (cumulated[:, None] * 2**24 + np.arange(-3, 4)).clip(0, 2**24 - 1).reshape(-1)
        words = jnp.asarray(around.astype(np.uint32) << 8)
        positions = jnp.asarray(around.astype(np.uint32) * 2.0**-24, jnp.float32)
        for pair in ([words, words], [words[::-1], words], [words, words[::-1]]):
            drawn = (JITTED[ops][2](tree, positions, jnp.stack(pair)) for ops in FORMS)
            assert_equal_bits(*drawn)


def steps_of(ops, capacity):
    def step(tree, inputs):
        first, weights, positions, words = inputs
        tree = ops.assign_range(tree, first, weights[:4], capacity)
        slots, probabilities = ops.draw(tree, positions, words)
        return ops.assign(tree, slots, weights), (slots, probabilities)

    return step


def inputs_of(capacity, *shape):
    rng = np.random.default_rng(7)
    first = jnp.asarray(rng.integers(0, capacity, shape[:-1]), jnp.int32)
    weights = jnp.asarray(rng.random(shape), jnp.float32)
    return first, weights, *randoms(3, *shape)


@needs_kernels
@pytest.mark.slow  # a scan and maps, as in tests of either
@pytest.mark.parametrize("capacity", [50, 70_000])
def test_vmapped_scans_agree(capacity):
    trees = several(capacity, 3)
    inputs = inputs_of(capacity, 3, 6, 16)
    results = []
    for ops in FORMS:
        step = steps_of(ops, capacity)
        run = each(ops, lambda tree, x, step=step: jax.lax.scan(step, tree, x))
        results.append(jax.jit(run)(trees, inputs))
    assert_equal_bits(*results)


@needs_kernels
@pytest.mark.long  # compiles both forms
def test_many_trees_on_many_threads_agree():
    capacity, num = 1000, 12
    trees = several(capacity, num)
    inputs = inputs_of(capacity, num, 500)
    assert_equal_bits(
        *(jax.jit(each(ops, steps_of(ops, capacity)))(trees, inputs) for ops in FORMS)
    )


@needs_kernels
@pytest.mark.long  # compiles each way of mapping
def test_vmapped_draws_may_share_a_tree():
    trees, (positions, words) = several(30, 2), randoms(4, 3, 5)
    one = [jax.tree.map(lambda x, t=t: x[t], trees) for t in range(2)]
    by_tree = [
        [JITTED[sum_tree][2](tree, positions[k], words[k]) for k in range(3)] for tree in one
    ]

    def stack(rows):
        return jax.tree.map(lambda *x: jnp.stack(x), *rows)

    over_words = jax.vmap(sum_tree_native.draw, (None, 0, 0))
    assert_equal_bits(over_words(one[0], positions, words), stack(by_tree[0]))
    trees_outside = jax.vmap(over_words, (0, None, None))(trees, positions, words)
    assert_equal_bits(trees_outside, stack([stack(rows) for rows in by_tree]))
    over_trees = jax.vmap(sum_tree_native.draw, (0, None, None))
    trees_inside = jax.vmap(over_trees, (None, 0, 0))(trees, positions, words)
    assert_equal_bits(trees_inside, stack([stack(rows) for rows in zip(*by_tree, strict=True)]))


@needs_kernels
@pytest.mark.long  # compiles each way of mapping
def test_vmapped_assignments_may_share_a_tree_or_what_is_assigned():
    slots, weights = jnp.asarray([3, 1, 1], jnp.int32), jnp.asarray([0.5, 0.25, 4], jnp.float32)
    for axes, tree, at in (
        ((0, None, None), several(30, 2), slots),
        ((None, 0, None), filled(30), jnp.stack([slots, slots + 1])),
    ):
        assert_equal_bits(*(jax.vmap(ops.assign, axes)(tree, at, weights) for ops in FORMS))


@needs_kernels
@pytest.mark.long  # compiles both forms
def test_shards_agree():
    mesh = Mesh(np.asarray(jax.devices()[:2]), ("x",))
    trees = several(100, 4)
    inputs = inputs_of(100, 4, 16)
    results = []
    for ops in FORMS:
        step = each(ops, steps_of(ops, 100))
        spec = PartitionSpec("x")
        results.append(
            jax.jit(jax.shard_map(step, mesh=mesh, in_specs=spec, out_specs=spec))(trees, inputs)
        )
    assert_equal_bits(*results)


@needs_kernels
@pytest.mark.long  # compiles three assignments
def test_only_a_donated_tree_is_changed():
    tree, before = filled(500), filled(500)
    slots, weights = jnp.arange(5, dtype=jnp.int32), jnp.full(5, 7, jnp.float32)
    kept = jax.jit(sum_tree_native.assign)(tree, slots, weights)
    assert_equal_bits(tree, before)
    assert_equal_bits(sum_tree_native.assign(tree, slots, weights), kept)
    assert_equal_bits(tree, before)
    given_up = jax.jit(sum_tree_native.assign, donate_argnums=0)(tree, slots, weights)
    assert tree.leaves.is_deleted()
    assert_equal_bits(given_up, kept)


@needs_kernels
@pytest.mark.long  # compiles both forms
def test_leaves_may_be_their_own_weights():
    tree = filled(64)
    slots = jnp.arange(64, dtype=jnp.int32)[::-1]

    def turn(ops):
        return jax.jit(lambda t: ops.assign(t, slots, t.leaves), donate_argnums=0)

    assert_equal_bits(turn(sum_tree_native)(filled(64)), turn(sum_tree)(tree))


@needs_kernels
@pytest.mark.parametrize("capacity", quick.only([20_000], [20_000, 300_000]))
def test_a_scan_changes_the_tree_in_place(capacity):
    step = steps_of(sum_tree_native, capacity)
    testing.assert_inplace(
        lambda tree, inputs: jax.lax.scan(step, tree, inputs),
        filled(capacity),
        inputs_of(capacity, 3, 16),
    )


@needs_kernels
def test_nothing_to_assign_or_draw():
    tree, none = filled(9), jnp.zeros(0, jnp.float32)
    assert_equal_bits(sum_tree_native.assign(tree, jnp.zeros(0, jnp.int32), none), tree)
    assert_equal_bits(sum_tree_native.assign_range(tree, jnp.int32(3), none, 9), tree)
    slots, _ = sum_tree_native.draw(tree, none, jnp.zeros((2, 0), jnp.uint32))
    assert slots.shape == (0,)


@needs_kernels
def test_nonsense_stays_inside():
    bad = jnp.asarray([np.nan, np.inf, -np.inf, -1, 2, 1e30], jnp.float32)
    words = jnp.full((2, 6), 2**32 - 1, jnp.uint32)
    slots = jnp.asarray([-(2**31), 2**31 - 1, -1, 0, 99, 104], jnp.int32)
    tree = sum_tree_native.assign(filled(100), slots, bad)
    for state in (filled(100), tree):
        drawn, _ = sum_tree_native.draw(state, bad, words)
        assert ((drawn >= 0) & (drawn < state.leaves.size)).all()
    for first in (-(2**31), -3, 99, 2**31 - 1):
        sum_tree_native.assign_range(filled(100), jnp.int32(first), bad, 100)


@needs_kernels
def test_bad_operands_are_refused():
    tree, slots, weights = filled(9), jnp.zeros(3, jnp.int32), jnp.zeros(3, jnp.float32)
    positions, words = randoms(0, 3)
    with pytest.raises(TypeError, match="slots must be int32, got float32"):
        sum_tree_native.assign(tree, weights, weights)
    with pytest.raises(TypeError, match="weights must be float32, got int32"):
        sum_tree_native.assign(tree, slots, slots)
    with pytest.raises(ValueError, match=r"slots must have shape \(3,\), got \(2,\)"):
        sum_tree_native.assign(tree, slots[:2], weights)
    with pytest.raises(ValueError, match=r"first must have shape \(\), got \(3,\)"):
        sum_tree_native.assign_range(tree, slots, weights, 9)
    with pytest.raises(ValueError, match=r"words must have shape \(2, 3\), got \(3,\)"):
        sum_tree_native.draw(tree, positions, words[0])
    with pytest.raises(FAILURES, match="capacity must be in"):
        jax.block_until_ready(sum_tree_native.assign_range(tree, slots[0], weights, 0))
    wrong = dataclasses.replace(tree, leaves=tree.leaves[:12])
    with pytest.raises(FAILURES, match="leaves must be 8 for every 4 of the heap's 8 numbers"):
        jax.block_until_ready(sum_tree_native.assign(wrong, slots, weights))


@pytest.fixture
def absent_kernels(monkeypatch):
    """Turn the kernels off, for this test only."""
    for cached in (native.library, native.target):
        cached.cache_clear()
    monkeypatch.setenv(native.VARIABLE, "")
    yield
    monkeypatch.undo()
    for cached in (native.library, native.target):
        cached.cache_clear()


def after_a_draw(form):
    sampler = prioritised(form)(Ring(40), False)
    state = sampler.assign_range(sampler.init(), jnp.int32(38), jnp.arange(1, 6, dtype="float32"))
    state = sampler.assign(state, jnp.asarray([1, 1], jnp.int32), jnp.asarray([9, 0.3], "float32"))
    span = Span(jnp.int32(38), jnp.int32(5))
    return state, sampler.draw(state, span, *randoms(0, 8)), sampler.highest(state)


@needs_kernels
@pytest.mark.long  # runs both forms without jit
def test_auto_is_native_here_and_native_is_the_tree():
    lowered = jax.jit(lambda: after_a_draw("auto")).lower().as_text()
    assert "accel_rl_sum_tree_draw" in lowered
    assert_equal_bits(after_a_draw("native"), after_a_draw("tree"))


@pytest.mark.usefixtures("absent_kernels")
def test_without_kernels_auto_is_the_tree_and_native_says_why():
    assert_equal_bits(after_a_draw("auto"), after_a_draw("tree"))
    make = prioritised("native")
    with pytest.raises(native.KernelsAbsent, match="turns the native kernels off"):
        make(Ring(40), False)


@needs_kernels
def test_importing_replay_loads_no_library():
    if not pathlib.Path("/proc/self/maps").exists():
        pytest.skip("no /proc: loaded libraries cannot be listed")
    program = (
        "import accel_rl.replay as r; r.prioritised('native');"
        "print('accel_rl_kernels' in open('/proc/self/maps').read())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
