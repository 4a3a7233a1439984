"""Contract check of samplers of a replay buffer; see docs/replay-sampler.md."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.replay import MakeSampler, Ring, Sampler, Span
from accel_rl.testing.expect import expect, expect_close, expect_equal
from accel_rl.types import Array, PyTree

CAPACITY, DRAWS = 12, 4096
# A sound sampler fails by chance in one of 1.7 million draws of a slot.
DEVIATIONS = 5.0

Probabilities = Callable[[np.ndarray], np.ndarray]


def proportional(weights: np.ndarray) -> np.ndarray:
    """Return the probability of each slot in sampling proportional to weights."""
    return weights / weights.sum()


def check_sampler(
    make: MakeSampler, probabilities: Probabilities | None = proportional, **hyperparameters: float
) -> None:
    """Check a sampler's contract on a ring of 12 slots, against weights kept in NumPy.

    The check is for samplers whose `prioritised` is true. `tests/replay/conformance.py` checks
    whole replay buffers, with episodes, late updates and windows. Frequencies must be within 5
    standard deviations of probabilities; PRNG keys are fixed.

    Args:
      make: constructor of the sampler, from a ring.
      probabilities: function from weights [capacity] to probabilities of slots [capacity]; None if
        there is no formula: draws must then agree with the sampler's own probabilities.
      **hyperparameters: arguments of the sampler's `init`.
    """
    sampler = make(Ring(CAPACITY), True)
    state = sampler.init(**hyperparameters)
    whole = Span(jnp.int32(0), jnp.int32(CAPACITY))
    expect_close(sampler.mass(state, whole), 0.0, "an empty memory has a mass")
    expect_close(sampler.highest(state), 0.0, "an empty memory has a highest weight")
    _check_draws(sampler, state, np.zeros(CAPACITY), None)

    priorities = np.array([0, 1e-3, 0.5, 1, 3, 100], np.float32)
    weights = np.asarray(jax.jit(sampler.scale)(state, priorities))
    expect_equal((weights[0] == 0, weights.dtype), (True, np.float32), "weight of 0, and dtype")
    expect((weights[1:] > 0) & np.isfinite(weights[1:]), "a weight must be above 0, and finite")
    expect(np.diff(weights) > 0, "weights must keep the order of priorities")

    mine, assign = np.zeros(CAPACITY, np.float32), jax.jit(sampler.assign)
    slots = np.array([3, 7, 3, -1, CAPACITY, 11, 3], np.int32)  # the last of slot 3 stays
    given = np.array([5, 2, 9, 50, 60, 0, 1], np.float32)
    state = assign(state, slots, given)
    for slot, weight in zip(slots, given, strict=True):
        if 0 <= slot < CAPACITY:
            mine[slot] = weight
    _check_draws(sampler, state, mine, probabilities)
    run = np.array([4, 0, 1, 2], np.float32)  # around the end
    state = jax.jit(sampler.assign_range)(state, np.int32(CAPACITY - 2), run)
    mine[np.arange(CAPACITY - 2, CAPACITY + 2) % CAPACITY] = run
    _check_draws(sampler, state, mine, probabilities)
    state = assign(state, np.array([10], np.int32), np.zeros(1, np.float32))
    mine[10] = 0
    _check_draws(sampler, state, mine, probabilities)


def _check_draws(
    sampler: Sampler, state: PyTree, weights: np.ndarray, probabilities: Probabilities | None
) -> None:
    """Check draws, their probabilities, mass, least and highest against weights in NumPy."""
    drawn = jax.jit(functools.partial(_draw, sampler))
    slots, told, mass, least, highest = map(np.asarray, drawn(state, jax.random.key(7)))
    expect_equal((slots.dtype, told.dtype), (np.int32, np.float32), "dtypes of a draw")
    expect((slots >= 0) & (slots < CAPACITY), "a slot that is drawn must be of the ring")
    expect_close(highest, weights.max(), "highest is not the largest weight")
    if not weights.any():
        expect(told == 0, "where there is nothing to draw probabilities must be 0")
        return
    expect(mass > 0, "mass must be above 0 where something can be drawn")
    expect(weights[slots] > 0, "a slot of weight 0 was drawn")
    expect(told > 0, "a slot that was drawn has probability 0")
    wanted = np.zeros(CAPACITY)
    wanted[slots] = told
    if probabilities is not None:
        wanted = probabilities(weights.astype(np.float64))
        expect_close(told, wanted[slots], "a probability is not what the weights make it")
        if sampler.least is not None:
            expect_close(least, wanted[weights > 0].min(), "least is not the smallest probability")
    share = np.bincount(slots, minlength=CAPACITY) / slots.size
    allowed = DEVIATIONS * np.sqrt(wanted * (1 - wanted) / slots.size) + 1e-6
    expect(np.abs(share - wanted) <= allowed, f"drawn {share}, which should be {wanted}")


def _draw(sampler: Sampler, state: PyTree, key: Array) -> tuple[Array, ...]:
    """Draw DRAWS slots; return them with probabilities, mass, least and highest."""
    span = Span(jnp.int32(0), jnp.int32(CAPACITY))
    first, second = jax.random.split(key)
    positions = jax.random.uniform(first, (DRAWS,))
    words = jax.random.bits(second, (sampler.num_words, DRAWS), jnp.uint32)
    slots, probabilities = sampler.draw(state, span, positions, words)
    least = jnp.float32(0) if sampler.least is None else sampler.least(state, span)
    return slots, probabilities, sampler.mass(state, span), least, sampler.highest(state)
