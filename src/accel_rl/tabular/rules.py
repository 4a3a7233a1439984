"""Tabular update rules, each the mathematics of a single transition.

A rule moves one entry towards a target: Q(s, a) <- Q(s, a) + alpha * (target - Q(s, a)). Rules
differ only in the target, and in what they draw at random before it. Batching, target blocks and
placement belong to the callers (`tabular.passes`, `accel_rl.pim`).
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.tabular import random
from accel_rl.tabular.numerics import Numerics, fp32
from accel_rl.tabular.rows import Row, encode_transition
from accel_rl.types import Array, ArrayLike, TabularTransition

NEXT_ACTIONS = ("logged", "epsilon_greedy")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Hyperparameters:
    """Rates of a rule, all leaves: `vmap` over any of them sweeps it.

    The defaults of alpha and gamma are those of SwiftRL's public code.
    """

    alpha: ArrayLike = 0.1  # [] float, step size, in (0, 1]
    gamma: ArrayLike = 0.95  # [] float, discount factor, in [0, 1]
    epsilon: ArrayLike = 0.1  # [] float, exploration of epsilon-greedy targets, in [0, 1]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Coefficients:
    """Rates in the numerics' own form."""

    alpha: Array  # [] the numerics' dtype
    gamma: Array  # [] the numerics' dtype
    epsilon: Array  # [] the numerics' dtype
    explore: Array  # [] uint32, epsilon in 1/65,536, compared with the high bits of a draw


class TabularRule(NamedTuple):
    """An update rule; made by `q_learning`, `sarsa`, `expected_sarsa` or `double_q_learning`.

    Attributes:
      name: "q_learning", "sarsa", "sarsa_epsilon_greedy", "expected_sarsa", "double_q_learning".
      numerics: the arithmetic.
      tables: number of Q-tables, K: 2 for Double Q-learning, else 1.
      random: whether `resolve` uses its draws.
      init: (num_states, num_actions, value=0.0) -> tables [K, S, A] of the numerics' dtype.
      coefficients: Hyperparameters -> Coefficients.
      resolve: (Row, draws uint32 [2, ...], Coefficients, S * A, A) -> Row: makes the row's random
        choices, so that what follows is deterministic.
      target: (next values, Row, Coefficients) -> target entry. Next values are K lists of A
        entries, those of s', the table being updated first. All may carry trailing replica axes.
      update: (tables [K, S, A], TabularTransition, Hyperparameters, key) -> tables [K, S, A]: one
        transition, `key` a jax key (unused unless `random`).
      values: tables [K, S, A] -> float32 [S, A], the action values, averaged over K.
    """

    name: str
    numerics: Numerics
    tables: int
    random: bool
    init: Callable[..., Array]
    coefficients: Callable[[Hyperparameters], Coefficients]
    resolve: Callable[[Row, Array, Coefficients, int, int], Row]
    target: Callable[[Sequence[Sequence[Array]], Row, Coefficients], Array]
    update: Callable[..., Array]
    values: Callable[[Array], Array]


@functools.cache
def q_learning(numerics: Numerics | None = None) -> TabularRule:
    """Q-learning: target = r + gamma * discount * max_a' Q(s', a').

    Args:
      numerics: the arithmetic; `fp32()` if None.

    Reference: Watkins and Dayan, "Q-learning", Machine Learning 8, 1992; Sutton and Barto,
      Reinforcement Learning, 2nd edition, equation 6.8.
    """

    def value(nx: Numerics, tables: Sequence[Sequence[Array]], row: Row, c: Coefficients) -> Array:
        return _maximum(tables[0])

    return _make("q_learning", numerics, value)


