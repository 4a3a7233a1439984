"""DQN with double, dueling, distributional, n-step and prioritised learning."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from accel_rl.agents import heads
from accel_rl.agents.agent import Agent, Learned
from accel_rl.agents.exploration import EPSILON, EpsilonGreedy, epsilon_greedy
from accel_rl.agents.hyperparameters import Limits, options_only, resolve
from accel_rl.agents.spaces import (
    example_features,
    features,
    require_discrete,
    require_observations,
)
from accel_rl.agents.updates import OPTIMISATION, follow, make_optimiser
from accel_rl.arguments import one_of
from accel_rl.networks import MLP, ConvTorso, Dense, NatureTorso, NoisyDense, QNetwork
from accel_rl.networks.initialisation import INITIALISATIONS, initialise
from accel_rl.networks.noisy import NOISE
from accel_rl.types import Array, ArrayLike, Batch, PyTree, Space

HYPERPARAMETERS = {
    "learning_rate": Limits(2.5e-4, 0, 1, "of the optimiser"),
    **EPSILON,
    "target_period": Limits(50, 1, 1e9, "updates between copies to the target network"),
    "tau": Limits(1, 0, 1, "share of the online network that the target takes each time"),
    **OPTIMISATION,
}
_NO_EPSILON = {
    name: HYPERPARAMETERS[name]._replace(default=0) for name in ("epsilon_start", "epsilon_end")
}
TORSOS = ("mlp", "convolution", "nature")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DQNState:
    """State of a DQN agent; a pytree."""

    params: PyTree  # of the online network
    target: PyTree  # of the target network, as params
    optimiser: PyTree
    updates: Array  # [] int32
    hyper: dict[str, Array]  # [] float32 each


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DQNPolicy:
    """Part of the state that acting reads; a pytree."""

    params: PyTree
    exploration: EpsilonGreedy


@options_only
def dqn(
    observation_space: Space,
    action_space: Space,
    *,
    torso: nn.Module | Literal["mlp", "convolution", "nature"] = "mlp",
    hidden: Sequence[int] = (120, 84),
    filters: Sequence[int] = (16,),
    double: bool = True,
    dueling: bool = False,
    distributional: str | None = None,
    num_atoms: int = 51,
    value_range: tuple[float, float] = (-10.0, 10.0),
    noisy: bool = False,
    initialisation: Literal["lecun", "orthogonal"] = "lecun",
    loss: str | None = None,
    optimiser: optax.GradientTransformation | None = None,
    max_gradient_norm: float | None = None,
) -> Agent:
    """Make a DQN agent for a finite number of actions.

    The batch determines n-step targets (`replay.make(n_step=...)`), its importance-sampling weights
    prioritised learning. The TD error of a transition, the source of its priority, depends on the
    head. For expected values, and for the mean of quantiles, it is target - value. For C51 it is
    the KL divergence of the prediction from the target.

    Args:
      observation_space: Discrete, encoded one-hot for the network, or a Box.
      action_space: Discrete.
      torso: "mlp", dense layers over flattened features; "convolution", 3 by 3 convolutions before
        these layers, for pictures; "nature", `networks.NatureTorso` with one dense layer, for those
        of Atari; or a flax module from features [B, ...] to [B, width].
      hidden: widths of the dense layers.
      filters: channels after each convolution.
      double: double Q-learning; the online network selects the next action, the target network
        evaluates it.
      dueling: separate streams for state value and advantages.
      distributional: "c51" (probabilities of fixed atoms), "quantile" (quantiles of the return,
        QR-DQN) or none (the expected return only).
      num_atoms: atoms or quantiles for each action, at least 2.
      value_range: smallest and largest return of C51's atoms.
      noisy: dense layers with learned noise, drawn for each step and each update, in place of
        epsilon-greedy exploration: epsilon is 0 unless it is given. A torso of one's own keeps its
        layers.
      initialisation: "lecun", as flax's layers; or "orthogonal", with gain sqrt(2), 1 for values.
      loss: loss of expected values, "squared" (half the squared TD error, also if none) or "huber";
        distributional heads have their own loss.
      optimiser: an optax transformation without learning-rate scaling, such as
        `optax.scale_by_adam()`; None: Adam.
      max_gradient_norm: global norm to which gradients are clipped; none: no clipping.

    Reference: Mnih et al., "Human-level control through deep reinforcement learning", Nature 2015;
      for the options, `losses.q_learning`, `networks.QNetwork` and `agents.heads`.
    """
    require_observations(observation_space)
    num_actions = require_discrete("dqn", action_space).n
    head = heads.make(distributional, num_atoms, value_range, loss)
    one_of("initialisation", initialisation, INITIALISATIONS)
    layer = NoisyDense if noisy else Dense
    if isinstance(torso, str):
        torso = _torso(torso, hidden, filters, layer)
    network = QNetwork(torso, num_actions, num_atoms=head.num_atoms, dueling=dueling, layer=layer)
    updater = make_optimiser(optimiser, max_gradient_norm)
    hyperparameters = {**HYPERPARAMETERS, **(_NO_EPSILON if noisy else {})}

    def outputs(params: PyTree, observation: Array, key: Array | None = None) -> Array:
        """Return the network's outputs [B, ...], with noise from the key if there is one."""
        rngs = None if key is None else {NOISE: key}
        seen = features(observation_space, observation)
        return jnp.asarray(network.apply(params, seen, rngs=rngs))

    def init(key: Array, **given: ArrayLike) -> DQNState:
        hyper = resolve(hyperparameters, given)  # first, so that errors precede init
        params = network.init(key, example_features(observation_space))
        params = initialise(initialisation, params, key)
        return DQNState(
            params=params,
            target=params,
            optimiser=updater.init(params),
            updates=jnp.int32(0),
            hyper=hyper,
        )

    def policy(state: DQNState) -> DQNPolicy:
        return DQNPolicy(state.params, EpsilonGreedy.of(state.hyper))

    def act(
        policy: DQNPolicy,
        memory: PyTree,
        observation: Array,
        key: Array,
        step: ArrayLike,
        explore: bool = True,
    ) -> tuple[Array, PyTree]:
        key, noise = jax.random.split(key) if noisy else (key, None)
        values = head.values(outputs(policy.params, observation, noise if explore else None))
        action = jnp.argmax(values, axis=-1).astype(jnp.int32)
        if explore:
            action = epsilon_greedy(policy.exploration, action, num_actions, key, step)
        return action, memory

    def learned(
        params: PyTree, target: PyTree, batch: Batch, key: Array
    ) -> tuple[Array, Array, Array]:
        """Return losses [B], TD errors [B] and values [B, A]."""
        online_noise, target_noise = jax.random.split(key) if noisy else (None, None)
        output_tm1 = outputs(params, batch.observation, online_noise)
        output_t = outputs(target, batch.next_observation, target_noise)
        chooses = outputs(params, batch.next_observation, online_noise) if double else output_t
        losses, errors = jax.vmap(head.learn)(
            output_tm1, batch.action, batch.reward, batch.discount, output_t, head.values(chooses)
        )
        return losses, errors, head.values(output_tm1)

    def learn(
        state: DQNState, batch: Batch, weights: Array, key: Array
    ) -> tuple[DQNState, Learned]:
        def total(params: PyTree) -> tuple[Array, tuple[Array, Array]]:
            losses, errors, values = learned(params, state.target, batch, key)
            return jnp.mean(weights * losses), (errors, jnp.mean(values))

        (loss, (errors, value)), gradients = jax.value_and_grad(total, has_aux=True)(state.params)
        params, moments = updater.descend(
            gradients, state.optimiser, state.params, state.hyper["learning_rate"], state.hyper
        )
        updates = state.updates + np.int32(1)
        target = follow(params, state.target, updates, state.hyper)
        state = dataclasses.replace(
            state, params=params, target=target, optimiser=moments, updates=updates
        )
        return state, Learned(errors, {"loss": loss, "value": value})

    def td_error(critics: PyTree, batch: Batch, key: Array) -> Array:
        params, target = critics
        return learned(params, target, batch, key)[1]

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
        hyperparameters=hyperparameters,
    )


def _torso(
    name: str, hidden: Sequence[int], filters: Sequence[int], layer: Callable[[int], nn.Module]
) -> nn.Module:
    one_of("torso", name, TORSOS)
    widths = tuple(hidden)
    if name == "mlp":
        return MLP(widths, layer=layer)
    if name == "convolution":
        return ConvTorso(tuple(filters), hidden=widths, layer=layer)
    if len(widths) != 1:
        raise ValueError(f"hidden must be one width for torso nature, got {widths}")
    return NatureTorso(widths[0], layer=layer)
