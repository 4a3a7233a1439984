"""Many trainings at once: whatever the strategy, each is the one it would be alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
import walk
from programs import close, equal, line_program

from accel_rl import agents, envs, replay, tabular, train

SEEDS = 8
KEYS = jax.random.split(jax.random.key(2), SEEDS)
STRATEGIES = {
    "vmap": {},
    "batched": {"seed_batch": 3},
    "sharded": {},
    "sharded in chunks": {"strategy": "sharded", "seed_batch": 2, "devices": jax.devices()[:2]},
    "auto": {},
}


@functools.cache
def tabular_run():
    """INT32 Q-learning on FrozenLake: nothing is rounded."""
    env = envs.environment("FrozenLake-v1")
    rule = tabular.q_learning(tabular.int32_pow2())
    agent = agents.tabular(rule, env.observation_space, env.action_space)
    memory = replay.newest(train.example(env, agent), 2)
    program = train.make(env, agent, memory, num_envs=2, learning_starts=2)
    whole = train.fused(program, 2000, period=500)
    hyper = {"epsilon_steps": 1000.0, "alpha": 0.25, "initial_value": 1.0}  # or few have rewards
    run = jax.jit(lambda key: whole(key, agent=hyper))
    return run, [run(key) for key in KEYS]


@functools.cache
def network_run():
    env = walk.environment()
    agent = agents.dqn(*walk.SPACES, hidden=(8,))
    memory = replay.make(train.example(env, agent), 128, 8, num_envs=2)
    program = train.make(env, agent, memory, num_envs=2, learning_starts=64)
    run = jax.jit(train.fused(program, 160))
    return run, [run(key) for key in KEYS]


def over(run, name):
    options = {"strategy": name, **STRATEGIES[name]}
    return jax.jit(train.over_seeds(run, **options))(KEYS)


def one_of(result, number):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[number], result)


@pytest.mark.long  # compiles each strategy
@pytest.mark.parametrize("name", quick.only(["sharded"], STRATEGIES))
def test_tables_are_the_same_bits(name):
    run, alone = tabular_run()
    result = over(run, name)
    for number, single in enumerate(alone):
        equal(one_of(result.state, number), single.state)
    tables = np.asarray(result.state.agent.tables)
    assert len({table.tobytes() for table in tables}) == SEEDS


@pytest.mark.slow  # as of tables
@pytest.mark.parametrize("name", quick.only(["sharded"], ["vmap", "batched", "sharded"]))
def test_networks_are_the_same_but_for_rounding(name):
    run, alone = network_run()
    result = over(run, name)
    for number, single in enumerate(alone):
        close(one_of(result.state.agent.params, number), single.state.agent.params, rtol=2e-3)


def test_shards_lie_on_all_devices_that_divide_the_seeds():
    def fn(key):
        return jax.random.uniform(key)

    for seeds, devices, wanted in ((8, 8, 8), (6, 8, 6), (7, 4, 1), (6, 4, 3)):
        keys, given = jax.random.split(jax.random.key(0), seeds), jax.devices()[:devices]
        assert len(given) == devices
        found = jax.jit(train.over_seeds(fn, "sharded", devices=given))(keys)
        assert len(found.sharding.device_set) == wanted
        np.testing.assert_array_equal(found, jax.vmap(fn)(keys))


@pytest.mark.parametrize(
    ("shape", "long", "batch"),
    [
        ((16,), False, None),
        ((24,), False, 12),
        ((34,), False, None),
        ((48,), False, 16),
        ((48, 300), False, None),
        ((48, 300), True, 16),
    ],
)
def test_batches_that_stay_in_caches(shape, long, batch):
    seen = set()

    def double(values):
        seen.add(values.shape[0])
        return 2 * values

    def fn(values):
        return jax.pure_callback(double, values, values, vmap_method="broadcast_all")

    values = np.random.default_rng(0).random(shape, np.float32)
    mapped = jax.jit(train.over_seeds(fn, devices=jax.devices()[:1], long=long))
    np.testing.assert_array_equal(mapped(values), 2 * values)
    assert seen == {batch or shape[0]}


def test_batches_hold_states_once():
    def fn(state, key):
        return {"a": state["a"] * 2, "b": state["b"] + 1}, jax.random.uniform(key)

    state = {name: jnp.arange(22_000, dtype=jnp.float32).reshape(22, 1_000) for name in "ab"}
    keys = jax.random.split(jax.random.key(0), 22)
    wanted = jax.vmap(fn)(state, keys)
    mapped = jax.jit(train.over_seeds(fn, "batched", seed_batch=4), donate_argnums=0)
    memory = mapped.lower(state, keys).compile().memory_analysis()
    assert memory.temp_size_in_bytes < state["a"].nbytes
    jax.tree.map(np.testing.assert_array_equal, mapped(state, keys), wanted)


def test_batches_of_results_in_another_order():
    def fn(a, b):
        return b + 1, a * 2, a.sum(), a[:2]

    a, b = np.random.default_rng(0).random((2, 7, 5), np.float32)
    found = jax.jit(train.over_seeds(fn, "batched", seed_batch=3))(a, b)
    jax.tree.map(np.testing.assert_array_equal, found, jax.vmap(fn)(a, b))


def test_some_arguments_are_shared():
    def fn(key, scale, tree):
        return jax.random.uniform(key) * scale + tree["a"] + tree["b"].sum()

    tree, scale = {"a": jnp.arange(8.0), "b": jnp.ones((8, 3))}, jnp.float32(3)
    wanted = jax.vmap(fn, (0, None, 0))(KEYS, scale, tree)
    for name, options in STRATEGIES.items():
        options = {"strategy": name, **options}
        mapped = train.over_seeds(fn, in_axes=(0, None, 0), **options)
        np.testing.assert_allclose(jax.jit(mapped)(KEYS, scale, tree), wanted, rtol=1e-6)


@pytest.mark.slow  # as test_fused sweeps them, in chunks
def test_rates_are_swept_with_seeds():
    run = train.fused(line_program(), 100)
    fn = train.over_seeds(lambda key, rate: run(key, agent={"rate": rate}), "batched", seed_batch=2)
    rates = jnp.linspace(0.1, 0.8, 4)
    result = jax.jit(fn)(KEYS[:4], rates)
    np.testing.assert_allclose(result.state.agent.hyper["rate"], rates)
    single = jax.jit(run)(KEYS[2], agent={"rate": rates[2]})
    close(one_of(result.state, 2), jax.device_get(single.state))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"strategy": "pmap"}, "strategy must be one of auto, vmap, batched, sharded, got 'pmap'"),
        ({"strategy": "batched"}, "strategy 'batched' needs seed_batch"),
        ({"strategy": "batched", "seed_batch": 0}, "seed_batch must be at least 1"),
        ({"strategy": "vmap", "seed_batch": 2}, "got 'vmap' with seed_batch=2"),
    ],
)
def test_bad_strategies(options, match):
    with pytest.raises(ValueError, match=match):
        train.over_seeds(lambda key: key, **options)


@pytest.mark.parametrize(
    ("in_axes", "args", "match"),
    [
        ((0, 0), (jnp.ones(4),), "in_axes must be 0, or 0 or None for each of 1"),
        ((None,), (jnp.ones(4),), "in_axes must be 0"),
        ((1,), (jnp.ones((4, 4)),), "in_axes must be 0"),
    ],
)
def test_bad_arguments(in_axes, args, match):
    with pytest.raises(ValueError, match=match):
        train.over_seeds(lambda *args: args, "vmap", in_axes=in_axes)(*args)
