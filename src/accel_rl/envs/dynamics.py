"""Dynamics of a finite MDP, with a single 32-bit random word for a whole step.

A word is decoded like an arithmetic code. The possible results divide the range of words into
intervals; the interval that contains the word is the result. The word's position inside it,
stretched back to 32 bits, is the random word of the next draw. One word thus serves the action, the
outcome and the first state of the next episode; a PRNG key for each would cost far more than the
step itself.

Exactness: a draw from n equally likely results leaves a word with 2^32 / n equally likely values.
After draws with n_1, ..., n_m results (n = 1 / p for an outcome of probability p), the relative
error of every joint probability is at most n_1 ... n_m / 2^32. The worst environment here is Taxi
in the rain: 6 actions, outcomes of 0.1 and 300 first states, hence 4.2e-6.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.types import MDP, Array, ArrayLike
from accel_rl.words import high_product

_WORD = 2**32


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class MDPSampler:
    """Tables of an MDP, prepared for sampling from 32-bit words.

    Outcomes are the MDP's, with the possible ones first. A draw selects outcome k if the word
    exceeds `last[k-1]` but not `last[k]`. `last` and `stretch` are None if K is 1; `start_last` and
    `start_stretch` are None if all first states are equally likely.
    """

    next_state: Array  # [S, A, K] int32
    reward: Array  # [S, A, K] float32
    terminated: Array  # [S, A, K] bool
    last: Array | None  # [S, A, K] uint32, the last word of each outcome's interval
    stretch: Array | None  # [S, A, K, 2] uint32, 2^32 / width: whole part, fraction times 2^32
    start: Array  # [M] int32, the possible first states
    start_last: Array | None  # [M] uint32, as `last`
    start_stretch: Array | None  # [M, 2] uint32, as `stretch`


def make_sampler(mdp: MDP) -> MDPSampler:
    """Prepare the tables of an MDP for `step` and `reset`.

    Runs on the host: the values of `mdp` must be concrete, so call it outside `jit` and `vmap`.

    Args:
        mdp: the tables; probabilities are normalised in float64.

    Returns:
        The sampler, a pytree of arrays; samplers of equal shapes can be stacked for `vmap`.
    """
    _check_shapes(mdp)
    # A policy is also represented as an MDP of one action, whose results, actions, may exceed S.
    probability, initial = check_tables(mdp, _WORD // 2 if mdp.num_actions == 1 else None)
    last, stretch, order = _intervals(probability)

    def ordered(table: Array, dtype: type) -> Array:
        return jnp.asarray(np.take_along_axis(np.asarray(table), order, axis=-1), dtype)

    start = np.flatnonzero(initial)
    uniform = np.allclose(initial[start], 1 / len(start), rtol=1e-5, atol=0)
    start_last, start_stretch, start_order = _intervals(initial[start])
    stochastic = probability.shape[-1] > 1
    return MDPSampler(
        next_state=ordered(mdp.next_state, jnp.int32),
        reward=ordered(mdp.reward, jnp.float32),
        terminated=ordered(mdp.terminated, jnp.bool_),
        last=jnp.asarray(last) if stochastic else None,
        stretch=jnp.asarray(stretch) if stochastic else None,
        start=jnp.asarray(start[start_order], jnp.int32),
        start_last=None if uniform else jnp.asarray(start_last),
        start_stretch=None if uniform else jnp.asarray(start_stretch),
    )


def check_tables(mdp: MDP, limit: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Check the tables of an MDP, whose values must be concrete.

    Args:
        mdp: the tables.
        limit: exclusive upper bound of next states; S if None.

    Returns:
        probability: [S, A, K] float64, each row scaled to sum to 1.
        initial: [S] float64, likewise.
    """
    _check_shapes(mdp)
    check_next_state(mdp, mdp.num_states if limit is None else limit)
    _require("reward", mdp.reward, np.isfinite, "finite")
    return _distribution("probability", mdp.probability), _distribution("initial", mdp.initial)


def check_next_state(mdp: MDP, limit: int) -> None:
    """Raise ValueError unless every next state, possible or not, is in [0, limit).

    `make_sampler` checks this for S, except in tables of one action, which the caller checks.
    """
    _require("next_state", mdp.next_state, lambda s: (s >= 0) & (s < limit), f"in [0, {limit})")


def choose(bits: Array, n: int) -> tuple[Array, Array]:
    """Draw an index uniformly from [0, n).

    The index is the high word of the 64-bit product `bits * n`, the remaining randomness the low
    word. Each index is selected by floor or ceil(2^32 / n) words, so the error of its probability
    is below 2^-32.

    Args:
        bits: [...] uint32, uniformly distributed words.
        n: number of results, 1 to 2^31.

    Returns:
        index: [...] int32 in [0, n).
        bits: [...] uint32, the remaining randomness, uniform on a grid of spacing n.
    """
    whole("n", n, 1, 2**31)
    if n == 1:
        return jnp.zeros_like(bits, jnp.int32), bits
    return high_product(bits, jnp.uint32(n)).astype(jnp.int32), bits * jnp.uint32(n)