@functools.cache
def sarsa(numerics: Numerics | None = None, next_action: str = "logged") -> TabularRule:
    """SARSA: target = r + gamma * discount * Q(s', a').

    Args:
      numerics: the arithmetic; `fp32()` if None.
      next_action: "logged" takes a' from the data and so evaluates the behaviour policy;
        "epsilon_greedy" draws a' from the table being learned, with probability epsilon uniformly
        and otherwise greedily (lowest index of the maxima).

    Raises:
      ValueError: if `next_action` is neither.

    Reference: Rummery and Niranjan, "On-line Q-learning using connectionist systems", 1994; Sutton
      and Barto, 2nd edition, equation 6.7.
    """
    if next_action not in NEXT_ACTIONS:
        raise ValueError(f"next_action must be one of {NEXT_ACTIONS}, got {next_action!r}")

    def value(nx: Numerics, tables: Sequence[Sequence[Array]], row: Row, c: Coefficients) -> Array:
        logged = _select(tables[0], row.next_action)
        return jnp.where(row.greedy, _maximum(tables[0]), logged)

    def draw_action(row: Row, draws: Array, c: Coefficients, table: int, num_actions: int) -> Row:
        explore = (draws[0] >> np.uint32(16)) < c.explore
        action = random.below(draws[1], np.uint32(num_actions)).astype(jnp.int32)
        return dataclasses.replace(
            row, next_action=jnp.where(explore, action, np.int32(0)), greedy=~explore
        )

    if next_action == "logged":
        return _make("sarsa", numerics, value)
    return _make("sarsa_epsilon_greedy", numerics, value, resolve=draw_action)


@functools.cache
def expected_sarsa(numerics: Numerics | None = None) -> TabularRule:
    """Expected SARSA for the epsilon-greedy policy of the table being learned.

    target = r + gamma * discount * (m + epsilon * (mean_a' Q(s', a') - m)), m = max_a' Q(s', a').

    Args:
      numerics: the arithmetic; `fp32()` if None.

    Reference: van Seijen et al., "A theoretical and empirical analysis of Expected Sarsa",
      ADPRL 2009; Sutton and Barto, 2nd edition, equation 6.9.
    """

    def value(nx: Numerics, tables: Sequence[Sequence[Array]], row: Row, c: Coefficients) -> Array:
        best = _maximum(tables[0])
        difference = nx.subtract(nx.mean(tables[0]), best)
        return nx.add(best, nx.multiply(c.epsilon, difference))

    return _make("expected_sarsa", numerics, value)


@functools.cache
def double_q_learning(numerics: Numerics | None = None) -> TabularRule:
    """Double Q-learning: one of two tables, drawn fairly, learns from the other's opinion.

    target for table B = r + gamma * discount * Q_other(s', argmax_a' Q_B(s', a')), the lowest
    index of the maxima.

    Args:
      numerics: the arithmetic; `fp32()` if None.

    Reference: van Hasselt, "Double Q-learning", NeurIPS 2010, algorithm 1.
    """

    def value(nx: Numerics, tables: Sequence[Sequence[Array]], row: Row, c: Coefficients) -> Array:
        chosen, other = tables
        best, result = chosen[0], other[0]
        for candidate, valued in zip(chosen[1:], other[1:], strict=True):
            better = candidate > best
            best = jnp.where(better, candidate, best)
            result = jnp.where(better, valued, result)
        return result

    def draw_table(row: Row, draws: Array, c: Coefficients, table: int, num_actions: int) -> Row:
        second = (draws[0] >> np.uint32(31)).astype(jnp.int32)
        entry = row.entry + second * np.int32(table)
        return dataclasses.replace(row, entry=entry, second=second != 0)

    return _make("double_q_learning", numerics, value, resolve=draw_table, tables=2)


RULES: dict[str, Callable[..., TabularRule]] = {
    "q_learning": q_learning,
    "sarsa": sarsa,
    "sarsa_epsilon_greedy": functools.partial(sarsa, next_action="epsilon_greedy"),
    "expected_sarsa": expected_sarsa,
    "double_q_learning": double_q_learning,
}


def make_rule(name: str, numerics: Numerics | None = None) -> TabularRule:
    """The rule called `name` (see `RULES`), in the given numerics.

    Raises:
      ValueError: if there is none of that name.
    """
    if name not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got {name!r}")
    return RULES[name](numerics)


