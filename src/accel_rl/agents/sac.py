"""Soft actor-critic (SAC) with twin critics and a learned temperature."""

import dataclasses
from collections.abc import Sequence
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

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
from accel_rl.agents.deterministic import RATES
from accel_rl.agents.hyperparameters import Limits, options_only, resolve
from accel_rl.agents.losses import (
    LOSSES,
    soft_policy,
    soft_q,
    squashed_gaussian,
    temperature_loss,
    worst,
)
from accel_rl.agents.spaces import (
    example_features,
    features,
    require_bounded,
    require_observations,
)
from accel_rl.agents.updates import make_optimiser, polyak
from accel_rl.arguments import one_of
from accel_rl.networks import MLP, Critic, GaussianActor
from accel_rl.networks.initialisation import INITIALISATIONS, initialise
from accel_rl.types import Array, ArrayLike, Batch, PyTree, Space


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SACState:
    """State of an SAC agent; a pytree."""

    actor: PyTree
    critics: PyTree  # leaves [2, ...]
    critics_target: PyTree  # as critics
    log_temperature: Array  # [] float32
    actor_optimiser: PyTree
    critics_optimiser: PyTree
    temperature_optimiser: PyTree
    hyper: dict[str, Array]  # [] float32 each


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SACCritics:
    """Part of the state that TD errors depend on; a pytree."""

    actor: PyTree
    critics: PyTree
    critics_target: PyTree
    log_temperature: Array  # [] float32


