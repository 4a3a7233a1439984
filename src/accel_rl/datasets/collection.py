"""Collection of experience with many environments in parallel, in one compiled program."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of, whole
from accel_rl.datasets.dataset import DatasetInfo, TabularDataset
from accel_rl.datasets.policies import (
    Policy,
    deterministic_policy,
    draw,
    random_policy,
    stochastic_policy,
)
from accel_rl.envs import dynamics
from accel_rl.types import MDP, Array, ArrayLike, TabularTransition

_MAX_ENVS = 1000
_MIN_STEPS = 1000

# State, next action to take, steps since the episode began, episode number; each [E] int32.
_Carry = tuple[Array, Array, Array, Array]


def collect(
    mdp: MDP,
    policy: Policy | str | ArrayLike = "random",
    num_transitions: int = 1_000_000,
    *,
    seed: int = 0,
    num_envs: int | None = None,
    environment: str = "unnamed",
) -> TabularDataset:
    """Collect a dataset under a fixed behaviour policy.

    Episodes are truncated after `mdp.time_limit` steps. Each environment's last episode is cut
    where the collection ends, which also counts as a truncation. With many environments and few
    steps each, the beginnings of episodes are over-represented, so by default every environment
    takes 1,000 steps or more.

    Args:
        mdp: the tables of the environment, with concrete values (not inside `jit`).
        policy: "random", a policy of `accel_rl.datasets`, [S] integer actions, or [S, A] action
            probabilities.
        num_transitions: N, 1 to 2^31 - 1.
        seed: 0 to 2^32 - 1. The same seed yields the same data on every device and machine with the
            same jax version.
        num_envs: E, parallel environments, at most N. By default N / 1,000, but at least 1 and at
            most 1,000.
        environment: name stored with the data.

    Returns:
        N transitions, ordered by environment, then by time.
    """
    num_transitions = whole("num_transitions", num_transitions, 1, 2**31 - 1)
    if num_envs is None:
        num_envs = min(_MAX_ENVS, max(1, num_transitions // _MIN_STEPS))
    num_envs = whole("num_envs", num_envs, 1, num_transitions)
    seed = whole("seed", seed, 0, 2**32 - 1)
    if mdp.time_limit is not None:
        whole("mdp.time_limit", mdp.time_limit, 1, 2**31 - 1)
    dynamics.check_next_state(mdp, mdp.num_states)
    policy = _policy(policy, mdp)
    transitions, episode = rollout(
        dynamics.make_sampler(mdp),
        policy,
        jax.random.key(seed, impl="threefry2x32"),
        num_transitions=num_transitions,
        num_envs=num_envs,
        time_limit=mdp.time_limit,
    )
    info = DatasetInfo(environment, mdp.num_states, mdp.num_actions, policy.description, seed)
    return TabularDataset(transitions, episode, info)


@functools.partial(jax.jit, static_argnames=("num_transitions", "num_envs", "time_limit"))
def rollout(
    sampler: dynamics.MDPSampler,
    policy: Policy,
    key: Array,
    *,
    num_transitions: int,
    num_envs: int,
    time_limit: int | None = None,
) -> tuple[TabularTransition, Array]:
    """Roll out a policy; the compiled part of `collect`.

    It is a pure function: `vmap` it over keys to collect several datasets. E environments take
    ceil(N / E) steps each. A step draws one 32-bit word for each environment. That word determines
    the outcome, the next action and, if the episode ends, the next episode's first state and action
    (see `envs.dynamics` for the exactness).

    Args:
        sampler: from `dynamics.make_sampler`.
        policy: the behaviour policy, with the sampler's states and actions.
        key: a typed PRNG key, [].
        num_transitions: N, static.
        num_envs: E, static, 1 to N.
        time_limit: steps after which an episode is truncated, at least 1, or None, static.

    Returns:
        transitions: columns [N], ordered by environment, then by time; if E does not divide N, the
            last environments contribute fewer rows.
        episode: [N] int32, numbered from 0.
    """
    if time_limit is not None:
        whole("time_limit", time_limit, 1)
    if policy.num_actions != sampler.next_state.shape[1]:
        raise ValueError(
            f"policy has {policy.num_actions} actions, the sampler {sampler.next_state.shape[1]}"
        )

    def words(key: Array) -> Array:
        return jax.random.bits(key, (num_envs,), jnp.uint32)

    def begin(bits: Array) -> tuple[Array, Array]:
        state, bits = dynamics.reset(sampler, bits)
        return state, draw(policy, state, bits)[0]

    def step(carry: _Carry, key: Array) -> tuple[_Carry, tuple[Array, ...]]:
        state, action, length, episode = carry
        next_state, reward, terminated, bits = dynamics.step(sampler, state, action, words(key))
        next_action, bits = draw(policy, next_state, bits)
        first_state, first_action = begin(bits)
        length = length + 1
        ended = terminated if time_limit is None else terminated | (length >= time_limit)
        logged = (state, action, reward, next_state, terminated, next_action, episode)
        return (
            jnp.where(ended, first_state, next_state),
            jnp.where(ended, first_action, next_action),
            jnp.where(ended, 0, length),
            episode + ended.astype(jnp.int32),
        ), logged

    steps = -(-num_transitions // num_envs)
    keys = jax.random.split(key, steps + 1)
    none = jnp.zeros(num_envs, jnp.int32)
    _, logged = jax.lax.scan(step, (*begin(words(keys[0])), none, none), keys[1:])
    state, action, reward, next_state, terminated, next_action, episode = (
        column.T for column in logged
    )
    # Each environment counts its episodes from 0; offset them by those of earlier environments.
    counts = episode[:, -1] + 1
    episode = episode + (jnp.cumsum(counts) - counts)[:, None]

    def rows(column: Array) -> Array:
        return column.reshape(-1)[:num_transitions]

    transitions = TabularTransition(
        state=rows(state),
        action=rows(action),
        reward=rows(reward),
        next_state=rows(next_state),
        discount=rows(1 - terminated.astype(jnp.float32)),
        next_action=rows(jnp.where(terminated, 0, next_action)),
    )
    return transitions, rows(episode)


def _policy(policy: Policy | str | ArrayLike, mdp: MDP) -> Policy:
    """Convert the argument of `collect` to a policy, and check it against the MDP."""
    if isinstance(policy, str):
        one_of("policy", policy, ("random",))
        return random_policy(mdp.num_actions)
    if not isinstance(policy, Policy):
        table = np.asarray(policy)
        if table.ndim == 1:
            policy = deterministic_policy(table, mdp.num_actions)
        else:
            policy = stochastic_policy(table)
    states = mdp.num_states if policy.sampler is None else policy.sampler.next_state.shape[0]
    found, wanted = (states, policy.num_actions), (mdp.num_states, mdp.num_actions)
    if found != wanted:
        raise ValueError(
            f"policy must have (states, actions) {wanted} of the environment, got {found}"
        )
    return policy
