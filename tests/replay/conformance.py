"""Contract of replay buffers, whatever the sampler; see docs/replay.md.

Add a sampler to `SAMPLERS`, and `test_replay.py` puts it through all of `CHECKS`. A sampler whose
probabilities no formula gives has `probabilities=None`: those are then only looked at for sense.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from reference import Memory, after, play, target

from accel_rl import native, replay
from accel_rl.types import Transition

ALPHA, BATCH = 0.5, 64
EXAMPLE = {"id": np.int32(0), "x": np.zeros(2, np.float16)}
BAD = (np.nan, -1.0, -np.inf, np.inf)


def _proportional(weights):
    return weights / weights.sum()


@dataclasses.dataclass(frozen=True)
class Case:
    """A sampler under test."""

    make: Callable[[], Any]  # a MakeSampler
    prioritised: bool = True
    probabilities: Callable[[np.ndarray], np.ndarray] | None = _proportional  # of priority^alpha
    hyperparameters: dict = dataclasses.field(default_factory=lambda: {"alpha": ALPHA})


SAMPLERS = {
    "uniform": Case(replay.uniform, prioritised=False, hyperparameters={}),
    "tree": Case(lambda: replay.prioritised("tree")),
    "wide": Case(lambda: replay.prioritised("wide")),
    "rows": Case(lambda: replay.prioritised("rows")),
}
if native.why_absent() is None:
    SAMPLERS["native"] = Case(lambda: replay.prioritised("native"))

# --- a memory under test, compiled, beside its reference


class Pair:
    """A replay buffer of numbered items, compiled, and the reference that goes along."""

    def __init__(self, name, capacity, num_envs=None, **options):
        self.case = SAMPLERS[name]
        self.replay, self.add_, self.sample_, self.update_ = _compiled(
            name, capacity, num_envs, tuple(options.items())
        )
        self.state = self.replay.init(**self.case.hyperparameters)
        self.memory = Memory(
            capacity, num_envs or 1, alpha=ALPHA, is_prioritised=self.case.prioritised
        )
        self.axis = num_envs is not None
        self.count, self.draws = 0, 0

    def add(self, steps=1, priorities=None):
        """Add some steps; priorities [steps, envs]."""
        envs = self.memory.num_envs
        ids = self.count + np.arange(steps * envs, dtype=np.int32).reshape(steps, envs)
        self.count += ids.size
        shape = ids.shape if self.axis else (steps,)
        shape = shape[1:] if steps == 1 else shape  # a single step needs no axis
        items = items_of(ids.reshape(shape))
        given = None if priorities is None else np.float32(priorities).reshape(shape)
        self.state = self.add_(self.state, items, given)
        self.memory.add(ids.tolist(), priorities)

    def sample(self, beta=1.0):
        """A sample, checked against the reference."""
        self.draws += 1
        drawn = self.sample_(self.state, jax.random.key(self.draws), beta)
        check_sample(self.case, self.memory, drawn, beta)
        return drawn

    def update(self, drawn, priorities, where=True):
        """Update both."""
        priorities = np.broadcast_to(np.float32(priorities), BATCH)
        self.state = self.update_(self.state, drawn, priorities, where)
        if self.case.prioritised:
            self.memory.update(drawn.indices, drawn.generations, priorities, where)

    def set(self, priorities):
        """Give each drawable item, oldest first, the next of the priorities, by its slot."""
        chosen = {self.memory.slot(i): p for i, p in zip(self.memory.complete(), priorities)}  # noqa: B905
        left = set(chosen)
        while left:
            drawn = self.sample()
            here = np.array([chosen.get(int(slot), 0.0) for slot in drawn.indices], np.float32)
            known = np.array([int(slot) in left for slot in drawn.indices])
            assert known.any() or self.draws < 1000, "an item is never drawn"
            self.update(drawn, here, known)
            left -= {int(slot) for slot, p in zip(drawn.indices, here, strict=True) if p >= 0}


@functools.cache
def _compiled(name, capacity, num_envs, options):
    made = replay.make(
        EXAMPLE,
        capacity,
        BATCH,
        SAMPLERS[name].make(),
        num_envs=num_envs,
        least_size=1,
        **dict(options),
    )
    return made, jax.jit(made.add), jax.jit(made.sample), jax.jit(made.update)


def items_of(ids):
    """Items like the example, told apart by their number."""
    ids = np.asarray(ids, np.int32)
    return {"id": ids, "x": np.stack([ids, -ids], -1).astype(np.float16)}


def check_sample(case, memory, drawn, beta):
    """Assert that a sample says of its items what the reference says."""
    slots = np.asarray(drawn.indices)
    assert (slots.dtype, slots.shape) == (np.int32, (BATCH,))
    assert drawn.generations.dtype == jnp.uint32
    assert drawn.probabilities.dtype == drawn.weights.dtype == jnp.float32
    expected = memory.probabilities()
    assert set(slots.tolist()) <= set(expected), "drawn, but not complete or of priority 0"
    items = [memory.item_at(slot) for slot in slots.tolist()]
    np.testing.assert_array_equal(drawn.generations, [memory.generation(i) for i in items])
    want = items_of([memory.log[env][t] for t, env in items])
    jax.tree.map(np.testing.assert_array_equal, drawn.batch, want)
    assert jax.tree.map(lambda x: x.dtype, drawn.batch) == jax.tree.map(lambda x: x.dtype, want)
    p = np.asarray(drawn.probabilities, float)
    if case.probabilities is None:
        assert ((p > 0) & (p <= 1 + 1e-6)).all()
    else:
        order = sorted(expected)
        weights = np.array([memory.weights[memory.item_at(slot)] for slot in order])
        exact = dict(zip(order, case.probabilities(weights), strict=True))
        np.testing.assert_allclose(p, [exact[slot] for slot in slots.tolist()], rtol=2e-6)
    check_weights(p, drawn.weights, beta, p.min())


def check_weights(probabilities, weights, beta, least):
    """Assert (N p)^-beta over its maximum, for which N does not matter."""
    np.testing.assert_allclose(weights, (least / probabilities) ** beta, rtol=1e-5)
    assert ((np.asarray(weights) > 0) & (np.asarray(weights) <= 1)).all()


# --- checks: each takes the name of a sampler


def check_agrees_with_the_reference(name, capacity, num_envs):
    """Chunks of steps, parallel environments, several laps; samples and updates in between."""
    rng = np.random.default_rng(capacity)
    pair = Pair(name, capacity, num_envs)
    assert not pair.replay.can_sample(pair.state)
    assert pair.replay.size(pair.state) == 0
    chunks = [steps for steps in (1, 3, 5) if steps <= pair.memory.rows]
    shape = pair.memory.num_envs
    kept = None
    for k in range(40):
        steps = chunks[k % len(chunks)]
        given = rng.exponential(size=(steps, shape)) if k % 4 == 3 else None
        pair.add(steps, given)
        assert pair.replay.size(pair.state) == len(pair.memory.complete())
        assert pair.replay.can_sample(pair.state)
        drawn = pair.sample(beta=k / 40)
        # A late update touches what is left of an older sample.
        if kept is not None and k % 3 == 0:
            pair.update(kept, rng.exponential(size=BATCH), rng.random(BATCH) < 0.5)
            pair.sample()
        if k % 2:
            pair.update(drawn, rng.exponential(size=BATCH) + 1e-3)
        kept = drawn if k % 5 == 0 else kept
    assert len(pair.memory.log[0]) > 2 * pair.memory.rows or capacity == 64


def check_capacity_of_one(name):
    check_agrees_with_the_reference(name, 1, None)


def check_odd_capacity(name):
    check_agrees_with_the_reference(name, 7, None)


def check_parallel_environments(name):
    check_agrees_with_the_reference(name, 64, 4)


def check_eager_jit_vmap_and_scan_agree(name):
    """One program in four ways; sampled items are the same, numbers up to rounding."""
    case = SAMPLERS[name]
    made = _compiled(name, 7, None, ())[0]
    keys = jax.random.split(jax.random.key(5), 6)

    def step(state, inputs):
        key, number = inputs
        state = made.add(state, items_of_traced(number + jnp.arange(2, dtype=jnp.int32)))
        drawn = made.sample(state, key)
        return made.update(state, drawn, (drawn.batch["id"] % 3).astype(jnp.float32) + 0.5), drawn

    def scanned(first):
        numbers = first + 2 * jnp.arange(6, dtype=jnp.int32)
        return jax.lax.scan(step, made.init(**case.hyperparameters), (keys, numbers))

    program = jax.jit(scanned)
    one = program(jnp.int32(0))
    state, samples, compiled = made.init(**case.hyperparameters), [], jax.jit(step)
    for k, key in enumerate(keys):
        loop = compiled if k != 2 else step
        state, drawn = loop(state, (key, jnp.int32(2 * k)))
        samples.append(drawn)
    _assert_close(one, (state, jax.tree.map(lambda *x: np.stack(x), *samples)))
    several = jax.jit(jax.vmap(scanned))(jnp.int32([0, 1, 2]))
    _assert_close(one, jax.tree.map(lambda x: x[0], several))
    for seed in (1, 2):
        _assert_close(program(jnp.int32(seed)), jax.tree.map(lambda x, k=seed: x[k], several))


def items_of_traced(ids):
    return {"id": ids, "x": jnp.stack([ids, -ids], -1).astype(jnp.float16)}


def check_keys_and_hyperparameters_are_mapped(name):
    case = SAMPLERS[name]
    made, add, sample, _ = _compiled(name, 64, 4, ())
    state = made.init(**case.hyperparameters)
    state = add(state, items_of(np.arange(52).reshape(13, 4)))
    keys = jax.random.split(jax.random.key(1), 3)
    mapped = jax.jit(jax.vmap(made.sample, in_axes=(None, 0, 0)))
    many = mapped(state, keys, np.float32([0, 0.5, 1]))
    for k, key in enumerate(keys):
        alone = sample(state, key, np.float32(k / 2))
        _assert_close(alone, jax.tree.map(lambda x, k=k: x[k], many))
    assert not np.array_equal(many.indices[0], many.indices[1])
    if "alpha" not in case.hyperparameters:
        return

    made = _compiled(name, 7, None, ())[0]

    def probability(alpha):
        state = made.add(
            made.init(alpha=alpha), items_of_traced(jnp.arange(7, dtype=jnp.int32)), PRIORITIES
        )
        drawn = made.sample(state, keys[0])
        return drawn.indices, drawn.probabilities

    alphas = np.float32([0, 0.3, 1, 2])
    slots, found = jax.jit(jax.vmap(probability))(alphas)
    if case.probabilities is _proportional:
        for alpha, mine, p in zip(alphas, slots, found, strict=True):
            exact = _proportional(PRIORITIES.astype(float) ** alpha)
            np.testing.assert_allclose(p, exact[mine], rtol=2e-6)


PRIORITIES = np.float32([1, 2, 3, 4, 5, 6, 7])


def check_priorities_given_at_add(name):
    pair = Pair(name, 7)
    pair.add(7, PRIORITIES.reshape(7, 1))
    pair.sample()
    pair.add(1, [[20.0]])
    pair.sample()
    pair = Pair(name, 64, 4)
    pair.add(3, np.arange(1, 13).reshape(3, 4))
    pair.add(1, np.float32([[3, 1, 4, 2]]))
    for _ in range(3):
        pair.sample()


def check_new_items_get_the_present_maximum(name):
    """That of complete items now: it must come down when the largest does."""
    pair = Pair(name, 7)
    pair.add(3)
    pair.set([9.0, 2.0, 1.0])
    pair.add()
    assert pair.memory.weights[3, 0] == (3.0 if pair.case.prioritised else 1.0)
    for _ in range(3):
        pair.sample()
    pair.set([0.25, 0.5, 0.125, 0.25])
    pair.add()
    if pair.case.prioritised:
        np.testing.assert_allclose(pair.memory.weights[4, 0], 0.5**ALPHA)
    for _ in range(3):
        pair.sample()
    # The largest is overwritten: the next item gets what is the largest then.
    pair = Pair(name, 7)
    pair.add(7, np.float32([[9], [1], [2], [1], [1], [1], [1]]))
    pair.add()
    pair.add()
    pair.set([0.5] * 7)
    pair.add()
    for _ in range(3):
        pair.sample()


def check_late_updates_of_overwritten_items_are_dropped(name):
    pair = Pair(name, 7)
    pair.add(5)
    old = pair.sample()
    while not (np.asarray(old.indices) >= 3).any():  # few items are in AMPER's candidate sets
        old = pair.sample()
    pair.add(5)  # slots 0, 1 and 2 hold others now, 3 and 4 do not
    pair.update(old, 100.0)
    if pair.case.prioritised:
        changed = [i for i in pair.memory.complete() if pair.memory.weights[i] > 1]
        assert changed == [(slot, 0) for slot in (3, 4) if slot in old.indices]
    pair.sample()
    before = pair.state
    pair.add(5)
    pair.add(5)  # nothing is left of the sample
    untouched = pair.state
    pair.update(old, 1000.0)
    jax.tree.map(np.testing.assert_array_equal, pair.state.index, untouched.index)
    assert jax.tree.structure(before) == jax.tree.structure(pair.state)
    # The same slot a whole number of laps later.
    pair = Pair(name, 1)
    pair.add()
    old = pair.sample()
    for _ in range(3):
        pair.add()
    untouched = pair.state
    pair.update(old, 5.0)
    jax.tree.map(np.testing.assert_array_equal, pair.state.index, untouched.index)


def check_the_last_of_several_updates_stays(name):
    pair = Pair(name, 7)
    pair.add(3)
    rng = np.random.default_rng(3)
    for _ in range(10):  # 64 updates of 3 items
        pair.update(pair.sample(), rng.exponential(size=BATCH))
        pair.sample()
    # The last that is kept, not the last of all.
    drawn = pair.sample()
    priorities = np.where(np.arange(BATCH) < 40, rng.exponential(size=BATCH), np.nan)
    pair.update(drawn, priorities)
    pair.sample()
    drawn = pair.sample()
    pair.update(drawn, rng.exponential(size=BATCH), np.arange(BATCH) % 5 == 0)
    pair.sample()
    # Many at once, of one slot.
    pair = Pair(name, 1)
    pair.add()
    pair.update(pair.sample(), np.arange(1, BATCH + 1))
    pair.sample()


def check_items_of_priority_zero_are_never_drawn(name):
    pair = Pair(name, 64, 4)
    if not pair.case.prioritised:
        return
    pair.add(5)
    pair.add(5)
    pair.add(5)
    keep = np.arange(60) % 7 == 3
    pair.set(np.where(keep, 1.0, 0.0)[:60])
    assert sum(pair.memory.weights[i] > 0 for i in pair.memory.complete()) == keep.sum()
    for _ in range(20):
        pair.sample()  # asserts that what is drawn has a probability
    pair.add(1, [[0.0, 1.0, 0.0, 2.0]])
    for _ in range(20):
        pair.sample()


def check_a_memory_of_zeros_gives_weights_of_zero(name):
    """There is nothing to draw: slots mean nothing but can be read, and updates change nothing."""
    pair = Pair(name, 7)
    if not pair.case.prioritised:
        return
    pair.add(5, np.zeros((5, 1)))
    drawn = pair.sample_(pair.state, jax.random.key(0))
    np.testing.assert_array_equal(drawn.probabilities, 0)
    np.testing.assert_array_equal(drawn.weights, 0)
    assert not pair.replay.can_sample(pair.state)
    before = pair.state
    pair.update(drawn, 1.0)
    jax.tree.map(np.testing.assert_array_equal, before.index, pair.state.index)
    pair.memory.weights.update(dict.fromkeys(pair.memory.weights, 0.0))
    pair.add()  # of weight 1, for there is no larger
    np.testing.assert_array_equal(pair.sample().indices, 5)


def check_bad_priorities(name):
    """Eagerly a ValueError; compiled they are left out, and `checkify` tells."""
    pair = Pair(name, 7)
    pair.add(5, np.float32([[1], [2], [3], [4], [5]]))
    drawn = pair.sample()
    for bad in BAD:
        good = np.linspace(1, 2, BATCH).astype(np.float32)
        spoilt = np.where(np.arange(BATCH) % 3 == 0, np.float32(bad), good)
        with pytest.raises(ValueError, match="priorities must be finite and not negative"):
            pair.replay.update(pair.state, drawn, spoilt)
        with pytest.raises(ValueError, match="priorities must be finite and not negative"):
            pair.replay.add(pair.state, items_of(1), np.float32(bad))
        pair.update(drawn, spoilt)
        pair.sample()
        pair.update(drawn, np.full(BATCH, bad, np.float32))
        pair.sample()
    pair.add(1, [[np.nan]])  # as if none were given
    pair.sample()
    update = _compiled(name, 7, None, (("checked", True),))[0].update
    checked = jax.jit(checkify.checkify(update, errors=checkify.user_checks))
    error, _ = checked(pair.state, drawn, np.full(BATCH, np.nan, np.float32))
    with pytest.raises(checkify.JaxRuntimeError, match="priorities must be finite"):
        error.throw()
    error, _ = checked(pair.state, drawn, np.ones(BATCH, np.float32))
    error.throw()


def check_where_masks_updates(name):
    pair = Pair(name, 7)
    pair.add(5)
    drawn = pair.sample()
    before = pair.state
    pair.update(drawn, 3.0, np.bool_(False))
    jax.tree.map(np.testing.assert_array_equal, before.index, pair.state.index)
    slot = int(drawn.indices[0])
    pair.update(drawn, 3.0, np.asarray(drawn.indices) == slot)
    if pair.case.prioritised:
        assert [i for i in pair.memory.complete() if pair.memory.weights[i] > 1] == [(slot, 0)]
    pair.sample()
    pair.update(drawn, 4.0, np.bool_(True))
    pair.sample()


def check_sampling_too_little_is_refused(name):
    pair = Pair(name, 7)
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="sample needs 1 complete items: see can_sample"):
        pair.replay.sample(pair.state, key)
    sample = _compiled(name, 7, None, (("checked", True),))[0].sample
    checked = jax.jit(checkify.checkify(sample, errors=checkify.user_checks))
    with pytest.raises(checkify.JaxRuntimeError, match="sample needs"):
        checked(pair.state, key)[0].throw()
    pair.sample_(pair.state, key)  # compiled, without the check: nonsense, but no crash
    pair.add()
    checked(pair.state, key)[0].throw()


def check_can_sample_waits_for_enough(name):
    case = SAMPLERS[name]
    for envs, least in ((2, 5), (None, None)):
        made = replay.make(EXAMPLE, 12, 4, case.make(), num_envs=envs, least_size=least)
        state, add = made.init(**case.hyperparameters), jax.jit(made.add)
        for k in range(8):
            size = min((envs or 1) * k, 12)
            assert made.size(state) == size
            assert made.can_sample(state) == (size >= (least or 4))
            assert made.size(state).dtype == jnp.int32
            assert made.can_sample(state).dtype == bool
            state = add(state, items_of([2 * k, 2 * k + 1] if envs else k))


def check_weights_formula(name):
    case = SAMPLERS[name]
    knows_least = case.make()(replay.Ring(64), False).least is not None
    for over in ("batch", "buffer") if knows_least else ("batch",):
        pair = Pair(name, 64, 4, weights_over=over)
        pair.add(5, np.arange(1, 21).reshape(5, 4))
        probabilities = np.array(list(pair.memory.probabilities().values()))
        for beta in (0.0, 0.4, 1.0):
            drawn = pair.sample_(pair.state, jax.random.key(3), beta)
            p = np.asarray(drawn.probabilities, float)
            if over == "batch":
                check_weights(p, drawn.weights, beta, p.min())
            elif case.probabilities is not None:
                least = case.probabilities(probabilities).min()
                check_weights(p, drawn.weights, beta, least)


def check_transitions_have_n_step_targets(name):
    """Windows over several environments, the oldest and newest items, derived observations."""
    case, n, envs, capacity, gamma = SAMPLERS[name], 3, 4, 40, 0.9
    logs = play(np.random.default_rng(8), 40, envs, shape=(2,))
    example = Transition(
        np.zeros(2, np.float32), np.int32(0), np.float32(0), np.float32(1), np.bool_(False)
    )
    made = replay.make(example, capacity, BATCH, case.make(), num_envs=envs, n_step=n, least_size=1)
    memory = Memory(capacity, envs, n + 1, alpha=ALPHA, is_prioritised=case.prioritised)
    add = jax.jit(functools.partial(made.add, batch_major=False))
    sample, update = jax.jit(made.sample), jax.jit(made.update)
    state = made.init(**case.hyperparameters)
    rng = np.random.default_rng(1)
    for t, steps in enumerate([1, 2, 4] * 5):
        added = len(memory.log[0])
        rows = [[logs[e][added + j] for e in range(envs)] for j in range(steps)]
        state = add(state, transitions_of(rows, has_final=False))
        memory.add(rows, closed=[[step.truncated for step in row] for row in rows])
        assert made.size(state) == len(memory.complete())
        if not memory.probabilities():
            continue
        drawn = sample(state, jax.random.key(t), 1.0, gamma)
        expected = memory.probabilities()
        for k in range(BATCH):
            slot = int(drawn.indices[k])
            start, env = memory.item_at(slot)
            log = memory.log[env]
            reward, discount, steps = target(log, start, n, gamma, has_final=False)
            np.testing.assert_allclose(drawn.batch.reward[k], reward, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(drawn.batch.discount[k], discount, rtol=1e-6)
            np.testing.assert_array_equal(drawn.batch.observation[k], log[start].observation)
            np.testing.assert_array_equal(
                drawn.batch.next_observation[k], after(log, start + steps - 1, has_final=False)
            )
            assert drawn.batch.action[k] == log[start].action
            if case.probabilities is not None:
                np.testing.assert_allclose(drawn.probabilities[k], expected[slot], rtol=2e-6)
        if t % 2:
            priorities = rng.exponential(size=BATCH).astype(np.float32)
            state = update(state, drawn, priorities)
            if case.prioritised:
                memory.update(drawn.indices, drawn.generations, priorities)


def transitions_of(rows, has_final=True):
    """rows[step][env] of the reference's steps as one `Transition`, leaves [steps, envs, ...]."""

    def stacked(field):
        return np.stack([np.stack([getattr(step, field) for step in row]) for row in rows])

    return Transition(
        stacked("observation"),
        stacked("action"),
        stacked("reward").astype(np.float32),
        stacked("discount").astype(np.float32),
        stacked("truncated"),
        stacked("next_observation") if has_final else None,
    )


def _assert_close(one, other):
    def compare(a, b):
        if jnp.issubdtype(a.dtype, jnp.floating):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
        else:
            np.testing.assert_array_equal(a, b)

    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(compare, one, other)


HELPERS = "check_sample", "check_weights", "check_agrees_with_the_reference"
CHECKS = {
    name.removeprefix("check_"): check
    for name, check in dict(globals()).items()
    if name.startswith("check_") and name not in HELPERS
}
