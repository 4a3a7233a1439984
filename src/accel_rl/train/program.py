"""Training program: environment, agent and replay buffer as pure steps.

The steps are collect, insert, sample, learn, update and sync. An iteration runs each in turn, and a
segment is a loop of iterations. Executors place and order the steps.
"""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents import Agent, Limits
from accel_rl.agents.hyperparameters import resolve
from accel_rl.arguments import prng_key, within
from accel_rl.replay import Replay, after, td_priority
from accel_rl.train import collection
from accel_rl.train.collection import ActorState, Episodes
from accel_rl.train.compatibility import check_compatible
from accel_rl.train.metrics import segment_metrics
from accel_rl.train.schedule import Schedule
from accel_rl.train.state import (
    Keys,
    SegmentSums,
    TrainState,
    fill_fifo,
    oldest_of,
    push_into,
    without_batch,
)
from accel_rl.train.value_limit import value_limit
from accel_rl.types import Array, ArrayLike, Environment, PyTree, ReplayPort, Transition

HYPERPARAMETERS = {
    "gamma": Limits(0.99, 0, 1, "discount factor of an environment step"),
    "beta": Limits(0.4, 0, 1e3, "exponent of importance-sampling weights at the first step"),
    "beta_end": Limits(1, 0, 1e3, "exponent of importance-sampling weights after beta_steps"),
    "beta_steps": Limits(500_000, 1, 1e12, "environment steps from the first exponent to the last"),
}
_OTHERS = "; the agent's go into agent={...}, the replay buffer's into replay={...}"


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """Steps of a training, as pure functions. Made by `make`; not a pytree, hashed by identity."""

    env: Environment
    agent: Agent
    buffer: Replay | ReplayPort
    schedule: Schedule
    reward_scale: float = 1.0  # factor of rewards in transitions; returns of episodes lack it

    def init(
        self,
        key: Array,
        *,
        agent: Mapping[str, ArrayLike] | None = None,
        replay: Mapping[str, ArrayLike] | None = None,
        **hyperparameters: ArrayLike,
    ) -> TrainState:
        """Return the state before the first iteration.

        Args:
          key: PRNG key of the training.
          agent: hyper-parameters of the agent's `init`.
          replay: hyper-parameters of the buffer's `init`, such as alpha.
          **hyperparameters: of `HYPERPARAMETERS`: gamma, beta, beta_end, beta_steps.
        """
        prng_key("key", key)
        hyper = resolve(HYPERPARAMETERS, hyperparameters, _OTHERS)
        agent_key, actor_key, run_key = jax.random.split(key, 3)
        agent_state = self.agent.init(agent_key, **(agent or {}))
        policy = self.agent.policy(agent_state)
        schedule, buffer = self.schedule, None
        if isinstance(self.buffer, Replay):
            buffer = self.buffer.init(**(replay or {}))
        return TrainState(
            agent=agent_state,
            replay=buffer,
            actor=collection.start(self.env, self.agent, schedule.num_envs, policy, actor_key),
            delayed_policies=fill_fifo(policy, schedule.policy_lag),
            delayed_priorities=self._empty_updates(buffer),
            key=jax.random.key_data(run_key),
            iteration=jnp.int32(0),
            value_limit=jnp.float32(0),
            hyper=hyper,
        )

    def keys(self, key: Array, iteration: ArrayLike) -> Keys:
        """Derive the keys of an iteration."""
        schedule = self.schedule
        acting = schedule.keys - 2 * schedule.updates
        key = jax.random.fold_in(jax.random.wrap_key_data(key), iteration)
        keys = jax.random.wrap_key_data(jax.random.bits(key, (schedule.keys, 2), jnp.uint32))
        sample, learn = keys[acting:].reshape(2, schedule.updates)
        return Keys(keys[:acting].reshape(schedule.rollout, -1), sample, learn)

    def collect(
        self, actor: ActorState, policy: PyTree, keys: Array, iteration: ArrayLike
    ) -> tuple[ActorState, PyTree, Episodes]:
        """Act for a rollout in as many environments as `keys` are for; see `collection.collect`."""
        num_envs, steps = np.int32(self.schedule.num_envs), np.int32(self.schedule.steps)
        actor, transitions, episodes = collection.collect(
            self.env, self.agent, actor, policy, keys, iteration * steps, num_envs=num_envs
        )
        return actor, self.scaled(transitions), episodes

    def scaled(self, transitions: Transition) -> Transition:
        """Return transitions with rewards multiplied by `reward_scale`, arrays of JAX or NumPy."""
        if self.reward_scale == 1:
            return transitions
        reward = transitions.reward * np.float32(self.reward_scale)
        return dataclasses.replace(transitions, reward=reward)

    def beta(self, hyper: Mapping[str, Array], iteration: ArrayLike) -> Array:
        """Return the exponent of importance-sampling weights in an iteration, [] float32."""
        steps = jnp.asarray(iteration * np.int32(self.schedule.steps)).astype(jnp.float32)
        done = jnp.minimum(steps / hyper["beta_steps"], 1)
        return hyper["beta"] + (hyper["beta_end"] - hyper["beta"]) * done

    def iterate(
        self, state: TrainState, sums: SegmentSums, keys: Keys, learning: bool
    ) -> tuple[TrainState, SegmentSums]:
        """Sample, learn and update `updates` times, then sync, collect and insert."""
        # Learning comes first, so that a compiled loop reads the buffer before it writes to it:
        # otherwise XLA copies the buffer.
        state, sums, policy = self.learn(state, sums, keys, learning)
        actor, transitions, episodes = self.collect(
            state.actor, policy, keys.collect, state.iteration
        )
        sums = dataclasses.replace(sums, episodes=jax.tree.map(jnp.add, sums.episodes, episodes))
        return self.insert(dataclasses.replace(state, actor=actor), transitions), sums

    def learn(
        self, state: TrainState, sums: SegmentSums, keys: Keys, learning: bool
    ) -> tuple[TrainState, SegmentSums, PyTree]:
        """Sample, learn and update `updates` times, then sync; also return the acting policy."""
        carry = (state.agent, state.replay, state.delayed_priorities, sums)
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
        agent, buffer, delayed, sums = carry
        newest = self.agent.policy(agent)
        policy = oldest_of(state.delayed_policies, newest)
        state = dataclasses.replace(
            state,
            agent=agent,
            replay=buffer,
            delayed_policies=push_into(state.delayed_policies, newest),
            delayed_priorities=delayed,
        )
        return state, sums, policy

    def insert(self, state: TrainState, transitions: Transition) -> TrainState:
        """Insert the transitions of an iteration, which ends with this."""
        buffer = self.require_replay().add(state.replay, transitions, batch_major=False)
        iteration = state.iteration + np.int32(1)
        return dataclasses.replace(state, replay=buffer, iteration=iteration)

    def segment(
        self, state: TrainState, iterations: ArrayLike, learning: bool
    ) -> tuple[TrainState, dict[str, Array]]:
        """Run a loop of iterations.

        Args:
          state: before the segment.
          iterations: number of iterations; may be traced, so one compiled program serves all.
          learning: update the agent; static.

        Returns:
          The new state, and metrics of the segment; see `metrics`.
        """
        iterations, most = jnp.asarray(iterations, jnp.int32), np.int32(self.schedule.ahead)

        def block(number: Array, carry: PyTree) -> PyTree:
            state, _ = carry
            # The same keys as one call for each iteration gives, whatever the block.
            ahead = state.iteration + jnp.arange(most, dtype=jnp.int32)
            keys = jax.vmap(self.keys, (None, 0))(state.key, ahead)

            def iteration(n: Array, carry: PyTree) -> PyTree:
                state, sums = carry
                return self.iterate(state, sums, jax.tree.map(lambda leaf: leaf[n], keys), learning)

            left = jnp.minimum(iterations - number * most, most)
            return jax.lax.fori_loop(0, left, iteration, carry)

        blocks = (iterations + most - 1) // most
        state, sums = jax.lax.fori_loop(0, blocks, block, (state, self.zeros(state)))
        return self.finish(state, sums), self.metrics(state, sums)

    def finish(self, state: TrainState, sums: SegmentSums) -> TrainState:
        """Return the state at the end of a segment."""
        return dataclasses.replace(state, value_limit=sums.value_limit)

    def metrics(self, state: TrainState, sums: SegmentSums) -> dict[str, Array]:
        """Convert the sums of a segment to metrics, scalars.

        `steps`: environment steps since the start. `episodes`: episodes that ended in the segment;
        `episode_return` and `episode_length`: their means, NaN if none ended. `updates`: updates in
        the segment; the agent's metrics are means over them, NaN if there were none.
        `value_excess`: the mean value, if the agent reports it, over the largest that the rewards
        and discounts sampled so far allow; far above 1 where learning diverges, 0 if gamma is 1,
        NaN before the first reward.
        """
        return segment_metrics(sums, state.iteration * np.int32(self.schedule.steps))

    def _learn(
        self, carry: PyTree, hyper: Mapping[str, Array], beta: Array, sample_key: Array, key: Array
    ) -> PyTree:
        agent, buffer, delayed, sums = carry
        replay = self.require_replay()
        sample = replay.sample(buffer, sample_key, beta, hyper["gamma"])
        agent, learned = self.agent.learn(agent, sample.batch, sample.weights, key)
        newest = (without_batch(sample), td_priority(learned.td_error), jnp.bool_(True))
        oldest, priorities, valid = oldest_of(delayed, newest)
        buffer = after(replay.update(buffer, oldest, priorities, valid), learned.td_error)
        sums = dataclasses.replace(
            sums,
            updates=sums.updates + np.int32(1),
            learned=jax.tree.map(jnp.add, sums.learned, learned.metrics),
            value_limit=jnp.maximum(
                sums.value_limit, value_limit(self.agent, sample.batch, learned.metrics)
            ),
        )
        return agent, buffer, push_into(delayed, newest), sums

    def require_replay(self) -> Replay:
        """Return the buffer's functions; raise TypeError if it is a replay port."""
        if not isinstance(self.buffer, Replay):
            raise TypeError(
                f"{type(self.buffer).__name__} is a replay port, outside the program: train with "
                "the deterministic or the asynchronous executor"
            )
        return self.buffer

    def _empty_updates(self, buffer: PyTree) -> PyTree:
        """Return a fifo of priority updates that change nothing; None for a replay port."""
        if self.schedule.priority_lag == 0 or buffer is None:
            return None
        sample = jax.eval_shape(
            lambda: self.require_replay().sample(buffer, jax.random.key(0), 1.0, 1.0)
        )
        priorities = jax.ShapeDtypeStruct(sample.indices.shape, jnp.float32)
        item = (without_batch(sample), priorities, jax.ShapeDtypeStruct((), bool))
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), item)
        return fill_fifo(zeros, self.schedule.priority_lag)

    def zeros(self, state: TrainState) -> SegmentSums:
        """Return the sums at the start of a segment."""

        def learn() -> dict[str, Array]:
            sample = self.require_replay().sample(state.replay, jax.random.key(0), 1.0, 1.0)
            key = jax.random.key(0)
            return self.agent.learn(state.agent, sample.batch, sample.weights, key)[1].metrics

        learned = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(learn)
        )
        zero = jnp.float32(0)
        episodes = Episodes(jnp.int32(0), zero, zero)
        return SegmentSums(episodes, jnp.int32(0), learned, state.value_limit)


def make(
    env: Environment,
    agent: Agent,
    buffer: Replay | ReplayPort,
    *,
    reward_scale: float = 1.0,
    **schedule: int,
) -> Program:
    """Assemble a training program.

    Args:
      env: one environment; `envs.environment` makes one by name.
      agent: made for the environment's spaces.
      buffer: made for `example(env, agent)` and the same num_envs; or a replay port.
      reward_scale: factor of the rewards that the agent learns from, above 0. Returns of episodes
        and evaluations are in the environment's own units.
      **schedule: fields of `Schedule`.
    """
    plan = Schedule(**schedule)
    check_compatible(env, agent, buffer, plan)
    within("reward_scale", reward_scale, "(0, inf)")  # a negative one would invert the objective
    return Program(env, agent, buffer, plan, float(reward_scale))
