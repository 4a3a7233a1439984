"""The plain loop that users write: one scan, a `cond` at each step, `vmap` over seeds.

It does what PureJaxRL's DQN does, for the same work as the library's loop and no more: a replay
memory of one array for each field, keys split at each step, learning and the copy to the target
network each behind a `cond`, and metrics at each step.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from training_settings import (
    ENVIRONMENT,
    EPSILON_END,
    EPSILON_START,
    GAMMA,
    LEARNING_RATE,
    LEARNING_STARTS,
    TARGET_STEPS,
    Setting,
)

from accel_rl import envs


class Network(nn.Module):
    """Action values from an MLP."""

    hidden: tuple[int, ...]
    num_actions: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """[..., features] to [..., num_actions]."""
        for width in self.hidden:
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(self.num_actions)(x)


class Carry(NamedTuple):
    """What goes from step to step."""

    params: Any
    target: Any
    moments: Any  # of the optimiser
    memory: dict[str, jax.Array]  # leaves [capacity, ...]
    cursor: jax.Array  # [] int32, the next row to write
    steps: jax.Array  # [] int32, of all environments
    env: Any
    observation: jax.Array  # [E, 4]
    running: jax.Array  # [E] float32, return of the present episode so far
    last: jax.Array  # [E] float32, return of the last episode
    key: jax.Array


def network(setting: Setting) -> Network:
    """Return the network of a setting."""
    return Network(setting.hidden, envs.environment(ENVIRONMENT).action_space.n)


def make_train(setting: Setting, total: int) -> Callable[[jax.Array], tuple[Carry, Any]]:
    """Return a function from a key to the last carry and metrics of `total` environment steps.

    Metrics are leaves [iterations]: steps, loss, and the mean over the environments of the return
    of the last episode.
    """
    env, net, optimiser = (
        envs.environment(ENVIRONMENT),
        network(setting),
        optax.adam(LEARNING_RATE),
    )
    num_envs, capacity, num_actions = setting.num_envs, setting.capacity, env.action_space.n
    features = env.observation_space.shape

    def start(key: jax.Array) -> Carry:
        key, network_key, reset_key = jax.random.split(key, 3)
        params = net.init(network_key, jnp.zeros(features))
        observation, state = jax.vmap(env.reset)(jax.random.split(reset_key, num_envs))
        memory = {
            "observation": jnp.zeros((capacity, *features)),
            "action": jnp.zeros(capacity, jnp.int32),
            "reward": jnp.zeros(capacity),
            "discount": jnp.zeros(capacity),
            "next_observation": jnp.zeros((capacity, *features)),
        }
        zero, none = jnp.int32(0), jnp.zeros(num_envs)
        moments = optimiser.init(params)
        return Carry(
            *(params, params, moments, memory, zero, zero, state, observation, none, none, key)
        )

    def act(carry: Carry, key: jax.Array) -> jax.Array:
        random_key, choice_key = jax.random.split(key)
        done = jnp.minimum(carry.steps / (total / 2), 1.0)
        epsilon = EPSILON_START + (EPSILON_END - EPSILON_START) * done
        greedy = jnp.argmax(net.apply(carry.params, carry.observation), axis=-1)
        random = jax.random.randint(random_key, (num_envs,), 0, num_actions)
        return jnp.where(jax.random.uniform(choice_key, (num_envs,)) < epsilon, random, greedy)

    def learn(
        params: Any, target: Any, moments: Any, memory: dict[str, jax.Array], slots: jax.Array
    ) -> tuple[Any, Any, jax.Array]:
        batch = {name: leaf[slots] for name, leaf in memory.items()}
        following = jnp.max(net.apply(target, batch["next_observation"]), axis=-1)
        goal = batch["reward"] + GAMMA * batch["discount"] * following

        def loss(params: Any) -> jax.Array:
            values = net.apply(params, batch["observation"])
            chosen = jnp.take_along_axis(values, batch["action"][:, None], axis=-1)[:, 0]
            return jnp.mean((chosen - goal) ** 2)

        value, gradients = jax.value_and_grad(loss)(params)
        step, moments = optimiser.update(gradients, moments, params)
        return optax.apply_updates(params, step), moments, value

    def iterate(carry: Carry, _: None) -> tuple[Carry, dict[str, jax.Array]]:
        key, act_key, env_key, sample_key = jax.random.split(carry.key, 4)
        action = act(carry, act_key)
        observation, state, reward, terminated, truncated, info = jax.vmap(env.step)(
            jax.random.split(env_key, num_envs), carry.env, action
        )
        rows = (carry.cursor + jnp.arange(num_envs)) % capacity
        new = {
            "observation": carry.observation,
            "action": action,
            "reward": reward,
            "discount": 1.0 - terminated,
            "next_observation": info["final_observation"],
        }
        memory = {name: leaf.at[rows].set(new[name]) for name, leaf in carry.memory.items()}
        steps = carry.steps + num_envs
        held = jnp.minimum(steps, capacity)
        slots = jax.random.randint(sample_key, (setting.batch_size,), 0, held)
        params, moments, loss = jax.lax.cond(
            steps > LEARNING_STARTS,
            lambda: learn(carry.params, carry.target, carry.moments, memory, slots),
            lambda: (carry.params, carry.moments, 0.0),
        )
        target = jax.lax.cond(steps % TARGET_STEPS == 0, lambda: params, lambda: carry.target)
        stopped, running = terminated | truncated, carry.running + reward
        last = jnp.where(stopped, running, carry.last)
        carry = Carry(
            params=params,
            target=target,
            moments=moments,
            memory=memory,
            cursor=(carry.cursor + num_envs) % capacity,
            steps=steps,
            env=state,
            observation=observation,
            running=jnp.where(stopped, 0.0, running),
            last=last,
            key=key,
        )
        return carry, {"steps": steps, "loss": loss, "episode_return": jnp.mean(last)}

    def train(key: jax.Array) -> tuple[Carry, Any]:
        return jax.lax.scan(iterate, start(key), None, total // num_envs)

    return train
