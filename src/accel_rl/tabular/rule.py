"""Contract of tabular update rules, and their common construction.

A rule moves one entry towards a target: Q(s, a) <- Q(s, a) + alpha * (target - Q(s, a)). Rules
differ only in the target's value of the next state, and in their random choices.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of, whole
from accel_rl.tabular.numerics import INT32_MAX, Kernel, Numerics, fp32
from accel_rl.tabular.rows import TabularRow, encode_transition
from accel_rl.types import Array, ArrayLike, TabularTransition


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Hyperparameters:
    """Rates of a rule; all are pytree leaves, so `vmap` over any of them sweeps it.

    The defaults of alpha and gamma are those of SwiftRL's public code.
    """

    alpha: ArrayLike = 0.1  # [] float, step size, in (0, 1]
    gamma: ArrayLike = 0.95  # [] float, discount factor, in [0, 1]
    epsilon: ArrayLike = 0.1  # [] float, exploration of epsilon-greedy targets, in [0, 1]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Coefficients:
    """Rates encoded by the numerics."""

    alpha: Array  # [] the numerics' dtype
    gamma: Array  # [] the numerics' dtype
    epsilon: Array  # [] the numerics' dtype
    explore: Array  # [] uint32, epsilon in 1/65,536, compared with the high bits of a draw


class TabularRule(NamedTuple):
    """Tabular update rule, from `q_learning`, `sarsa`, `expected_sarsa` or `double_q_learning`.

    Attributes:
      name: "q_learning", "sarsa", "sarsa_epsilon_greedy", "expected_sarsa", "double_q_learning".
      numerics: the arithmetic.
      tables: number of Q-tables, K: 2 for Double Q-learning, else 1.
      random: whether `resolve` uses its draws.
      init: (num_states, num_actions, value=0.0) -> tables [K, S, A] of the numerics' dtype.
      coefficients: Hyperparameters -> Coefficients.
      resolve: (Row, draws uint32 [2, ...], Coefficients, S * A, A) -> Row: makes the row's random
        choices, so that the rest is deterministic.
      target: (next values, Row, Coefficients) -> target entry. Next values are K lists of the A
        entries of s', with the updated table first. All may have trailing replica axes.
      update: (tables [K, S, A], TabularTransition, Hyperparameters, key) -> tables [K, S, A]: one
        transition, `key` a jax key (unused unless `random`).
      values: tables [K, S, A] -> float32 [S, A], the action values, averaged over K.
      kernel: native kernel that computes the same as `resolve` and `target`, or None.
      choice: on what of a row the value of the next state depends beside s', one of `CHOICES`; None
        if unknown, and then the rule does not train by owner.
    """

    name: str
    numerics: Numerics
    tables: int
    random: bool
    init: Callable[..., Array]
    coefficients: Callable[[Hyperparameters], Coefficients]
    resolve: Callable[[TabularRow, Array, Coefficients, int, int], TabularRow]
    target: Callable[[Sequence[Sequence[Array]], TabularRow, Coefficients], Array]
    update: Callable[..., Array]
    values: Callable[[Array], Array]
    kernel: Kernel | None = None
    choice: str | None = None


CHOICES = ("none", "logged", "epsilon_greedy", "table")
"""nothing; the logged a'; a drawn a' or the greedy action; which of two tables learns"""

Value = Callable[[Numerics, Sequence[Sequence[Array]], TabularRow, Coefficients], Array]
Resolve = Callable[[TabularRow, Array, Coefficients, int, int], TabularRow]


def build_rule(
    name: str,
    numerics: Numerics | None,
    value: Value,
    resolve: Resolve | None = None,
    tables: int = 1,
    kernel: str | None = None,
    choice: str | None = None,
) -> TabularRule:
    """Build a rule from its value of the next state, the part in which rules differ.

    Args:
      name: the rule's name.
      numerics: the arithmetic; `fp32()` if None.
      value: (numerics, next values, row, coefficients) -> the entry that gamma multiplies; next
        values are K lists of A entries, with the updated table first.
      resolve: makes the row's random choices; None for a rule without any.
      tables: K, 1 or 2.
      kernel: name of the native kernel that computes the same, or None.
      choice: as `TabularRule.choice`; "logged", which holds for any, if None without `resolve`.
    """
    nx = fp32() if numerics is None else numerics
    # A name such as "fp32" would fail far from here, when a pass is compiled.
    if not isinstance(nx, Numerics):
        raise TypeError(f"numerics must be a Numerics (tabular.make_numerics), got {nx!r}")
    whole("tables", tables, 1, 2)
    if choice is None and resolve is None:
        choice = "logged"
    if choice is not None:
        one_of("choice", choice, CHOICES)

    def init(num_states: int, num_actions: int, value: ArrayLike = 0.0) -> Array:
        whole("num_states", num_states, 1)
        whole("num_actions", num_actions, 1)
        _check_value(nx, value)
        return jnp.full((tables, num_states, num_actions), nx.encode(value), nx.dtype)

    def coefficients(hyperparameters: Hyperparameters) -> Coefficients:
        epsilon = jnp.asarray(hyperparameters.epsilon, jnp.float32)
        return Coefficients(
            alpha=nx.encode_rate(hyperparameters.alpha),
            gamma=nx.encode_rate(hyperparameters.gamma),
            epsilon=nx.encode_rate(epsilon),
            explore=jnp.round(epsilon * np.float32(65_536)).astype(jnp.uint32),
        )

    def target(next_values: Sequence[Sequence[Array]], row: TabularRow, c: Coefficients) -> Array:
        ahead = nx.multiply(c.gamma, value(nx, next_values, row, c))
        return nx.add(row.reward, jnp.where(row.bootstrap, ahead, jnp.zeros_like(ahead)))

    choose = _keep if resolve is None else resolve

    def update(
        q: Array,
        transition: TabularTransition,
        hyperparameters: Hyperparameters,
        key: Array | None = None,
    ) -> Array:
        _, num_states, num_actions = q.shape
        size = num_states * num_actions
        c = coefficients(hyperparameters)
        reward = nx.encode(transition.reward)
        row = encode_transition(transition, num_actions, reward, jnp.bool_(True))
        if resolve is not None:
            if key is None:
                raise ValueError(f"update of {name} draws at random: key must be given")
            row = choose(row, jax.random.bits(key, (2,), jnp.uint32), c, size, num_actions)
        flat = q.reshape(-1)
        y = target(next_values(flat, row, tables, size, num_actions), row, c)
        return (
            flat.at[row.entry].set(move_towards(nx, flat[row.entry], y, c.alpha)).reshape(q.shape)
        )

    def values(q: Array) -> Array:
        decoded = [nx.decode(q[k]) for k in range(tables)]
        return decoded[0] if tables == 1 else (decoded[0] + decoded[1]) * np.float32(0.5)

    return TabularRule(
        name=name,
        numerics=nx,
        tables=tables,
        random=resolve is not None,
        init=init,
        coefficients=coefficients,
        resolve=choose,
        target=target,
        update=update,
        values=values,
        kernel=None if kernel is None else Kernel(kernel, (choose, target)),
        choice=choice,
    )


def next_values(
    flat: Array, row: TabularRow, tables: int, size: int, num_actions: int
) -> list[list[Array]]:
    """Slice the entries of s' from each of the flat tables, with the updated table first.

    Args:
      flat: [n, ...] entries; the K tables of `size` entries that the row's indices point into are
        consecutive; trailing axes are replicas.
      row: one row.
      tables: K, static.
      size: S * A, static.
      num_actions: A, static.

    Returns:
      K lists of A entries, each [...].
    """
    values = []
    for k in range(tables):
        start = row.next_entry + np.int32(k * size)
        block = jax.lax.dynamic_slice_in_dim(flat, start, num_actions, allow_negative_indices=False)
        values.append([block[a] for a in range(num_actions)])
    return learning_first(values, row)


def learning_first(values: list[list[Array]], row: TabularRow) -> list[list[Array]]:
    """Reorder K lists of entries from the tables' order to the updated table first."""
    if len(values) == 1:
        return values
    pairs = list(zip(*values, strict=True))
    return [
        [jnp.where(row.second, second, first) for first, second in pairs],
        [jnp.where(row.second, first, second) for first, second in pairs],
    ]


def _keep(
    row: TabularRow, draws: Array, c: Coefficients, table: int, num_actions: int
) -> TabularRow:
    return row


def move_towards(nx: Numerics, entry: Array, target: Array, alpha: Array) -> Array:
    """Return entry + alpha * (target - entry), in the numerics' arithmetic."""
    return nx.add(entry, nx.multiply(alpha, nx.subtract(target, entry)))


def largest_initial_value(nx: Numerics) -> float:
    """Return the largest initial value whose first differences cannot overflow."""
    if nx.dtype != np.int32:
        return math.inf
    with jax.ensure_compile_time_eval():
        one = int(nx.encode(1.0))
    return INT32_MAX / 2 / one - max(map(abs, nx.reward_range))


def _check_value(nx: Numerics, value: ArrayLike) -> None:
    """Raise ValueError for a known initial value that the numerics do not cover."""
    if isinstance(value, jax.core.Tracer):
        return
    most = largest_initial_value(nx)
    if not np.abs(np.asarray(value)).max() <= most:
        raise ValueError(
            f"value must be from {-most:g} to {most:g} where tables are {nx.name}, got {value}"
        )
