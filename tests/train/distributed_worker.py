"""One of several `jax.distributed` processes that train together, with plain JAX.

Arguments: its number, how many there are, the address where they meet, a file for its results.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import walk
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from accel_rl import agents, replay, train
from accel_rl.types import Batch

SEEDS, SHARDS, ITEMS, BATCH, UPDATES = 4, 4, 24, 16, 12


def mesh():
    """All processes' devices, or as many of one process."""
    return jax.make_mesh(
        (SHARDS,), ("shard",), axis_types=(AxisType.Auto,), devices=jax.devices()[:SHARDS]
    )


def training():
    """A fused training of DQN, from the data of a key to its parameters."""
    env = walk.environment()
    agent = agents.dqn(*walk.SPACES, hidden=(8,))
    buffer = replay.make(train.example(env, agent), 128, 8, num_envs=2)
    program = train.make(env, agent, buffer, num_envs=2, learning_starts=64)
    run = train.fused(program, 160)
    return lambda key: run(jax.random.wrap_key_data(key)).state.agent.params


def over_seeds(run):
    """Results of all seeds, which lie on all devices, as NumPy arrays."""
    keys = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(5), SEEDS)))
    return jax.jit(train.over_seeds(run, devices=jax.devices()[:SHARDS]))(keys)


def transitions():
    """Transitions of all shards [shards, items, ...], and their priorities."""
    rng = np.random.default_rng(11)
    shape = (SHARDS, ITEMS)
    batch = Batch(
        observation=rng.normal(size=(*shape, 3)).astype(np.float32),
        action=rng.integers(0, 2, shape).astype(np.int32),
        reward=rng.normal(size=shape).astype(np.float32),
        discount=np.full(shape, 0.9, np.float32),
        next_observation=rng.normal(size=(*shape, 3)).astype(np.float32),
        extras=None,
    )
    return batch, rng.uniform(0.1, 2, shape).astype(np.float32)


def learner():
    agent = agents.dqn(*walk.SPACES, hidden=(16,))
    return agent, agent.init(jax.random.key(1), learning_rate=0.01, target_period=5)


def learn_from_shards(given):
    """Learn data-parallel, from batches drawn from a buffer with a shard on each device.

    Args:
      given: transitions and priorities of this process's shards.
    """
    agent, initial = learner()
    example = jax.tree.map(lambda leaf: leaf[0, 0], given[0])
    local = replay.make(example, 32, BATCH, "prioritised", least_size=1)
    buffer = replay.shard(local, "shard")
    devices = mesh()
    split, copied = NamedSharding(devices, P("shard")), NamedSharding(devices, P())
    given = jax.tree.map(lambda leaf: jax.make_array_from_process_local_data(split, leaf), given)

    def on_shards(fn, in_specs, out_specs):
        return jax.shard_map(
            fn, mesh=devices, in_specs=in_specs, out_specs=out_specs, check_vma=False
        )

    def fill(given):
        items, priorities = jax.tree.map(lambda leaf: leaf[0], given)
        return jax.tree.map(lambda leaf: leaf[None], local.add(local.init(), items, priorities))

    def draw(state, key):
        sample = buffer.sample(jax.tree.map(lambda leaf: leaf[0], state), key)
        whole = replay.whole_batch(sample, "shard")
        return jax.tree.map(lambda leaf: leaf[None], sample), (whole.batch, whole.weights)

    def prioritise(state, sample, priorities):
        one = jax.tree.map(lambda leaf: leaf[0], (state, sample))
        return jax.tree.map(lambda leaf: leaf[None], buffer.update(*one, priorities))

    def step(carry, key):
        state, stored = carry
        sample, drawn = on_shards(draw, (P("shard"), P()), (P("shard"), P()))(stored, key)
        # Each device learns from its part of the batch; XLA adds up the gradients.
        batch, weights = jax.lax.with_sharding_constraint(drawn, split)
        state, learned = agent.learn(state, batch, weights, key)
        specs = (P("shard"), P("shard"), P())
        errors = jnp.abs(learned.td_error)
        stored = on_shards(prioritise, specs, P("shard"))(stored, sample, errors)
        return (state, stored), (drawn, learned.td_error)

    def run(initial, given):
        stored = on_shards(fill, P("shard"), P("shard"))(given)
        keys = jax.random.split(jax.random.key(2), UPDATES)
        (state, _), drawn = jax.lax.scan(step, (initial, stored), keys)
        return state.params, drawn

    # One call of all updates: see docs/scaling.md for what many calls in flight do on CPUs.
    return jax.jit(run, out_shardings=copied)(jax.tree.map(np.asarray, initial), given)


def results(given):
    return {"seeds": over_seeds(training()), "learned": learn_from_shards(given)}


def main():
    number, count = int(sys.argv[1]), int(sys.argv[2])
    jax.distributed.initialize(sys.argv[3], count, number, coordinator_bind_address=sys.argv[3])
    own = slice(number * SHARDS // count, (number + 1) * SHARDS // count)
    given = jax.tree.map(lambda leaf: leaf[own], transitions())
    found = multihost_utils.process_allgather(results(given), tiled=True)
    np.savez(sys.argv[4], *jax.tree.leaves(found))
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
