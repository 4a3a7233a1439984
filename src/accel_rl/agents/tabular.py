"""Tabular rules (Q-learning, SARSA and others) as agents, for the same executors as DQN."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.agent import Agent, Learned
from accel_rl.agents.exploration import EPSILON, EpsilonGreedy, epsilon_greedy
from accel_rl.agents.hyperparameters import Limits, resolve
from accel_rl.agents.spaces import require_discrete
from accel_rl.control_flow import order_after
from accel_rl.tabular import Hyperparameters, TabularRule
from accel_rl.tabular.rows import TabularRow, encode_transition
from accel_rl.tabular.rule import (
    Coefficients,
    largest_initial_value,
    move_towards,
    next_values,
)
from accel_rl.types import Array, ArrayLike, Batch, Discrete, PyTree, Space, TabularTransition

HYPERPARAMETERS = {
    "alpha": Limits(0.1, 0, 1, "step size of an update"),
    **EPSILON,
    "initial_value": Limits(
        0, -1e9, 1e9, "of all actions; if above what can be earned, all are tried"
    ),
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TabularState:
    """State of a tabular agent; a pytree."""

    tables: Array  # [K, S, A] of the rule's numerics
    hyper: dict[str, Array]  # [] float32 each


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TabularPolicy:
    """Part of the state that acting reads; a pytree."""

    tables: Array  # [K, S, A] of the rule's numerics
    exploration: EpsilonGreedy


def tabular(rule: TabularRule, observation_space: Space, action_space: Space) -> Agent:
    """Make an agent that learns tables of action values by a tabular rule.

    It acts epsilon-greedily on the rule's action values; ties go to the lowest action. The items of
    a batch are processed in sequence, each with step size alpha times its weight. A TD error is
    computed just before its item's update. With `replay.newest` as the replay buffer this is the
    online algorithm of the textbook.

    Rules that read the next action of the data (SARSA) get the next executed action, and support
    one-step targets only. `expected_sarsa` and `sarsa_epsilon_greedy` learn the value of the policy
    with `epsilon_end`; it is the behaviour policy if exploration is constant.

    Fixed-point numerics must cover the training's rewards and gamma (`reward_range` and
    `gamma_max`); gamma is rounded to a rate of the numerics. If a batch does not keep to them, its
    values may overflow: its loss is NaN, which ends a training as diverged.

    Args:
      rule: such as `tabular.q_learning()`, with its numerics.
      observation_space: Discrete, the states.
      action_space: Discrete.

    Reference: Sutton and Barto, Reinforcement Learning, 2nd edition, 2018, sections 6.4 to 6.7.
    """
    if not isinstance(observation_space, Discrete):
        raise TypeError(f"tabular needs a Discrete observation space, got {observation_space!r}")
    num_states = observation_space.n
    num_actions = require_discrete("tabular", action_space).n
    size, nx = num_states * num_actions, rule.numerics
    on_policy = _reads_next_action(rule)
    most = math.floor(min(largest_initial_value(nx), HYPERPARAMETERS["initial_value"].high))
    limits = HYPERPARAMETERS["initial_value"]._replace(low=-most, high=most)
    hyperparameters = {**HYPERPARAMETERS, "initial_value": limits}
    bound = max(map(abs, nx.reward_range)) / max(1 - nx.gamma_max, 1e-9)  # of values; may be inf

    def init(key: Array, **given: ArrayLike) -> TabularState:
        del key  # the initial tables are deterministic
        hyper = resolve(hyperparameters, given)
        return TabularState(rule.init(num_states, num_actions, hyper["initial_value"]), hyper)

    def policy(state: TabularState) -> TabularPolicy:
        return TabularPolicy(state.tables, EpsilonGreedy.of(state.hyper))

    def act(
        policy: TabularPolicy,
        memory: PyTree,
        observation: Array,
        key: Array,
        step: ArrayLike,
        explore: bool = True,
    ) -> tuple[Array, PyTree]:
        values = rule.values(policy.tables[:, observation])  # gather first: only E rows are read
        action = jnp.argmax(values, axis=-1).astype(jnp.int32)
        if explore:
            action = epsilon_greedy(policy.exploration, action, num_actions, key, step)
        return action, memory

    def read(
        batch: Batch, weights: Array, hyper: dict[str, Array], key: Array
    ) -> tuple[TabularRow, Coefficients]:
        """Encode a batch for the rule; return rows and their coefficients, leaves [B]."""
        transitions = TabularTransition(
            state=batch.observation,
            action=batch.action,
            reward=batch.reward,
            next_state=batch.next_observation,
            discount=batch.discount,
            next_action=batch.extras if on_policy else jnp.zeros_like(batch.action),
        )
        # A batch's discount already includes gamma, so each item has its own gamma.
        rates = Hyperparameters(
            alpha=hyper["alpha"] * weights,
            gamma=batch.discount,
            epsilon=jnp.broadcast_to(hyper["epsilon_end"], weights.shape),
        )
        coefficients = rule.coefficients(rates)
        encoded = encode_transition(transitions, num_actions, nx.encode(batch.reward), weights > 0)
        if rule.random:
            draws = jax.random.bits(key, (2, *weights.shape), jnp.uint32)
            encoded = rule.resolve(encoded, draws, coefficients, size, num_actions)
        return encoded, coefficients

    def look(
        flat: Array, row: TabularRow, coefficients: Coefficients
    ) -> tuple[Array, Array, Array]:
        """Return the target entry, present entry and TD error of one item, [] each."""
        ahead = next_values(flat, row, rule.tables, size, num_actions)
        wanted, old = rule.target(ahead, row, coefficients), flat[row.entry]
        error = jnp.where(row.valid, nx.decode(nx.subtract(wanted, old)), np.float32(0))
        return wanted, old, error

    def learn(
        state: TabularState, batch: Batch, weights: Array, key: Array
    ) -> tuple[TabularState, Learned]:
        items = read(batch, weights, state.hyper, key)
        count = weights.shape[0]
        if count == 1:  # XLA unrolls a loop of one step, and then copies the tables
            items = jax.tree.map(lambda leaf: jnp.pad(leaf, (0, 1)), items)

        def one(n: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            flat, found = carry
            row, coefficients = jax.tree.map(lambda leaf: leaf[n], items)
            wanted, old, error = look(flat, row, coefficients)
            found = found.at[n].set(jnp.stack([error, nx.decode(old)]))
            new = move_towards(nx, old, wanted, coefficients.alpha)
            written = order_after(row.valid, found[0])
            return flat.at[row.entry].set(jnp.where(written, new, old)), found

        found = jnp.zeros((max(count, 2), 2), jnp.float32)
        flat, found = jax.lax.fori_loop(0, found.shape[0], one, (state.tables.reshape(-1), found))
        error, value = found[:count, 0], found[:count, 1]
        state = dataclasses.replace(state, tables=flat.reshape(state.tables.shape))
        loss = jnp.mean(weights * error**2) / 2
        if np.isfinite(bound):
            reached = jnp.abs(batch.reward) + batch.discount * np.float32(bound)
            covered = (reached <= np.float32(bound * (1 + 1e-5))) | (weights == 0)
            loss = jnp.where(jnp.all(covered), loss, jnp.nan)
        metrics = {"loss": loss, "value": jnp.mean(value)}
        return state, Learned(error, metrics)

    def td_error(critics: PyTree, batch: Batch, key: Array) -> Array:
        tables, hyper = critics
        items = read(batch, jnp.ones_like(batch.reward), hyper, key)
        return jax.vmap(lambda row, c: look(tables.reshape(-1), row, c)[2])(*items)

    return Agent(
        init=init,
        policy=policy,
        act=act,
        learn=learn,
        td_error=td_error,
        critics=lambda state: (state.tables, state.hyper),
        memory=lambda num_envs: (),
        observation_space=observation_space,
        action_space=action_space,
        hyperparameters=hyperparameters,
        needs_next_action=on_policy,
    )


def _reads_next_action(rule: TabularRule) -> bool:
    """Return whether a rule's target depends on the data's next action, by trying two actions."""
    with jax.ensure_compile_time_eval():
        coefficients = rule.coefficients(Hyperparameters(alpha=1.0, gamma=1.0, epsilon=0.0))
        zero, one = (jnp.asarray(entry, rule.numerics.dtype) for entry in (0, 1))
        no, yes = jnp.bool_(False), jnp.bool_(True)

        def target(next_action: int) -> Array:
            row = TabularRow(
                jnp.int32(0), jnp.int32(0), zero, jnp.int32(next_action), yes, yes, no, no
            )
            row = rule.resolve(row, jnp.zeros(2, jnp.uint32), coefficients, 4, 2)
            return rule.target([[zero, one]] * rule.tables, row, coefficients)

        return bool(target(0) != target(1))
