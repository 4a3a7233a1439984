"""A learner, alone or one of several that are one, with batches that a seed gives.

Arguments: its number, how many there are, the address where they meet, a file for what it learned.
Each has its part of the same batches.
"""

import sys

import jax
import numpy as np

from accel_rl import agents, envs, train
from accel_rl.remote.apex import replicas
from accel_rl.types import Batch, Sample

BATCH, UPDATES, STEPS = 16, 2, 200


class Given:
    """A port that gives this learner's part of batches that are drawn by number."""

    limited = False

    def __init__(self, number, count):
        self.part = slice(number * BATCH // count, (number + 1) * BATCH // count)
        self.sampled, self.priorities = 0, []

    def sample(self, key, beta, gamma):
        rng = np.random.default_rng(self.sampled)
        self.sampled += 1

        def normal(*shape):
            return rng.normal(size=(BATCH, *shape)).astype(np.float32)[self.part]

        batch = Batch(
            observation=normal(4),
            action=rng.integers(0, 2, BATCH).astype(np.int32)[self.part],
            reward=normal(),
            discount=np.full(BATCH, 0.9, np.float32)[self.part],
            next_observation=normal(4),
            extras=None,
        )
        weights = rng.uniform(0.1, 1, BATCH).astype(np.float32)[self.part]
        slots = np.arange(BATCH, dtype=np.int32)[self.part]
        return Sample(batch, slots, weights, weights, slots)

    def update(self, sample, priorities):
        self.priorities.append(np.asarray(priorities))

    def can_sample(self):
        return True

    def add(self, transitions, priorities=None):
        raise AssertionError

    def close(self):
        return


def learned(number, count):
    env = envs.environment("CartPole-v1")
    agent = agents.dqn(env.observation_space, env.action_space, hidden=(16,))
    port = Given(number, count)
    program = train.make(
        env, agent, port, num_envs=2, rollout=4, updates=UPDATES, learning_starts=16,
        priority_lag=1, policy_lag=1,
    )  # fmt: skip
    placement = train.Placement(learn=replicas.devices()) if count > 1 else None
    versions = []
    done = train.pipelined(
        program, jax.random.key(3), STEPS, placement=placement,
        executor="asynchronous", num_actors=0, on_publish=versions.append,
        hyper={"agent": {"learning_rate": 0.01, "target_period": 5}},
    )  # fmt: skip
    parameters = [np.asarray(leaf) for leaf in jax.tree.leaves(done.state.agent)]
    published = jax.tree.leaves(versions[-1].published.policy)
    for one, other in zip(jax.tree.leaves(agent.policy(done.state.agent)), published, strict=True):
        np.testing.assert_array_equal(one, other)
    losses = [row["loss"] for row in done.rows]
    return parameters, np.array(port.priorities), np.array(losses)


def main():
    number, count = int(sys.argv[1]), int(sys.argv[2])
    replicas.join(sys.argv[3], number, count)
    parameters, priorities, losses = learned(number, count)
    np.savez(sys.argv[4], *parameters, priorities=priorities, losses=losses)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
