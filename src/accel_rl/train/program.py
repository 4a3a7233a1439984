"""A training program: environment, agent and memory as pure steps.

The steps are collect, insert, sample, learn, update and sync; an iteration takes each in turn, and
a segment is a loop of iterations. What runs them is an executor's business.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent, Limits
from accel_rl.agents.hyperparameters import resolve
from accel_rl.arguments import instance
from accel_rl.replay import Replay, after, td_priority
from accel_rl.train import collection, delay
from accel_rl.train.collection import ActorState, Episodes
from accel_rl.train.fit import check_fit
from accel_rl.train.schedule import Schedule
from accel_rl.train.state import Keys, Totals, TrainState
from accel_rl.types import Array, ArrayLike, Environment, ReplayPort, Sample

HYPERPARAMETERS = {
    "gamma": Limits(0.99, 0, 1, "discount factor of an environment step"),
    "beta": Limits(0.4, 0, 1e3, "exponent of importance weights at the first step"),
    "beta_end": Limits(1, 0, 1e3, "exponent of importance weights after beta_steps"),
    "beta_steps": Limits(500_000, 1, 1e12, "environment steps from the first exponent to the last"),
}
_OTHERS = "; the agent's go into agent={...}, the memory's into replay={...}"

BLOCK = 512  # iterations whose random keys are made at once: few calls, little memory


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """The steps of a training, as pure functions. Made by `make`; not a pytree, equal to itself."""

    env: Environment
    agent: Agent
    memory: Replay | ReplayPort
    schedule: Schedule

    def init(
        self,
        key: Array,
        *,
        agent: Mapping[str, ArrayLike] | None = None,
        replay: Mapping[str, ArrayLike] | None = None,
        **hyperparameters: ArrayLike,
    ) -> TrainState:
        """The state before the first iteration.

        Args:
          key: random key of the whole training.
          agent: hyper-parameters of the agent's `init`.
          replay: hyper-parameters of the memory's `init`, such as alpha.
          **hyperparameters: of `HYPERPARAMETERS`: gamma, beta, beta_end, beta_steps.

        Raises:
          TypeError: if a name is unknown.
          ValueError: if a value is known and out of its range.
        """
        hyper = resolve(HYPERPARAMETERS, hyperparameters, _OTHERS)
        agent_key, actor_key, run_key = jax.random.split(key, 3)
        agent_state = self.agent.init(agent_key, **(agent or {}))
        policy = self.agent.policy(agent_state)
        schedule, memory = self.schedule, None
        if isinstance(self.memory, Replay):
            memory = self.memory.init(**(replay or {}))
        return TrainState(
            agent=agent_state,
            replay=memory,
            actor=collection.start(self.env, self.agent, schedule.num_envs, policy, actor_key),
            policies=delay.start(policy, schedule.policy_lag),
            late=self._no_priorities(memory),
            key=jax.random.key_data(run_key),
            iteration=jnp.int32(0),
            hyper=hyper,
        )

    def keys(self, key: Array, iteration: ArrayLike) -> Keys:
        """The random keys of an iteration."""
        schedule = self.schedule
        acting = schedule.rollout * (1 + schedule.num_envs)
        number = acting + 2 * schedule.updates
        key = jax.random.fold_in(jax.random.wrap_key_data(key), iteration)
        keys = jax.random.wrap_key_data(jax.random.bits(key, (number, 2), jnp.uint32))
        sample, learn = keys[acting:].reshape(2, schedule.updates)
        return Keys(keys[:acting].reshape(schedule.rollout, -1), sample, learn)

    def collect(
        self, actor: ActorState, policy: Any, keys: Keys, iteration: ArrayLike
    ) -> tuple[ActorState, Any, Episodes]:
        """Step 1: act. See `collection.collect`."""
        step = iteration * np.int32(self.schedule.steps)
        return collection.collect(self.env, self.agent, actor, policy, keys.collect, step)

    def beta(self, hyper: Mapping[str, Array], iteration: ArrayLike) -> Array:
        """The exponent of importance weights in an iteration, [] float32."""
        steps = jnp.asarray(iteration * np.int32(self.schedule.steps)).astype(jnp.float32)
        done = jnp.minimum(steps / hyper["beta_steps"], 1)
        return hyper["beta"] + (hyper["beta_end"] - hyper["beta"]) * done

    def iterate(
        self, state: TrainState, totals: Totals, keys: Keys, learning: bool
    ) -> tuple[TrainState, Totals]:
        """One iteration: sample, learn and update as often as asked, sync, collect, insert.

        Learning comes first, so that a compiled loop reads the memory before it writes to it.
        """
        carry = (state.agent, state.replay, state.late, totals)
        if learning:
            beta = self.beta(state.hyper, state.iteration)
            if self.schedule.updates == 1:
                carry = self._learn(carry, state.hyper, beta, keys.sample[0], keys.learn[0])
            else:
                carry = jax.lax.fori_loop(
                    0,
                    self.schedule.updates,
                    lambda n, carry: self._learn(
                        carry, state.hyper, beta, keys.sample[n], keys.learn[n]
                    ),
                    carry,
                )
        agent, memory, late, totals = carry
        newest = self.agent.policy(agent)
        policy = delay.oldest(state.policies, newest)
        actor, transitions, episodes = self.collect(state.actor, policy, keys, state.iteration)
        totals = dataclasses.replace(
            totals, episodes=jax.tree.map(jnp.add, totals.episodes, episodes)
        )
        state = dataclasses.replace(
            state,
            agent=agent,
            replay=self.require_replay().add(memory, transitions),
            actor=actor,
            policies=delay.push(state.policies, newest),
            late=late,
            iteration=state.iteration + np.int32(1),
        )
        return state, totals

    def segment(
        self, state: TrainState, iterations: ArrayLike, learning: bool
    ) -> tuple[TrainState, dict[str, Array]]:
        """A loop of iterations.

        Args:
          state: where the training stands.
          iterations: how many; may be traced, so that one compiled program serves any number.
          learning: whether they learn; static.

        Returns:
          The new state, and metrics of the segment; see `metrics`.
        """
        iterations = jnp.asarray(iterations, jnp.int32)

        def block(number: Array, carry: Any) -> Any:
            state, _ = carry
            ahead = state.iteration + jnp.arange(BLOCK, dtype=jnp.int32)
            keys = jax.vmap(self.keys, (None, 0))(state.key, ahead)

            def iteration(n: Array, carry: Any) -> Any:
                state, totals = carry
                return self.iterate(
                    state, totals, jax.tree.map(lambda leaf: leaf[n], keys), learning
                )

            left = jnp.minimum(iterations - number * np.int32(BLOCK), np.int32(BLOCK))
            return jax.lax.fori_loop(0, left, iteration, carry)

        blocks = (iterations + np.int32(BLOCK - 1)) // np.int32(BLOCK)
        state, totals = jax.lax.fori_loop(0, blocks, block, (state, self._zeros(state)))
        return state, self.metrics(state, totals)

    def metrics(self, state: TrainState, totals: Totals) -> dict[str, Array]:
        """What a segment's sums say, scalars.

        `steps`, of environments since the start; `episodes` that stopped in the segment, and the
        means of their `episode_return` and `episode_length` (NaN if none did); `updates` in the
        segment, and the mean of each of the agent's metrics over them (NaN if none).
        """
        episodes = totals.episodes
        count = _positive(episodes.count)
        learned = {name: each / _positive(totals.updates) for name, each in totals.learned.items()}
        return {
            "steps": state.iteration * np.int32(self.schedule.steps),
            "episodes": episodes.count,
            "episode_return": episodes.episode_return / count,
            "episode_length": episodes.episode_length / count,
            "updates": totals.updates,
            **learned,
        }

    def _learn(
        self, carry: Any, hyper: Mapping[str, Array], beta: Array, sample_key: Array, key: Array
    ) -> Any:
        agent, memory, late, totals = carry
        replay = self.require_replay()
        sample = replay.sample(memory, sample_key, beta, hyper["gamma"])
        agent, learned = self.agent.learn(agent, sample.batch, sample.weights, key)
        given = (without_batch(sample), td_priority(learned.td_error), jnp.bool_(True))
        oldest, priorities, there = delay.oldest(late, given)
        memory = after(replay.update(memory, oldest, priorities, there), learned.td_error)
        totals = dataclasses.replace(
            totals,
            updates=totals.updates + np.int32(1),
            learned=jax.tree.map(jnp.add, totals.learned, learned.metrics),
        )
        return agent, memory, delay.push(late, given), totals

    def require_replay(self) -> Replay:
        """The memory; raises TypeError if it is a replay port."""
        if not isinstance(self.memory, Replay):
            raise TypeError(
                f"{type(self.memory).__name__} is a replay port, outside the program: train with "
                "the pipelined executor"
            )
        return self.memory

    def _no_priorities(self, memory: Any) -> Any:
        """A queue of updates that change nothing; a port, outside the state, has none."""
        if self.schedule.priority_lag == 0 or memory is None:
            return None
        sample = jax.eval_shape(
            lambda: self.require_replay().sample(memory, jax.random.key(0), 1.0, 1.0)
        )
        priorities = jax.ShapeDtypeStruct(sample.indices.shape, jnp.float32)
        item = (without_batch(sample), priorities, jax.ShapeDtypeStruct((), bool))
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), item)
        return delay.start(zeros, self.schedule.priority_lag)

    def _zeros(self, state: TrainState) -> Totals:
        def learn() -> dict[str, Array]:
            sample = self.require_replay().sample(state.replay, jax.random.key(0), 1.0, 1.0)
            key = jax.random.key(0)
            return self.agent.learn(state.agent, sample.batch, sample.weights, key)[1].metrics

        learned = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(learn)
        )
        zero = jnp.float32(0)
        return Totals(Episodes(jnp.int32(0), zero, zero), jnp.int32(0), learned)


def make(
    env: Environment,
    agent: Agent,
    memory: Replay | ReplayPort,
    **schedule: int,
) -> Program:
    """A training program.

    Args:
      env: one environment; `envs.environment` makes one by name.
      agent: made for the environment's spaces.
      memory: made for `example(env, agent)` and the same num_envs; or a replay port.
      **schedule: fields of `Schedule`.

    Raises:
      TypeError: if an argument is not what it must be.
      ValueError: if the parts do not fit each other, or a number is out of range.
    """
    instance("env", env, Environment, "envs.environment makes one")
    instance("agent", agent, Agent, "agents.dqn and others make one")
    plan = Schedule(**schedule)
    check_fit(env, agent, memory, plan)
    return Program(env, agent, memory, plan)


def without_batch(sample: Sample) -> Sample:
    """What an update of priorities needs of a sample."""
    return dataclasses.replace(sample, batch=None)


def _positive(count: Array) -> Array:
    """As float32, NaN where zero."""
    return jnp.where(count > 0, count.astype(jnp.float32), np.float32(np.nan))
