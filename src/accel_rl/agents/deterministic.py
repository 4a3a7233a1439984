"""Deterministic policy gradients, the shared implementation of DDPG and TD3."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.agent import Agent, Learned
from accel_rl.agents.continuous import (
    NOISES,
    RANDOM_STEPS,
    ContinuousPolicy,
    Critics,
    components,
    explored,
    from_cube,
    to_cube,
)
from accel_rl.agents.hyperparameters import Limits, resolve
from accel_rl.agents.losses import LOSSES, clipped_double_q, deterministic_policy, worst
from accel_rl.agents.spaces import (
    example_features,
    features,
    require_bounded,
    require_observations,
)
from accel_rl.agents.updates import OPTIMISATION, Optimiser, polyak
from accel_rl.arguments import one_of
from accel_rl.control_flow import cond_under_vmap
from accel_rl.networks import MLP, Critic, DeterministicActor
from accel_rl.networks.initialisation import INITIALISATIONS, initialise
from accel_rl.types import Array, ArrayLike, Batch, PyTree, Space

Smoothing = Callable[[Mapping[str, Array], Array, Array], Array]
"""smoothing(hyper-parameters, actions [B, D] of the target policy, key): smoothed actions [B, D].
"""

RATES = {
    "actor_learning_rate": Limits(1e-3, 0, 1, "of the policy's optimiser"),
    "critic_learning_rate": Limits(1e-3, 0, 1, "of the critics' optimiser"),
    "tau": Limits(0.01, 0, 1, "share of the online networks that the targets take each time"),
    **OPTIMISATION,
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DeterministicState:
    """State of a DDPG or TD3 agent; a pytree."""

    actor: PyTree
    actor_target: PyTree  # as actor
    critics: PyTree  # leaves [C, ...]
    critics_target: PyTree  # as critics
    actor_optimiser: PyTree
    critics_optimiser: PyTree
    actor_loss: Array  # [] float32, at the actor's last update
    updates: Array  # [] int32
    hyper: dict[str, Array]  # [] float32 each


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DeterministicCritics:
    """Part of the state that TD errors depend on; a pytree."""

    critics: PyTree
    critics_target: PyTree
    actor_target: PyTree
    hyper: dict[str, Array]  # [] float32 each


def deterministic(
    name: str,
    observation_space: Space,
    action_space: Space,
    *,
    num_critics: int,
    smoothing: Smoothing | None,
    hyperparameters: Mapping[str, Limits],
    torso: nn.Module | None,
    hidden: Sequence[int],
    noise: str,
    loss: str,
    optimiser: Optimiser,
    initialisation: str,
) -> Agent:
    """Make an agent with a deterministic policy, an ensemble of critics and target networks.

    Args:
      name: of the agent, for messages.
      observation_space: Discrete or a Box.
      action_space: a Box of floats with finite bounds.
      num_critics: C; targets use the minimum of the target critics' values, the policy maximises
        the first critic.
      smoothing: target policy smoothing; None for none.
      hyperparameters: `RATES` and the agent's own. If they include `policy_delay`, the policy and
        the target networks are updated once every `policy_delay` updates.
      torso: as of `DeterministicActor`.
      hidden: as of `DeterministicActor`.
      noise: a name of `NOISES`.
      loss: a name of `LOSSES`.
      optimiser: of all networks.
      initialisation: as of `dqn`.
    """
    require_observations(observation_space)
    space = require_bounded(name, action_space)
    one_of("noise", noise, NOISES)
    one_of("loss", loss, LOSSES)
    cost, explorer, num = LOSSES[loss], NOISES[noise](), components(space)
    acting = {**explorer.hyperparameters, **RANDOM_STEPS}
    hyperparameters = {**hyperparameters, **acting}
    actor = DeterministicActor(MLP(tuple(hidden)), num, torso)
    one_of("initialisation", initialisation, INITIALISATIONS)
    critics = Critics(Critic(MLP(tuple(hidden)), torso), num_critics, initialisation)

    def choose(params: PyTree, observation: Array) -> Array:
        return jnp.asarray(actor.apply(params, features(observation_space, observation)))

    def init(key: Array, **given: ArrayLike) -> DeterministicState:
        hyper = resolve(hyperparameters, given)  # first, so that errors precede the network's init
        actor_key, critics_key = jax.random.split(key)
        example = example_features(observation_space)
        actor_params = initialise(initialisation, actor.init(actor_key, example), actor_key)
        critics_params = critics.init(critics_key, example, jnp.zeros((1, num), jnp.float32))
        return DeterministicState(
            actor=actor_params,
            actor_target=actor_params,
            critics=critics_params,
            critics_target=critics_params,
            actor_optimiser=optimiser.init(actor_params),
            critics_optimiser=optimiser.init(critics_params),
            actor_loss=jnp.float32(0),
            updates=jnp.int32(0),
            hyper=hyper,
        )

    def policy(state: DeterministicState) -> ContinuousPolicy:
        return ContinuousPolicy(state.actor, {each: state.hyper[each] for each in acting})

    def act(
        policy: ContinuousPolicy,
        memory: PyTree,
        observation: Array,
        key: Array,
        step: ArrayLike,
        explore: bool = True,
    ) -> tuple[Array, PyTree]:
        action = choose(policy.actor, observation)
        if explore:
            noise_key, uniform_key = jax.random.split(key)
            keys = noise_key, uniform_key
            action, memory = explored(explorer, policy, memory, action, keys, step)
        return from_cube(space, action), memory

    def errors(
        params: PyTree, target: DeterministicCritics, batch: Batch, key: Array
    ) -> tuple[Array, Array]:
        next_action = choose(target.actor_target, batch.next_observation)
        if smoothing is not None:
            next_action = smoothing(target.hyper, next_action, key)
        q_tm1 = critics.values(
            params, features(observation_space, batch.observation), to_cube(space, batch.action)
        )
        next_features = features(observation_space, batch.next_observation)
        q_t = critics.values(target.critics_target, next_features, next_action)
        return jax.vmap(clipped_double_q)(q_tm1, batch.reward, batch.discount, q_t), q_tm1

    def improve(
        state: DeterministicState, observation: Array, included: Array
    ) -> DeterministicState:
        """Update the policy, then the target networks by Polyak averaging."""

        def total(params: PyTree) -> Array:
            q = critics.first(
                state.critics,
                features(observation_space, observation),
                choose(params, observation),
            )
            return jnp.mean(included * jax.vmap(deterministic_policy)(q))

        loss, gradients = jax.value_and_grad(total)(state.actor)
        params, moments = optimiser.descend(
            gradients,
            state.actor_optimiser,
            state.actor,
            state.hyper["actor_learning_rate"],
            state.hyper,
        )
        tau = state.hyper["tau"]
        return dataclasses.replace(
            state,
            actor=params,
            actor_target=polyak(params, state.actor_target, tau),
            critics_target=polyak(state.critics, state.critics_target, tau),
            actor_optimiser=moments,
            actor_loss=loss,
        )

    def learn(
        state: DeterministicState, batch: Batch, weights: Array, key: Array
    ) -> tuple[DeterministicState, Learned]:
        target = critics_of(state)

        def total(params: PyTree) -> tuple[Array, tuple[Array, Array]]:
            error, q_tm1 = errors(params, target, batch, key)
            return jnp.mean(weights * jnp.sum(cost(error), axis=-1)), (error, q_tm1)

        (loss, (error, q_tm1)), gradients = jax.value_and_grad(total, has_aux=True)(state.critics)
        params, moments = optimiser.descend(
            gradients,
            state.critics_optimiser,
            state.critics,
            state.hyper["critic_learning_rate"],
            state.hyper,
        )
        state = dataclasses.replace(
            state,
            critics=params,
            critics_optimiser=moments,
            updates=state.updates + np.int32(1),
        )
        included = (weights > 0).astype(jnp.float32)
        if "policy_delay" in hyperparameters:
            period = jnp.maximum(state.hyper["policy_delay"], 1).astype(jnp.int32)
            due = state.updates % period == 0
            state = cond_under_vmap(due, improve, state, batch.observation, included)
        else:
            state = improve(state, batch.observation, included)
        metrics = {"loss": loss, "value": jnp.mean(q_tm1), "actor_loss": state.actor_loss}
        return state, Learned(jax.vmap(worst)(error), metrics)

    def critics_of(state: DeterministicState) -> DeterministicCritics:
        return DeterministicCritics(
            state.critics, state.critics_target, state.actor_target, state.hyper
        )

    def td_error(target: DeterministicCritics, batch: Batch, key: Array) -> Array:
        error, _ = errors(target.critics, target, batch, key)
        return jax.vmap(worst)(error)

    return Agent(
        init=init,
        policy=policy,
        act=act,
        learn=learn,
        td_error=td_error,
        critics=critics_of,
        memory=lambda num_envs: explorer.memory(num_envs, num),
        observation_space=observation_space,
        action_space=action_space,
        hyperparameters=hyperparameters,
    )