@options_only
def sac(
    observation_space: Space,
    action_space: Space,
    *,
    torso: nn.Module | None = None,
    hidden: Sequence[int] = (64, 64),
    noise: str = "none",
    loss: str = "squared",
    optimiser: optax.GradientTransformation | None = None,
    max_gradient_norm: float | None = None,
    initialisation: Literal["lecun", "orthogonal"] = "lecun",
) -> Agent:
    """Make an SAC agent for actions in a bounded Box.

    The policy is a squashed Gaussian; greedy actions are the tanh of its mean. Entropy is that of
    actions in [-1, 1]; the default target entropy is -D for D components. With a
    `temperature_learning_rate` of 0 the temperature is constant. The TD error of a transition is
    the larger in magnitude of its two critics' errors.

    Args:
      observation_space: Discrete, encoded one-hot for the networks, or a Box.
      action_space: a Box of floats with finite bounds.
      torso: flax module from features [B, ...] to [B, width], before the hidden layers; the policy
        and each critic have separate parameters. None: flattened features.
      hidden: widths of the hidden layers of the policy and of each critic.
      noise: exploration noise that is added to the policy's actions, "none", "gaussian" or
        "ornstein_uhlenbeck".
      loss: loss of each critic, "squared" (half the squared TD error) or "huber"; the two losses
        are added.
      optimiser: an optax transformation without learning-rate scaling, such as
        `optax.scale_by_adam()`; None: Adam.
      max_gradient_norm: global norm to which gradients of each network are clipped; none: no
        clipping.
      initialisation: "lecun", as flax's layers; or "orthogonal", with gain sqrt(2), 1 for values.

    Reference: Haarnoja et al., "Soft actor-critic: off-policy maximum entropy deep reinforcement
      learning with a stochastic actor", ICML 2018; "Soft actor-critic algorithms and applications",
      arXiv 1812.05905, algorithm 1.
    """
    require_observations(observation_space)
    space = require_bounded("sac", action_space)
    one_of("noise", noise, NOISES)
    one_of("loss", loss, LOSSES)
    cost, explorer, num = LOSSES[loss], NOISES[noise](), components(space)
    acting = {**explorer.hyperparameters, **RANDOM_STEPS}
    hyperparameters = {
        **RATES,
        "temperature_learning_rate": Limits(1e-3, 0, 1, "of the temperature's optimiser"),
        "initial_temperature": Limits(1, 1e-6, 1e6, "what entropy is worth at first"),
        "target_entropy": Limits(-num, -1e6, 1e6, "entropy of actions in [-1, 1] to keep to"),
        **acting,
    }
    actor = GaussianActor(MLP(tuple(hidden)), num, torso)
    one_of("initialisation", initialisation, INITIALISATIONS)
    critics = Critics(Critic(MLP(tuple(hidden)), torso), 2, initialisation)
    updater = make_optimiser(optimiser, max_gradient_norm)

    def sample(params: PyTree, observation: Array, noise: Array) -> tuple[Array, Array]:
        distribution: PyTree = actor.apply(params, features(observation_space, observation))
        mean, log_std = distribution
        return jax.vmap(squashed_gaussian)(mean, log_std, noise)

    def init(key: Array, **given: ArrayLike) -> SACState:
        actor_key, critics_key = jax.random.split(key)
        hyper = resolve(hyperparameters, given)
        example = example_features(observation_space)
        actor_params = initialise(initialisation, actor.init(actor_key, example), actor_key)
        critics_params = critics.init(critics_key, example, jnp.zeros((1, num), jnp.float32))
        log_temperature = jnp.log(hyper["initial_temperature"])
        return SACState(
            actor=actor_params,
            critics=critics_params,
            critics_target=critics_params,
            log_temperature=log_temperature,
            actor_optimiser=updater.init(actor_params),
            critics_optimiser=updater.init(critics_params),
            temperature_optimiser=updater.init(log_temperature),
            hyper=hyper,
        )

    def policy(state: SACState) -> ContinuousPolicy:
        return ContinuousPolicy(state.actor, {each: state.hyper[each] for each in acting})

    def act(
        policy: ContinuousPolicy,
        memory: PyTree,
        observation: Array,
        key: Array,
        step: ArrayLike,
        explore: bool = True,
    ) -> tuple[Array, PyTree]:
        normal = jnp.zeros((observation.shape[0], num), jnp.float32)
        if explore:
            normal_key, uniform_key, noise_key = jax.random.split(key, 3)
            normal = jax.random.normal(normal_key, normal.shape, jnp.float32)
        action, _ = sample(policy.actor, observation, normal)
        if explore:
            keys = noise_key, uniform_key
            action, memory = explored(explorer, policy, memory, action, keys, step)
        return from_cube(space, action), memory

    def errors(
        params: PyTree, target: SACCritics, batch: Batch, noise: Array
    ) -> tuple[Array, Array]:
        next_action, log_prob = sample(target.actor, batch.next_observation, noise)
        next_features = features(observation_space, batch.next_observation)
        q_t = critics.values(target.critics_target, next_features, next_action)
        q_tm1 = critics.values(
            params, features(observation_space, batch.observation), to_cube(space, batch.action)
        )
        temperature = jnp.exp(target.log_temperature)
        error = jax.vmap(soft_q, (0, 0, 0, 0, 0, None))(
            q_tm1, batch.reward, batch.discount, q_t, log_prob, temperature
        )
        return error, q_tm1

    def learn(
        state: SACState, batch: Batch, weights: Array, key: Array
    ) -> tuple[SACState, Learned]:
        noise = jax.random.normal(key, (2, weights.shape[0], num), jnp.float32)
        included = (weights > 0).astype(jnp.float32)
        target, hyper = critics_of(state), state.hyper
        temperature = jnp.exp(state.log_temperature)

        def critics_cost(params: PyTree) -> tuple[Array, tuple[Array, Array]]:
            error, q_tm1 = errors(params, target, batch, noise[0])
            return jnp.mean(weights * jnp.sum(cost(error), axis=-1)), (error, q_tm1)

        (loss, (error, q_tm1)), gradients = jax.value_and_grad(critics_cost, has_aux=True)(
            state.critics
        )
        critics_params, critics_moments = updater.descend(
            gradients,
            state.critics_optimiser,
            state.critics,
            hyper["critic_learning_rate"],
            hyper,
        )

        def actor_cost(params: PyTree) -> tuple[Array, Array]:
            action, log_prob = sample(params, batch.observation, noise[1])
            q = critics.values(
                critics_params, features(observation_space, batch.observation), action
            )
            each = jax.vmap(soft_policy, (0, 0, None))(q, log_prob, temperature)
            return jnp.mean(included * each), log_prob

        (actor_loss, log_prob), gradients = jax.value_and_grad(actor_cost, has_aux=True)(
            state.actor
        )
        actor_params, actor_moments = updater.descend(
            gradients, state.actor_optimiser, state.actor, hyper["actor_learning_rate"], hyper
        )

        def temperature_cost(log_temperature: Array) -> Array:
            each = jax.vmap(temperature_loss, (None, 0, None))(
                log_temperature, log_prob, hyper["target_entropy"]
            )
            return jnp.mean(included * each)

        log_temperature, temperature_moments = updater.descend(
            jax.grad(temperature_cost)(state.log_temperature),
            state.temperature_optimiser,
            state.log_temperature,
            hyper["temperature_learning_rate"],
            hyper,
        )
        state = SACState(
            actor=actor_params,
            critics=critics_params,
            critics_target=polyak(critics_params, state.critics_target, hyper["tau"]),
            log_temperature=log_temperature,
            actor_optimiser=actor_moments,
            critics_optimiser=critics_moments,
            temperature_optimiser=temperature_moments,
            hyper=hyper,
        )
        metrics = {
            "loss": loss,
            "value": jnp.mean(q_tm1),
            "actor_loss": actor_loss,
            "entropy": -jnp.mean(log_prob),
            "temperature": temperature,
        }
        return state, Learned(jax.vmap(worst)(error), metrics)

    def critics_of(state: SACState) -> SACCritics:
        return SACCritics(state.actor, state.critics, state.critics_target, state.log_temperature)

    def td_error(target: SACCritics, batch: Batch, key: Array) -> Array:
        # The same draw as in `learn`, so that both compute the same error for the same key.
        noise = jax.random.normal(key, (2, batch.reward.shape[0], num), jnp.float32)[0]
        error, _ = errors(target.critics, target, batch, noise)
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
