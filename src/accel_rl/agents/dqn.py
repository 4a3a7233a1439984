"""DQN, with double, dueling, distributional, n-step and prioritised learning."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from accel_rl.agents import heads, targets
from accel_rl.agents.agent import Agent, Learned
from accel_rl.agents.exploration import EPSILON, EpsilonGreedy, epsilon_greedy
from accel_rl.agents.hyperparameters import Limits, resolve
from accel_rl.agents.optimiser import descend, or_adam
from accel_rl.agents.spaces import (
    example_features,
    features,
    require_discrete,
    require_observations,
)
from accel_rl.networks import MLP, QNetwork
from accel_rl.networks.checks import require_widths
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
    distributional: str | None = None,
    num_atoms: int = 51,
    value_range: tuple[float, float] = (-10.0, 10.0),
    loss: str | None = None,
    optimiser: optax.GradientTransformation | None = None,
    max_gradient_norm: float | None = None,
) -> Agent:
    """A DQN agent for a finite number of actions.

    n-step targets come with the batch (`replay.make(n_step=...)`); prioritised learning with its
    weights. What the TD error of a transition is, from which priorities are made, depends on the
    head: target - value of expected values and of quantiles, their mean; the KL divergence of the
    prediction from the target with C51.

    Args:
      observation_space: Discrete, which the network reads one-hot, or a Box.
      action_space: Discrete.
      torso: flax module from features [B, ...] to [B, width]; None: an MLP of `hidden` layers over
        features made flat.
      hidden: widths of that MLP.
      double: the online network chooses the action whose value the target network gives.
      dueling: values and advantages from streams of their own.
      distributional: "c51", probabilities of fixed returns; "quantile", quantiles of the return
        (QR-DQN); None: its mean alone.
      num_atoms: how many of them, for each action; at least 2.
      value_range: the least and the greatest return of C51's atoms.
      loss: of the mean, "squared" (half the square, also if None) or "huber"; a distribution has
        its own.
      optimiser: gives directions of descent before the learning rate, as `optax.scale_by_adam`
        does; None: Adam.
      max_gradient_norm: the global norm that Adam's gradients are clipped to; None: they are not.

    Raises:
      TypeError: if a space does not fit, or an argument is not of its type.
      ValueError: if a name is unknown, a number out of range, or arguments exclude each other.

    Reference: Mnih et al., "Human-level control through deep reinforcement learning", Nature 2015;
      for the options, `losses.q_learning`, `networks.QNetwork` and `agents.heads`.
    """
    require_observations(observation_space)
    num_actions = require_discrete("dqn", action_space).n
    head = heads.make(distributional, num_atoms, value_range, loss)
    if torso is None:
        require_widths("hidden", hidden)
        torso = MLP(tuple(hidden))
    network = QNetwork(torso, num_actions, num_atoms=head.num_atoms, dueling=dueling)
    optimiser = or_adam(optimiser, max_gradient_norm)

    def outputs(params: Any, observation: Array) -> Array:
        return jnp.asarray(network.apply(params, features(observation_space, observation)))

    def init(key: Array, **hyperparameters: ArrayLike) -> DQNState:
        hyper = resolve(HYPERPARAMETERS, hyperparameters)  # first: it may refuse
        params = network.init(key, example_features(observation_space))
        return DQNState(
            params=params,
            target=params,
            optimiser=optimiser.init(params),
            updates=jnp.int32(0),
            hyper=hyper,
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
        values = head.values(outputs(policy.params, observation))
        action = jnp.argmax(values, axis=-1).astype(jnp.int32)
        if explore:
            action = epsilon_greedy(policy.exploration, action, num_actions, key, step)
        return action, memory

    def learned(params: Any, target: Any, batch: Batch) -> tuple[Array, Array, Array]:
        """Losses [B], TD errors [B] and values [B, A]."""
        output_tm1 = outputs(params, batch.observation)
        output_t = outputs(target, batch.next_observation)
        chooses = outputs(params, batch.next_observation) if double else output_t
        losses, errors = jax.vmap(head.learn)(
            output_tm1, batch.action, batch.reward, batch.discount, output_t, head.values(chooses)
        )
        return losses, errors, head.values(output_tm1)

    def learn(
        state: DQNState, batch: Batch, weights: Array, key: Array
    ) -> tuple[DQNState, Learned]:
        del key  # nothing in it is random

        def total(params: Any) -> tuple[Array, tuple[Array, Array]]:
            losses, errors, values = learned(params, state.target, batch)
            return jnp.mean(weights * losses), (errors, jnp.mean(values))

        (loss, (errors, value)), gradients = jax.value_and_grad(total, has_aux=True)(state.params)
        params, moments = descend(
            optimiser, gradients, state.optimiser, state.params, state.hyper["learning_rate"]
        )
        updates = state.updates + np.int32(1)
        target = targets.follow(params, state.target, updates, state.hyper)
        state = dataclasses.replace(
            state, params=params, target=target, optimiser=moments, updates=updates
        )
        return state, Learned(errors, {"loss": loss, "value": value})

    def td_error(critics: Any, batch: Batch, key: Array) -> Array:
        del key
        params, target = critics
        return learned(params, target, batch)[1]

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
