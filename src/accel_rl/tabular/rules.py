"""Tabular update rules, each the mathematics of a single transition.

Batching, target blocks and placement belong to the callers (`tabular.passes`, `accel_rl.pim`).
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of, whole
from accel_rl.tabular import random
from accel_rl.tabular.numerics import Numerics
from accel_rl.tabular.rows import TabularRow
from accel_rl.tabular.rule import Coefficients, Hyperparameters, TabularRule, build_rule
from accel_rl.types import Array, ArrayLike, TabularTransition

NEXT_ACTIONS = ("logged", "epsilon_greedy")


@functools.cache
def q_learning(numerics: Numerics | None = None) -> TabularRule:
    """Make the Q-learning rule: target = r + gamma * discount * max_a' Q(s', a').

    Args:
      numerics: the arithmetic; `fp32()` if None.

    Reference: Watkins and Dayan, "Q-learning", Machine Learning 8, 1992; Sutton and Barto,
      Reinforcement Learning, 2nd edition, equation 6.8.
    """
    name = "q_learning"

    def value(
        nx: Numerics, tables: Sequence[Sequence[Array]], row: TabularRow, c: Coefficients
    ) -> Array:
        return _maximum(tables[0])

    return build_rule(name, numerics, value, kernel=name, choice="none")


@functools.cache
def sarsa(numerics: Numerics | None = None, next_action: str = "logged") -> TabularRule:
    """Make the SARSA rule: target = r + gamma * discount * Q(s', a').

    Args:
      numerics: the arithmetic; `fp32()` if None.
      next_action: "logged" takes a' from the data, and so evaluates the behaviour policy;
        "epsilon_greedy" draws a' from the epsilon-greedy policy of the updated table (ties take the
        lowest index).

    Reference: Rummery and Niranjan, "On-line Q-learning using connectionist systems", 1994; Sutton
      and Barto, 2nd edition, equation 6.7.
    """
    one_of("next_action", next_action, NEXT_ACTIONS)

    def value(
        nx: Numerics, tables: Sequence[Sequence[Array]], row: TabularRow, c: Coefficients
    ) -> Array:
        logged = _select(tables[0], row.next_action)
        return jnp.where(row.greedy, _maximum(tables[0]), logged)

    def draw_action(
        row: TabularRow, draws: Array, c: Coefficients, table: int, num_actions: int
    ) -> TabularRow:
        explore = (draws[0] >> np.uint32(16)) < c.explore
        action = random.below(draws[1], jnp.uint32(num_actions)).astype(jnp.int32)
        return dataclasses.replace(
            row, next_action=jnp.where(explore, action, np.int32(0)), greedy=~explore
        )

    if next_action == "logged":
        return build_rule("sarsa", numerics, value, kernel="sarsa")
    name = "sarsa_epsilon_greedy"
    return build_rule(name, numerics, value, resolve=draw_action, kernel=name, choice=next_action)


@functools.cache
def expected_sarsa(numerics: Numerics | None = None) -> TabularRule:
    """Make the Expected SARSA rule, for the epsilon-greedy policy of the updated table.

    target = r + gamma * discount * (m + epsilon * (mean_a' Q(s', a') - m)), m = max_a' Q(s', a').

    Args:
      numerics: the arithmetic; `fp32()` if None.

    Reference: van Seijen et al., "A theoretical and empirical analysis of Expected Sarsa",
      ADPRL 2009; Sutton and Barto, 2nd edition, equation 6.9.
    """

    def value(
        nx: Numerics, tables: Sequence[Sequence[Array]], row: TabularRow, c: Coefficients
    ) -> Array:
        best = _maximum(tables[0])
        difference = nx.subtract(nx.mean(tables[0]), best)
        return nx.add(best, nx.multiply(c.epsilon, difference))

    name = "expected_sarsa"
    return build_rule(name, numerics, value, kernel=name, choice="none")


@functools.cache
def double_q_learning(numerics: Numerics | None = None) -> TabularRule:
    """Make the Double Q-learning rule: one of two tables, drawn fairly, uses the other's values.

    target for table B = r + gamma * discount * Q_other(s', argmax_a' Q_B(s', a')); ties take the
    lowest index.

    Args:
      numerics: the arithmetic; `fp32()` if None.

    Reference: van Hasselt, "Double Q-learning", NeurIPS 2010, algorithm 1.
    """

    def value(
        nx: Numerics, tables: Sequence[Sequence[Array]], row: TabularRow, c: Coefficients
    ) -> Array:
        chosen, other = tables
        best, result = chosen[0], other[0]
        for candidate, valued in zip(chosen[1:], other[1:], strict=True):
            better = candidate > best
            best = jnp.where(better, candidate, best)
            result = jnp.where(better, valued, result)
        return result

    def draw_table(
        row: TabularRow, draws: Array, c: Coefficients, table: int, num_actions: int
    ) -> TabularRow:
        second = (draws[0] >> np.uint32(31)).astype(jnp.int32)
        entry = row.entry + second * np.int32(table)
        return dataclasses.replace(row, entry=entry, second=second != 0)

    name = "double_q_learning"
    return build_rule(
        name, numerics, value, resolve=draw_table, tables=2, kernel=name, choice="table"
    )


RULES: dict[str, Callable[..., TabularRule]] = {
    "q_learning": q_learning,
    "sarsa": sarsa,
    "sarsa_epsilon_greedy": functools.partial(sarsa, next_action="epsilon_greedy"),
    "expected_sarsa": expected_sarsa,
    "double_q_learning": double_q_learning,
}


def make_rule(name: str, numerics: Numerics | None = None) -> TabularRule:
    """Make the rule called `name` (see `RULES`), in the given numerics."""
    one_of("rule", name, RULES)
    return RULES[name](numerics)


def independent_learners(rule: TabularRule, num_agents: int) -> TabularRule:
    """Vectorise a rule over independent agents, each with its own transitions and tables.

    `init` returns tables [agents, K, S, A]; `update` takes transitions and keys with a leading axis
    of agents, and hyper-parameters with or without one. `accel_rl.pim.train_agents` trains the
    agents from logs, on DPUs too.

    Args:
      rule: update rule of each agent.
      num_agents: number of agents.

    Reference: Gogineni et al., "SwiftRL", ISPASS 2024, multi-agent Q-learning.
    """
    return _independent(rule, whole("num_agents", num_agents, 1))


@functools.cache  # equal arguments give an equal rule, for which nothing is compiled again
def _independent(rule: TabularRule, num_agents: int) -> TabularRule:
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
