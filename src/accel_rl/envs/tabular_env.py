"""Finite MDPs as gymnax environments."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import environment, spaces

from accel_rl.arguments import whole
from accel_rl.envs.dynamics import MDPSampler, check_next_state, make_sampler, reset, step
from accel_rl.types import MDP, Array, PyTree

_NO_LIMIT = 2**31 - 1  # the step counter's largest value


@struct.dataclass
class EnvState(environment.EnvState):
    """State of an episode."""

    time: Any  # [] int32, steps taken
    index: Array  # [] int32, the MDP's state
    terminated: Array  # [] bool, True if the last step terminated the episode


@struct.dataclass(kw_only=True)
class EnvParams(environment.EnvParams):
    """Tables of the MDP as leaves; parameters of equal shapes can be stacked for `vmap`."""

    sampler: MDPSampler
    max_steps_in_episode: Any = _NO_LIMIT  # [] int32


class TabularEnv(environment.Environment[EnvState, EnvParams]):
    """gymnax environment (the six-value step of gymnax 1.0) over the tables of an MDP.

    Observations are state numbers, [] int32. `step` resets automatically and returns the state
    before the reset as `info["final_observation"]`. Reaching the time limit is truncation, never
    termination. For bulk rollouts, `accel_rl.envs.dynamics` takes the same steps from one random
    word each.
    """

    def __init__(self, mdp: MDP, name: str = "tabular"):
        """Prepare the tables.

        Args:
            mdp: the tables; without a time limit, episodes are never truncated.
            name: the environment's name.
        """
        limit = _NO_LIMIT
        if mdp.time_limit is not None:
            limit = whole("time_limit", mdp.time_limit, 1, _NO_LIMIT)
        sampler = make_sampler(mdp)
        check_next_state(mdp, mdp.num_states)
        self._params = EnvParams(sampler=sampler, max_steps_in_episode=jnp.int32(limit))
        self._name = name

    @property
    def default_params(self) -> EnvParams:
        """Tables and time limit of the MDP."""
        return self._params

    @property
    def name(self) -> str:
        """Name of the environment."""
        return self._name

    @property
    def num_actions(self) -> int:
        """Number of actions, A."""
        return self._params.sampler.next_state.shape[1]

    @property
    def num_states(self) -> int:
        """Number of states, S."""
        return self._params.sampler.next_state.shape[0]

    def step_env(
        self, key: Array, state: EnvState, action: PyTree, params: EnvParams
    ) -> tuple[Array, EnvState, Array, Array, dict[str, Array]]:
        """Take one action, without resetting.

        Args:
            key: PRNG key; one word is drawn from it.
            state: state of the episode.
            action: [] int in [0, A).
            params: tables and time limit.

        Returns:
            observation, state, reward (float32), terminated (bool), and info with `discount`,
            0 where the episode terminated and 1 elsewhere.
        """
        bits = jax.random.bits(key, (), jnp.uint32)
        action = jnp.asarray(action).astype(jnp.int32)
        index, reward, terminated, _ = step(params.sampler, state.index, action, bits)
        state = EnvState(time=state.time + 1, index=index, terminated=terminated)
        discount = 1 - terminated.astype(jnp.float32)
        return index, state, reward, terminated, {"discount": discount}

    def reset_env(self, key: Array, params: EnvParams) -> tuple[Array, EnvState]:
        """Draw a first state by one word from the key; return its observation and the state."""
        index, _ = reset(params.sampler, jax.random.bits(key, (), jnp.uint32))
        return index, EnvState(time=jnp.int32(0), index=index, terminated=jnp.bool_(False))

    def observe(self, key: Array, state: EnvState, action: PyTree, params: EnvParams) -> Array:
        """Return the state's number, [] int32."""
        del key, action, params
        return state.index

    def is_terminated(self, state: EnvState, params: EnvParams) -> Array:
        """Return whether the step that led to the state terminated the episode, [] bool."""
        del params
        return state.terminated

    def action_space(self, params: EnvParams | None = None) -> spaces.Discrete:
        """Return the space of the A actions."""
        del params
        return spaces.Discrete(self.num_actions)

    def observation_space(self, params: EnvParams | None = None) -> spaces.Discrete:
        """Return the space of the S states."""
        del params
        return spaces.Discrete(self.num_states)

    def state_space(self, params: EnvParams | None = None) -> spaces.Dict:
        """Return the spaces of the fields of `EnvState`."""
        limit = int((params or self._params).max_steps_in_episode)
        return spaces.Dict(
            {
                "time": spaces.Discrete(min(limit, _NO_LIMIT - 1) + 1),
                "index": spaces.Discrete(self.num_states),
                "terminated": spaces.Discrete(2),
            }
        )
