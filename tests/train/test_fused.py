"""A training as one pure function: the same as a loop over iterations, and compiled once."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
import walk
from programs import close, equal, line_agent, line_program, wander

from accel_rl import agents, replay, train

KEY = jax.random.key(11)
STEPS, PERIOD = 400, 70
kinds = pytest.mark.parametrize("kind", quick.only(["line"], ["line", "dqn"]))


def dqn_program():
    env = walk.environment()
    agent = agents.dqn(*walk.SPACES, hidden=(8,))
    memory = replay.make(train.example(env, agent), 256, 8, "prioritised", num_envs=2)
    return train.make(env, agent, memory, num_envs=2, learning_starts=64)


@functools.cache
def trained(kind):
    """Program, the compiled function, and its result."""
    program = dqn_program() if kind == "dqn" else line_program(updates=2, policy_lag=1)
    run = jax.jit(train.fused(program, STEPS, period=PERIOD))
    return program, run, run(KEY, gamma=0.9)


@kinds
def test_is_a_loop_over_iterations(kind):
    program, _, (state, metrics) = trained(kind)
    iterate = jax.jit(program.iterate, static_argnums=3)
    looped, rows = jax.jit(functools.partial(program.init, gamma=0.9))(KEY), []
    number = 0
    for length, learning in train.segments(program.schedule, STEPS, PERIOD):
        totals = program.zeros(looped)
        for _ in range(length):
            looped, totals = iterate(looped, totals, program.keys(looped.key, number), learning)
            number += 1
        rows.append(program.metrics(looped, totals))
        looped = program.finish(looped, totals)
    close(looped, state, rtol=2e-4, atol=1e-5)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
    close(stacked, metrics, rtol=2e-4, atol=1e-5)


@kinds
def test_the_same_key_gives_the_same_bits_and_another_does_not(kind):
    _, run, result = trained(kind)
    equal(run(KEY, gamma=0.9), result)
    other = run(jax.random.key(12), gamma=0.9).metrics["episode_return"]
    assert (np.asarray(other) != np.asarray(result.metrics["episode_return"])).any()


@pytest.mark.slow  # the loop above knows the segments too
def test_is_segments_that_were_compiled_alone():
    program, _, (state, metrics) = trained("line")
    segment = jax.jit(program.segment, static_argnums=2)
    alone = jax.jit(functools.partial(program.init, gamma=0.9))(KEY)
    for row, (length, learning) in enumerate(train.segments(program.schedule, STEPS, PERIOD)):
        alone, found = segment(alone, length, learning)
        close(found, jax.tree.map(lambda leaf, row=row: leaf[row], metrics))
    close(alone, state)


def test_one_row_of_metrics_for_each_segment():
    program, _, (_, metrics) = trained("line")
    plan = train.segments(program.schedule, STEPS, PERIOD)
    lengths = np.array([length for length, _ in plan])
    learns = np.array([learning for _, learning in plan])
    assert all(leaf.shape == (len(plan),) for leaf in metrics.values())
    np.testing.assert_array_equal(metrics["steps"], lengths.cumsum() * 2)
    np.testing.assert_array_equal(metrics["updates"], np.where(learns, lengths * 2, 0))
    np.testing.assert_array_equal(np.isfinite(metrics["loss"]), learns)


def test_compiles_once_for_all_keys_and_hyperparameters():
    program = line_program()
    run = jax.jit(chex.assert_max_traces(train.fused(program, 100), n=1))
    for seed in range(3):
        hyper = {"rate": jnp.float32(0.1 * seed)}
        run(jax.random.key(seed), agent=hyper, gamma=jnp.float32(0.5 + seed / 10))
    with pytest.raises(AssertionError, match="traced"):  # another shape is another program
        run(jax.random.split(KEY, 1)[0], agent={})


@pytest.mark.long  # compiles two trainings
def test_hyperparameters_are_swept_by_vmap():
    program = line_program()
    run = train.fused(program, 100, period=50)
    rates, gammas = jnp.array([0.1, 0.9]), jnp.array([0.2, 0.95])

    def swept(rate, gamma):
        return run(KEY, agent={"rate": rate}, gamma=gamma)

    result = jax.jit(jax.vmap(swept))(rates, gammas)
    single = jax.jit(swept)
    for n in range(2):
        each = jax.tree.map(lambda leaf, n=n: leaf[n], result)
        close(each, single(rates[n], gammas[n]))
    assert float(result.state.agent.weight[0]) != float(result.state.agent.weight[1])


def test_an_empty_memory_is_never_learned_from():
    with pytest.raises(ValueError, match="learning_starts must be at least"):
        line_program(learning_starts=0)


class Port:
    """The methods of a `ReplayPort`; none is ever called."""

    limited = False

    def add(self, transitions, priorities=None):
        raise AssertionError

    can_sample = sample = update = close = add


def test_a_replay_port_is_refused_by_name():
    program = train.make(wander(), line_agent(), Port(), num_envs=2, learning_starts=32)
    with pytest.raises(TypeError, match="Port is a replay port, outside the program"):
        train.fused(program, 100)


@pytest.mark.parametrize(
    ("steps", "options", "match"),
    [
        (0, {}, "steps must be at least 1, got 0"),
        (32, {}, "steps must be more than learning_starts"),
        (100, {"period": 0}, "period must be at least 1, got 0"),
    ],
)
def test_bad_input(steps, options, match):
    with pytest.raises(ValueError, match=match):
        train.fused(line_program(), steps, **options)