def step(
    sampler: MDPSampler, state: Array, action: Array, bits: Array
) -> tuple[Array, Array, Array, Array]:
    """Take one action in each of a batch of states.

    Args:
        sampler: from `make_sampler`.
        state: [...] int32 in [0, S).
        action: [...] int32 in [0, A).
        bits: [...] uint32, uniformly distributed words.

    Returns:
        next_state: [...] int32, before any reset.
        reward: [...] float32.
        terminated: [...] bool, True if `next_state` is terminal.
        bits: [...] uint32, the remaining randomness.
    """
    _, num_actions, num_outcomes = sampler.next_state.shape
    row = (state * num_actions + action) * num_outcomes
    if sampler.last is not None and sampler.stretch is not None:
        outcome = jnp.zeros_like(row)
        for k in range(num_outcomes - 1):
            outcome = outcome + (bits > _take(sampler.last, row + k)).astype(jnp.int32)
        bits = _leftover(sampler.last, sampler.stretch, row, outcome, bits)
        row = row + outcome
    return (
        _take(sampler.next_state, row),
        _take(sampler.reward, row),
        _take(sampler.terminated, row),
        bits,
    )


def reset(sampler: MDPSampler, bits: Array) -> tuple[Array, Array]:
    """Draw the first state of an episode.

    Args:
        sampler: from `make_sampler`.
        bits: [...] uint32, uniformly distributed words.

    Returns:
        state: [...] int32.
        bits: [...] uint32, the remaining randomness.
    """
    count = sampler.start.shape[0]
    if sampler.start_last is None or sampler.start_stretch is None:
        index, bits = choose(bits, count)
    else:
        index = jnp.searchsorted(sampler.start_last, bits).astype(jnp.int32)
        row = jnp.zeros_like(index)
        bits = _leftover(sampler.start_last, sampler.start_stretch, row, index, bits)
    return _take(sampler.start, index), bits


def _leftover(last: Array, stretch: Array, row: Array, index: Array, bits: Array) -> Array:
    """Return each word's position in its interval, stretched to the whole range of words."""
    first = jnp.where(index > 0, _take(last, row + index - 1) + 1, 0)
    pair = 2 * (row + index)
    whole, fraction = _take(stretch, pair), _take(stretch, pair + 1)
    offset = bits - first
    return offset * whole + high_product(offset, fraction)


def _take(table: Array, index: Array) -> Array:
    return table.reshape(-1).at[index].get(mode="clip", wrap_negative_indices=False)


def _check_shapes(mdp: MDP) -> None:
    tables = "probability", "next_state", "reward", "terminated"
    shape, *others = (np.shape(getattr(mdp, name)) for name in tables)
    initial = np.shape(mdp.initial)
    if len(shape) != 3 or 0 in shape or others != [shape] * 3 or initial != shape[:1]:
        raise ValueError(
            f"{', '.join(tables)} must have one shape [S, A, K], and initial [S], none of them 0, "
            f"got {[shape, *others, initial]}"
        )


def _distribution(name: str, table: Array) -> np.ndarray:
    """Check a probability table, and normalise it in float64 over its last axis."""
    values = np.asarray(table, np.float64)
    _require(name, values, lambda p: np.isfinite(p) & (p >= 0), "a probability")
    total = values.sum(axis=-1)
    _require(f"sum of {name}", total, lambda each: np.abs(each - 1) <= 1e-4, "1")
    return values / total[..., None]


def _require(
    name: str, table: ArrayLike, holds: Callable[[np.ndarray], np.ndarray], what: str
) -> None:
    """Raise ValueError at the first entry of a table for which a condition does not hold."""
    values = np.asarray(table)
    for where in np.argwhere(~holds(values))[:1].tolist():
        raise ValueError(f"{name}{where} must be {what}, got {values[tuple(where)]}")


def _intervals(probability: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide the words among outcomes; return last words, stretches and the outcomes' order.

    The possible outcomes come first, in their old order; the last of them ends at the last word.
    """
    width = np.diff(np.rint(np.cumsum(probability, axis=-1) * _WORD), axis=-1, prepend=0.0)
    order = np.argsort(width == 0, axis=-1, kind="stable")
    width = np.take_along_axis(width, order, axis=-1)
    last = np.minimum(np.cumsum(width, axis=-1), _WORD) - 1
    # Rounding may make the sum a word short or long; the last possible outcome absorbs the error.
    final = np.arange(width.shape[-1]) >= (width > 0).sum(axis=-1, keepdims=True) - 1
    last = np.where(final, _WORD - 1, last)
    width = np.maximum(np.diff(last, axis=-1, prepend=-1.0), 1)
    whole, fraction = np.divmod(_WORD / width, 1)
    # Rounded down, so that no stretched position exceeds the last word.
    stretch = np.stack([np.minimum(whole, _WORD - 1), np.floor(fraction * _WORD)], axis=-1)
    return last.astype(np.uint32), stretch.astype(np.uint32), order
