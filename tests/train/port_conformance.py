"""What every replay port must do: `check_port(make_port)`; see docs/pipelined.md.

`make_port(example, capacity, batch_size, *, num_envs, n_step, sampler, alpha)` makes an empty port,
as `replay.make` makes a memory; sampler is "uniform" or "prioritised", of which alpha is the
exponent. Truth is NumPy, never the library's own memory.
"""

import dataclasses
import threading
import time

import jax
import numpy as np
import pytest

from accel_rl.types import Transition

ENVS, CAPACITY, BATCH, ALPHA = 2, 64, 8, 0.5
ROWS = CAPACITY // ENVS


def check_port(make_port, *, one_highest=True):
    """Raises AssertionError where a port does not do what it must.

    Without `one_highest`, what items without priority get is left out: of a memory in parts, each
    has a highest priority of its own.
    """
    for n_step in (1, 3):
        _targets(make_port, n_step)
    _readiness(make_port)
    _priorities(make_port, one_highest)
    _stale_updates(make_port)
    _errors(make_port)
    _threads(make_port)


class Steps:
    """A log of steps, each of which its observation tells: t * ENVS + e."""

    def __init__(self, length, seed=0):
        rng = np.random.default_rng(seed)
        shape = length, ENVS
        self.number = np.arange(length * ENVS, dtype=np.float32).reshape(shape)
        self.reward = rng.normal(size=shape).astype(np.float32)
        self.discount = (rng.random(shape) > 0.15).astype(np.float32)
        self.truncated = rng.random(shape) < 0.15

    def rows(self, first, last=None):
        """Steps [first, last) of all environments; one step, without its axis, if last is None."""
        at = first if last is None else slice(first, last)
        number = self.number[at]
        return Transition(
            observation=np.stack([number, -number], axis=-1),
            action=number.astype(np.int32) % 5,
            reward=self.reward[at],
            discount=self.discount[at],
            truncated=self.truncated[at],
            next_observation=np.stack([number + 0.5, -number], axis=-1),
            extras=number.astype(np.int32),
        )

    def target(self, t, e, n, gamma):
        """Reward, discount and next observation of the item of step t."""
        reward, weight = 0.0, 1.0
        for k in range(n):
            reward += weight * self.reward[t + k, e]
            weight *= gamma * self.discount[t + k, e]
            if self.discount[t + k, e] == 0 or self.truncated[t + k, e]:
                break
        return reward, weight, self.number[t + k, e] + 0.5

    def check(self, sample, first, last, n, gamma):
        """Every item is one of steps [first, last), with its own target; their steps' numbers."""
        batch = jax.tree.map(np.asarray, sample.batch)
        for field, dtype in (("observation", "f4"), ("action", "i4"), ("reward", "f4")):
            assert getattr(batch, field).dtype == np.dtype(dtype), field
        numbers = batch.observation[:, 0]
        assert batch.observation.shape == (BATCH, 2)
        np.testing.assert_array_equal(batch.observation[:, 1], -numbers)
        np.testing.assert_array_equal(batch.extras, numbers.astype(np.int32))
        np.testing.assert_array_equal(batch.action, numbers.astype(np.int32) % 5)
        for item, number in enumerate(numbers.astype(int)):
            t, e = divmod(number, ENVS)
            assert first <= t < last, (t, first, last)
            reward, discount, after = self.target(t, e, n, gamma)
            np.testing.assert_allclose(batch.reward[item], reward, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(batch.discount[item], discount, rtol=1e-6)
            assert batch.next_observation[item, 0] == after
        return numbers.astype(int)


EXAMPLE = Transition(
    observation=jax.ShapeDtypeStruct((2,), np.float32),
    action=jax.ShapeDtypeStruct((), np.int32),
    reward=jax.ShapeDtypeStruct((), np.float32),
    discount=jax.ShapeDtypeStruct((), np.float32),
    truncated=jax.ShapeDtypeStruct((), np.bool_),
    next_observation=jax.ShapeDtypeStruct((2,), np.float32),
    extras=jax.ShapeDtypeStruct((), np.int32),
)


def _make(make_port, sampler="prioritised", n_step=1):
    options = {"num_envs": ENVS, "n_step": n_step, "sampler": sampler, "alpha": ALPHA}
    return make_port(EXAMPLE, CAPACITY, BATCH, **options)


def _targets(make_port, n):
    """n-step targets of complete items, also around the end of the memory, however added."""
    port, steps, gamma = _make(make_port, "uniform", n), Steps(ROWS + 9), 0.9
    try:
        port.add(steps.rows(0, 6))
        port.add(steps.rows(6))
        drawn = set()
        for number in range(8):
            sample = port.sample(jax.random.key(number), 1.0, gamma)
            drawn.update(steps.check(sample, 0, 7 - n + 1, n, gamma))
            np.testing.assert_allclose(sample.weights, 1, rtol=1e-6)
            np.testing.assert_allclose(sample.probabilities, 1 / (ENVS * (8 - n)), rtol=1e-5)
        assert len(drawn) > ENVS * (8 - n) / 2
        for t in range(7, ROWS + 9):
            port.add(steps.rows(t))
        for number in range(8):
            sample = port.sample(jax.random.key(number), 0.5, gamma)
            steps.check(sample, 9, ROWS + 9 - n + 1, n, gamma)
        one, same, other = (port.sample(jax.random.key(key), 1.0, gamma) for key in (5, 5, 6))
        np.testing.assert_array_equal(one.indices, same.indices)
        assert not np.array_equal(one.indices, other.indices)
    finally:
        port.close()


def _readiness(make_port):
    """A sample waits until there are batch_size complete items."""
    port, steps = _make(make_port, "uniform", 2), Steps(BATCH)
    found = []
    try:
        assert port.can_sample() is False
        waiting = threading.Thread(
            target=lambda: found.append(port.sample(jax.random.key(0), 1.0, 0.9)), daemon=True
        )
        waiting.start()
        complete = BATCH // ENVS
        port.add(steps.rows(0, complete))  # the last of which is not complete
        assert port.can_sample() is False
        time.sleep(0.1)
        assert not found
        port.add(steps.rows(complete))
        assert port.can_sample() is True
        waiting.join(30)
        steps.check(found[0], 0, complete, 2, 0.9)
    finally:
        port.close()


def _check_odds(port, steps, weights, beta, rounds=4):
    """Probabilities and importance-sampling weights are those of the items' weights, by number."""
    total = sum(weights.values())
    for number in range(rounds):
        sample = port.sample(jax.random.key(number), beta, 0.9)
        drawn = np.asarray(sample.batch.observation)[:, 0].astype(int)
        odds = np.array([weights[each] / total for each in drawn])
        np.testing.assert_allclose(sample.probabilities, odds, rtol=1e-4)
        importance = (odds / odds.min()) ** -beta
        np.testing.assert_allclose(sample.weights, importance, rtol=1e-4)


def _priorities(make_port, one_highest):
    """Items are drawn in proportion to priority^alpha, whoever gave it."""
    port, steps = _make(make_port), Steps(12)
    try:
        port.add(steps.rows(0, 8))
        weights = dict.fromkeys(range(8 * ENVS), 1.0)
        _check_odds(port, steps, weights, 0.4)
        sample = port.sample(jax.random.key(9), 1.0, 0.9)
        drawn = np.asarray(sample.batch.observation)[:, 0].astype(int)
        priorities = np.linspace(0.5, 4, BATCH).astype(np.float32)
        port.update(sample, priorities)
        weights.update(zip(drawn, priorities**ALPHA, strict=True))  # the last for an item stays
        _check_odds(port, steps, weights, 1.0)
        highest = max(weights.values())
        own = None if one_highest else np.full(ENVS, highest ** (1 / ALPHA), np.float32)
        port.add(steps.rows(8), own)
        weights.update(dict.fromkeys(range(8 * ENVS, 9 * ENVS), highest))
        given = np.array([[0.25, 9.0], [1.0, 0.0]], np.float32)
        port.add(steps.rows(9, 11), given)
        port.add(steps.rows(11), np.array([2.0, 3.0], np.float32))
        given = np.append(given.ravel(), [2.0, 3.0])
        weights.update(zip(range(9 * ENVS, 12 * ENVS), given**ALPHA, strict=True))
        _check_odds(port, steps, weights, 0.5)
        # What is no priority changes nothing; a sample without its batch will do, also of NumPy.
        sample = dataclasses.replace(port.sample(jax.random.key(1), 1.0, 0.9), batch=None)
        bad = np.resize(np.array([np.nan, -1, np.inf], np.float32), BATCH)
        port.update(jax.tree.map(np.asarray, sample), bad)
        _check_odds(port, steps, weights, 0.5)
    finally:
        port.close()


def _stale_updates(make_port):
    """Priorities of items that were overwritten do not go to those that took their place."""
    port, steps = _make(make_port), Steps(ROWS + 4)
    try:
        port.add(steps.rows(0, 5))
        sample = port.sample(jax.random.key(0), 1.0, 0.9)
        for t in range(5, ROWS + 3):
            port.add(steps.rows(t))  # which leaves the steps from 3 on
        drawn = np.asarray(sample.batch.observation)[:, 0].astype(int)
        assert (drawn < 3 * ENVS).any()
        port.update(sample, np.full(BATCH, 100.0, np.float32))
        weights = dict.fromkeys(range(3 * ENVS, (ROWS + 3) * ENVS), 1.0)
        weights.update((each, 100.0**ALPHA) for each in drawn if each >= 3 * ENVS)
        _check_odds(port, steps, weights, 1.0, rounds=8)
    finally:
        port.close()


def _errors(make_port):
    port, steps = _make(make_port), Steps(8)
    wrong = jax.tree.map(lambda leaf: leaf[:1], steps.rows(0))
    with pytest.raises(ValueError, match="transitions"):
        port.add(wrong)
    with pytest.raises(ValueError, match="priorities"):
        port.add(steps.rows(0), np.ones(ENVS + 1, np.float32))
    port.add(steps.rows(0, 8))
    for beta in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="beta must be finite and at least 0, got"):
            port.sample(jax.random.key(0), beta, 0.9)
    for gamma in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="gamma must be from 0 to 1, got"):
            port.sample(jax.random.key(0), 1.0, gamma)
    sample = port.sample(jax.random.key(0), 1.0, 0.9)
    with pytest.raises(ValueError, match="priorities"):
        port.update(sample, np.ones(BATCH - 1, np.float32))
    port.close()
    port.close()
    for call in (
        lambda: port.add(steps.rows(0)),
        port.can_sample,
        lambda: port.sample(jax.random.key(0), 1.0, 0.9),
        lambda: port.update(sample, np.ones(BATCH, np.float32)),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def _threads(make_port):
    """Threads may call at the same time; closing wakes one that waits."""
    port, steps = _make(make_port), Steps(ROWS * 3)
    samples, errors = [], []

    def guarded(work):
        def run():
            try:
                work()
            except Exception as error:
                errors.append(error)

        return threading.Thread(target=run, daemon=True)

    def add():
        for t in range(ROWS * 3):
            port.add(steps.rows(t))

    def sample():
        for number in range(40):
            samples.append(port.sample(jax.random.key(number), 0.5, 0.9))

    def update():
        for number in range(40):
            while len(samples) <= number and not errors:
                time.sleep(0.001)
            port.update(samples[number], np.full(BATCH, 2.0, np.float32))

    threads = [guarded(work) for work in (add, sample, update)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not errors, errors
    assert len(samples) == 40
    for each in samples:
        steps.check(each, 0, ROWS * 3, 1, 0.9)
    port.close()
    port = _make(make_port)
    waiting = guarded(lambda: port.sample(jax.random.key(0), 1.0, 0.9))
    waiting.start()
    time.sleep(0.1)
    port.close()
    waiting.join(30)
    assert not waiting.is_alive()
    assert isinstance(errors[0], RuntimeError)
    assert "closed" in str(errors[0])