def move_towards(nx: Numerics, entry: Array, target: Array, alpha: Array) -> Array:
    """entry + alpha * (target - entry), in the numerics' arithmetic."""
    return nx.add(entry, nx.multiply(alpha, nx.subtract(target, entry)))


def independent_learners(rule: TabularRule, num_agents: int) -> TabularRule:
    """Many agents that learn side by side, each from its own transitions in its own tables.

    `init` returns tables [agents, K, S, A]; `update` takes transitions and keys with a leading axis
    of agents, and hyper-parameters with or without one (as SwiftRL's multi-agent Q-learning).

    Raises:
      ValueError: if `num_agents` is below 1.
    """
    if num_agents < 1:
        raise ValueError(f"num_agents must be at least 1, got {num_agents}")

    def init(num_states: int, num_actions: int, value: ArrayLike = 0.0) -> Array:
        tables = rule.init(num_states, num_actions, value)
        return jnp.broadcast_to(tables, (num_agents, *tables.shape))

    def update(
        tables: Array,
        transition: TabularTransition,
        hyperparameters: Hyperparameters,
        key: Array | None = None,
    ) -> Array:
        axes = jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, hyperparameters)
        over = jax.vmap(rule.update, in_axes=(0, 0, axes, None if key is None else 0))
        return over(tables, transition, hyperparameters, key)

    return rule._replace(init=init, update=update, values=jax.vmap(rule.values))


_Value = Callable[[Numerics, Sequence[Sequence[Array]], Row, Coefficients], Array]
_Resolve = Callable[[Row, Array, Coefficients, int, int], Row]


def _make(
    name: str,
    numerics: Numerics | None,
    value: _Value,
    resolve: _Resolve | None = None,
    tables: int = 1,
) -> TabularRule:
    nx = fp32() if numerics is None else numerics

    def init(num_states: int, num_actions: int, value: ArrayLike = 0.0) -> Array:
        return jnp.full((tables, num_states, num_actions), nx.encode(value), nx.dtype)

    def coefficients(hyperparameters: Hyperparameters) -> Coefficients:
        epsilon = jnp.asarray(hyperparameters.epsilon, jnp.float32)
        return Coefficients(
            alpha=nx.encode_rate(hyperparameters.alpha),
            gamma=nx.encode_rate(hyperparameters.gamma),
            epsilon=nx.encode_rate(epsilon),
            explore=jnp.round(epsilon * np.float32(65_536)).astype(jnp.uint32),
        )

    def target(next_values: Sequence[Sequence[Array]], row: Row, c: Coefficients) -> Array:
        ahead = nx.multiply(c.gamma, value(nx, next_values, row, c))
        return nx.add(row.reward, jnp.where(row.bootstrap, ahead, jnp.zeros_like(ahead)))

    def keep(row: Row, draws: Array, c: Coefficients, table: int, num_actions: int) -> Row:
        return row

    choose = keep if resolve is None else resolve

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
        return flat.at[row.entry].set(move_towards(nx, flat[row.entry], y, c.alpha)).reshape(q.shape)

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
    )


def next_values(
    flat: Array, row: Row, tables: int, size: int, num_actions: int
) -> list[list[Array]]:
    """Entries of s' in each table, that being updated first, by dynamic slices of flat tables.

    Args:
      flat: [n, ...] entries; the K tables of `size` entries that the row's indices point into lie
        one after the other; trailing axes are replicas.
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
        block = jax.lax.dynamic_slice_in_dim(flat, start, num_actions)
        values.append([block[a] for a in range(num_actions)])
    if tables == 2:
        pairs = list(zip(*values, strict=True))
        values = [
            [jnp.where(row.second, second, first) for first, second in pairs],
            [jnp.where(row.second, first, second) for first, second in pairs],
        ]
    return values


def _maximum(values: Sequence[Array]) -> Array:
    best = values[0]
    for value in values[1:]:
        best = jnp.maximum(best, value)
    return best


def _select(values: Sequence[Array], index: Array) -> Array:
    result = values[0]
    for k, value in enumerate(values[1:], start=1):
        result = jnp.where(index == k, value, result)
    return result
