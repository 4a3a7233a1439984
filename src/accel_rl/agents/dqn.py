"""DQN, with double, dueling and prioritised learning."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from accel_rl.agents import targets
from accel_rl.agents.agent import Agent, Learned
from accel_rl.agents.exploration import EPSILON, EpsilonGreedy, epsilon_greedy
from accel_rl.agents.hyperparameters import Limits, resolve
from accel_rl.agents.losses import LOSSES, q_learning
from accel_rl.agents.optimiser import adam, descend
from accel_rl.agents.spaces import (
    example_features,
    features,
    require_discrete,
    require_observations,
)
from accel_rl.networks import MLP, QNetwork
from accel_rl.types import Array, ArrayLike, Batch, Space

HYPERPARAMETERS = {
    "learning_rate": Limits(2.5e-4, 0, 1, "of the optimiser"),
    **EPSILON,
    "target_period": Limits(50, 1, 1e9, "updates between copies to the target network"),
    "tau": Limits(1, 0, 1, "share of the online network that the target takes each time"),
}


@dataclasses.dataclass(frozen=True)
class DQNState:
    """State of a DQN agent; a pytree."""

    params: Any  # of the network that learns
    target: Any  # as params
    optimiser: Any
    updates: Array  # [] int32
    hyper: dict[str, Array]  # [] float32 each


@dataclasses.dataclass(frozen=True)
class DQNPolicy:
    """What acting needs; a pytree."""

    params: Any
    exploration: EpsilonGreedy


jax.tree_util.register_dataclass(
    DQNState, ["params", "target", "optimiser", "updates", "hyper"], []
)
jax.tree_util.register_dataclass(DQNPolicy, ["params", "exploration"], [])


def dqn(
    observation_space: Space,
    action_space: Space,
    *,
    torso: nn.Module | None = None,
    hidden: Sequence[int] = (120, 84),
    double: bool = True,
    dueling: bool = False,
    loss: str = "squared",
    optimiser: optax.GradientTransformation | None = None,
) -> Agent:
    """A DQN agent for a finite number of actions.

    n-step targets come with the batch (`replay.make(n_step=...)`); prioritised learning with its
    weights.

    Args:
      observation_space: Discrete, which the network reads one-hot, or a Box.
      action_space: Discrete.
      torso: flax module from features [B, ...] to [B, width]; None: an MLP of `hidden` layers.
      hidden: widths of that MLP.
      double: the online network chooses the action whose value the target network gives.
      dueling: values and advantages from streams of their own.
      loss: "squared" (half the square) or "huber".
      optimiser: gives directions of descent before the learning rate, as `optax.scale_by_adam`
        does; None: Adam.

    Raises:
      TypeError: if a space does not fit.
      ValueError: if the loss has no such name.

    Reference: Mnih et al., "Human-level control through deep reinforcement learning", Nature 2015.
    """
    require_observations(observation_space)
    num_actions = require_discrete("dqn", action_space).n
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
    cost = LOSSES[loss]
    network = QNetwork(MLP(tuple(hidden)) if torso is None else torso, num_actions, dueling=dueling)
    optimiser = adam() if optimiser is None else optimiser

    def values(params: Any, observation: Array) -> Array:
        return jnp.asarray(network.apply(params, features(observation_space, observation)))

    def init(key: Array, **hyperparameters: ArrayLike) -> DQNState:
        params = network.init(key, example_features(observation_space))
        return DQNState(
            params=params,
            target=params,
            optimiser=optimiser.init(params),
            updates=jnp.int32(0),
            hyper=resolve(HYPERPARAMETERS, hyperparameters),
        )

    def policy(state: DQNState) -> DQNPolicy:
        return DQNPolicy(state.params, EpsilonGreedy.of(state.hyper))

    def act(
        policy: DQNPolicy,
        memory: Any,
        observation: Array,
        key: Array,
        step: ArrayLike,
        explore: bool = True,
    ) -> tuple[Array, Any]:
        action = jnp.argmax(values(policy.params, observation), axis=-1).astype(jnp.int32)
        if explore:
            action = epsilon_greedy(policy.exploration, action, num_actions, key, step)
        return action, memory

    def errors(params: Any, target: Any, batch: Batch) -> tuple[Array, Array]:
        q_tm1 = values(params, batch.observation)
        q_t = values(target, batch.next_observation)
        selector = values(params, batch.next_observation) if double else q_t
        error = jax.vmap(q_learning)(
            q_tm1, batch.action, batch.reward, batch.discount, q_t, selector
        )
        return error, q_tm1

    def learn(
        state: DQNState, batch: Batch, weights: Array, key: Array
    ) -> tuple[DQNState, Learned]:
        del key  # nothing in it is random

        def total(params: Any) -> tuple[Array, tuple[Array, Array]]:
            error, q_tm1 = errors(params, state.target, batch)
            return jnp.mean(weights * cost(error)), (error, q_tm1)

        (loss, (error, q_tm1)), gradients = jax.value_and_grad(total, has_aux=True)(state.params)
        params, moments = descend(
            optimiser, gradients, state.optimiser, state.params, state.hyper["learning_rate"]
        )
        updates = state.updates + np.int32(1)
        target = targets.follow(params, state.target, updates, state.hyper)
        state = dataclasses.replace(
            state, params=params, target=target, optimiser=moments, updates=updates
        )
        return state, Learned(error, {"loss": loss, "value": jnp.mean(q_tm1)})

    def td_error(critics: Any, batch: Batch, key: Array) -> Array:
        del key
        params, target = critics
        return errors(params, target, batch)[0]

    return Agent(
        init=init,
        policy=policy,
        act=act,
        learn=learn,
        td_error=td_error,
        critics=lambda state: (state.params, state.target),
        memory=lambda num_envs: (),
        observation_space=observation_space,
        action_space=action_space,
        hyperparameters=HYPERPARAMETERS,
    )
