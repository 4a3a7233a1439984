"""The program of steps, against a loop in plain Python with Python's own queues."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import walk
from programs import close, collected, equal, line_agent, line_program, wander

from accel_rl import agents, replay, train
from accel_rl.agents import Learned
from accel_rl.replay import td_priority
from accel_rl.testing import assert_inplace
from accel_rl.types import Box, Discrete, Transition

KEY = jax.random.key(5)
HYPER = {"gamma": 0.9, "beta": 0.3, "beta_end": 0.9, "beta_steps": 150.0}


def first(program, **hyper):
    return jax.jit(functools.partial(program.init, **{**HYPER, **hyper}))(KEY)


def python_loop(program, iterations):
    """Memory, weight, versions and episodes after a training that Python loops through."""
    plan, agent, memory, env = program.schedule, program.agent, program.buffer, program.env
    envs, state = plan.num_envs, first(program)
    add = jax.jit(functools.partial(memory.add, batch_major=False))
    sample, update = jax.jit(memory.sample), jax.jit(memory.update)
    learn, act, step = jax.jit(agent.learn), jax.jit(agent.act), jax.jit(jax.vmap(env.step))
    kept, learner = state.replay, state.agent
    env_state, observation = state.actor.env, state.actor.observation
    remembered = np.zeros(envs, np.int32)
    published = collections.deque([agent.policy(learner)] * plan.policy_lag)
    late = collections.deque([None] * plan.priority_lag)
    episodes, returns, lengths = [], np.zeros(envs), np.zeros(envs, int)
    for iteration in range(iterations):
        keys = program.keys(state.key, iteration)
        steps_so_far = iteration * envs * plan.rollout
        if iteration >= plan.warmup:
            done = min(steps_so_far / HYPER["beta_steps"], 1)
            beta = HYPER["beta"] + (HYPER["beta_end"] - HYPER["beta"]) * done
            for n in range(plan.updates):
                drawn = sample(kept, keys.sample[n], beta, HYPER["gamma"])
                learner, learned = learn(learner, drawn.batch, drawn.weights, keys.learn[n])
                late.append((drawn, td_priority(learned.td_error)))
                due = late.popleft()
                if due is not None:
                    kept = update(kept, *due)
        published.append(agent.policy(learner))
        policy, chunk = published.popleft(), []
        for row in range(plan.rollout):
            now = steps_so_far + row * envs
            action, remembered = act(policy, remembered, observation, keys.collect[row, 0], now)
            before = observation
            observation, env_state, reward, terminated, truncated, info = step(
                keys.collect[row, 1:], env_state, action
            )
            stopped = np.asarray(terminated | truncated)
            chunk.append((before, action, reward, terminated, truncated, info["final_observation"]))
            returns, lengths = returns + np.asarray(reward), lengths + 1
            episodes += [(returns[e], lengths[e]) for e in np.flatnonzero(stopped)]
            returns, lengths = np.where(stopped, 0, returns), np.where(stopped, 0, lengths)
            remembered = np.where(stopped, 0, remembered).astype(np.int32)
        columns = [jnp.stack(each) if plan.rollout > 1 else each[0] for each in zip(*chunk)]  # noqa: B905
        before, action, reward, terminated, truncated, final = columns
        discount = 1 - terminated.astype(jnp.float32)
        transitions = Transition(before, action, reward, discount, truncated, final)
        kept = add(kept, transitions)
    return kept, learner, np.array(episodes), remembered


CASES = {
    "plain": {},
    "several updates": {"updates": 3, "sampler": "prioritised"},
    "rollout": {"rollout": 3, "num_envs": 3, "capacity": 4095},
    "policy lag": {"policy_lag": 4, "updates": 2},
    "priority lag": {"priority_lag": 5, "updates": 2, "sampler": "prioritised"},
    "around the ring": {"capacity": 60, "sampler": "prioritised", "n_step": 3, "rollout": 2},
    "all": {
        "num_envs": 3,
        "rollout": 2,
        "updates": 2,
        "policy_lag": 2,
        "priority_lag": 3,
        "sampler": "prioritised",
        "capacity": 300,
        "n_step": 2,
    },
}
MARKS = {"plain": (), "all": pytest.mark.long}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, pytest.mark.slow)) for name in CASES]
)
def test_is_the_loop_in_python(name):
    program, iterations = line_program(**CASES[name]), 45
    warmup = program.schedule.warmup
    state = first(program)
    before, _ = jax.jit(functools.partial(program.segment, learning=False))(state, warmup)
    after, metrics = jax.jit(functools.partial(program.segment, learning=True))(
        before, iterations - warmup
    )
    kept, learner, episodes, remembered = python_loop(program, iterations)
    close(after.replay, kept)
    close(after.agent, learner)
    np.testing.assert_array_equal(after.actor.memory, remembered)
    assert int(after.iteration) == iterations
    assert int(metrics["updates"]) == (iterations - warmup) * program.schedule.updates
    assert len(episodes) > 5


@pytest.mark.parametrize(
    ("lag", "updates", "rollout"),
    [
        pytest.param(0, 1, 1, marks=pytest.mark.slow),
        pytest.param(3, 1, 2, marks=pytest.mark.slow),
        (2, 3, 1),
    ],
)
def test_policy_lag_is_in_iterations(lag, updates, rollout):
    """The agent's actions say which policy chose them."""
    program = line_program(policy_lag=lag, updates=updates, rollout=rollout)
    state, _ = train_for(program, 40)
    found = np.floor(collected(program, state).action[..., 0])
    iteration = np.arange(40).repeat(rollout)
    newest = updates * np.maximum(iteration + 1 - program.schedule.warmup, 0)
    wanted = np.concatenate([np.zeros(lag * rollout), newest])[: len(newest)]
    np.testing.assert_array_equal(found, np.stack([wanted] * 2, -1))


def train_for(program, iterations):
    """State and metrics of both phases."""
    warmup = program.schedule.warmup
    state, _ = jax.jit(functools.partial(program.segment, learning=False))(first(program), warmup)
    run = jax.jit(functools.partial(program.segment, learning=True))
    return run(state, iterations - warmup)


def test_segments_may_be_cut_anywhere():
    """Also where PRNG keys are generated again: the same bits, whatever the cuts."""
    program = line_program(num_envs=1000, capacity=4000)
    ahead = program.schedule.ahead
    assert 2 < ahead < 10, "few iterations at a time, so that a short training has several"
    run = jax.jit(functools.partial(program.segment, learning=True))
    start = jax.jit(functools.partial(program.segment, learning=False))(first(program), 2)[0]
    at_once, _ = run(start, ahead + 8)
    for cuts in ([ahead, 8], [1, ahead - 1, 6, 2], [ahead + 1, 7]):
        state = start
        for cut in cuts:
            state, metrics = run(state, cut)
        equal(state, at_once)
        assert int(metrics["updates"]) == cuts[-1]


def test_metrics_are_a_recount():
    program = line_program(num_envs=3, rollout=2, updates=2, capacity=3 * 2000)
    warmup = program.schedule.warmup
    state = first(program)
    segment = jax.jit(program.segment, static_argnums=2)
    rows = []
    for length, learning in ((warmup, False), (30, True), (1, True), (40, True)):
        state, metrics = segment(state, length, learning)
        rows.append((length, learning, jax.device_get(metrics)))
    data = collected(program, state)
    stopped = data.truncated | (data.discount == 0)
    time, total, count = 0, np.zeros(3), np.zeros(3, int)
    empty = 0
    for length, learning, metrics in rows:
        episodes = []
        for t in range(time, time + 2 * length):
            total, count = total + data.reward[t], count + 1
            episodes += [(total[e], count[e]) for e in np.flatnonzero(stopped[t])]
            total, count = np.where(stopped[t], 0, total), np.where(stopped[t], 0, count)
        time += 2 * length
        assert int(metrics["steps"]) == 3 * time
        assert int(metrics["episodes"]) == len(episodes)
        assert int(metrics["updates"]) == (2 * length if learning else 0)
        assert np.isfinite(metrics["loss"]) == learning
        if episodes:
            wanted = np.mean(episodes, axis=0)
            found = metrics["episode_return"], metrics["episode_length"]
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
        else:
            empty += 1
            assert np.isnan(metrics["episode_return"])
            assert np.isnan(metrics["episode_length"])
    assert empty < len(rows)
    np.testing.assert_allclose(state.actor.episode_return, total, rtol=1e-5)
    np.testing.assert_array_equal(state.actor.episode_length, count)


@pytest.mark.long  # compiles a training
def test_metrics_of_learning_are_means_over_updates():
    """Of the weight before each update, of which Python's loop knows every other."""
    program, weights = line_program(updates=2), []
    state, _ = jax.jit(program.segment, static_argnums=2)(first(program), 16, False)
    sample, learn = jax.jit(program.buffer.sample), jax.jit(program.agent.learn)
    iterate = jax.jit(program.iterate, static_argnums=3)
    totals = program.zeros(state)
    for number in range(16, 26):
        keys = program.keys(state.key, number)
        drawn = sample(state.replay, keys.sample[0], program.beta(state.hyper, number), 0.9)
        between, _ = learn(state.agent, drawn.batch, drawn.weights, keys.learn[0])
        weights += [float(state.agent.weight), float(between.weight)]
        state, totals = iterate(state, totals, keys, True)
    assert len(set(weights)) == 20
    metrics = program.metrics(state, totals)
    np.testing.assert_allclose(metrics["weight"], np.mean(weights), rtol=1e-5)


def test_keys_are_the_trainings_and_the_iterations_alone():
    program = line_program(num_envs=3, rollout=2, updates=2, capacity=4095)
    data = jax.random.key_data(KEY)
    each = [jax.random.key_data(k) for n in range(20) for k in program.keys(data, n)]
    words = np.concatenate([np.asarray(k).reshape(-1, 2) for k in each])
    assert words.shape == (20 * (2 * 4 + 2 + 2), 2)
    assert len({tuple(pair) for pair in words.tolist()}) == len(words)
    again = jax.random.key_data(program.keys(data, np.int32(7)).collect)
    np.testing.assert_array_equal(again, each[7 * 3])
    other = program.keys(jax.random.key_data(jax.random.key(6)), 7)
    assert (jax.random.key_data(other.collect) != again).any()


@pytest.mark.long  # compiles a training
def test_priorities_of_learning_reach_the_memory():
    """Items are drawn by what learning found of them: all but one of no error, which is drawn."""
    program = line_program(sampler="prioritised", learning_starts=400)

    def learn(state, batch, weights, key):
        error = (batch.reward > 0.99).astype(jnp.float32) * 1000
        return state, Learned(error, {"share": jnp.mean(error) / 1000})

    program = train.make(
        program.env,
        program.agent._replace(learn=learn),
        program.buffer,
        num_envs=2,
        learning_starts=400,
        updates=40,
    )
    _, metrics = train_for(program, program.schedule.warmup + 30)
    assert float(metrics["share"]) > 0.3  # 0.01 where priorities are lost


@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param("uniform", marks=pytest.mark.slow),
        pytest.param("prioritised", marks=pytest.mark.long),
    ],
)
def test_the_memory_is_changed_in_place(sampler):
    env = walk.environment()
    agent = agents.dqn(*walk.SPACES, hidden=(8,))
    memory = replay.make(train.example(env, agent), 300_000, 16, sampler, num_envs=2)
    program = train.make(env, agent, memory, num_envs=2, learning_starts=100, updates=2)
    state = program.init(KEY)
    big = 300_000  # bytes of the memory's smallest array, of bools
    networks = sum(leaf.nbytes for leaf in jax.tree.leaves(state.agent))
    assert networks < big
    # PRNG keys and networks take temporary memory, but less than one of the memory's arrays.
    assert_inplace(
        lambda state: program.segment(state, 100, learning=True),
        state,
        least_bytes=big,
        temporary_bytes=big - 1,
    )


# --- what does not fit


def fitting(**changes):
    """Arguments of `train.make`, of which some are wrong."""
    env, agent = wander(), line_agent()
    buffer = replay.make(train.example(env, agent), 100, 8, num_envs=2)
    parts = {"env": env, "agent": agent, "buffer": buffer, "num_envs": 2, "learning_starts": 16}
    return {**parts, **changes}


def buffer_of(**options):
    example = train.example(wander(), line_agent())
    return replay.make(example, 100, 8, **{"num_envs": 2, **options})


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"env": wander()._replace(observation_space=Discrete(3))}, "observation_space must be"),
        ({"env": wander()._replace(action_space=Box((0,), (1,), (1,)))}, "action_space must be"),
        ({"num_envs": 4}, "buffer must be made with num_envs=4"),
        ({"buffer": buffer_of(num_envs=None)}, "buffer must be made with num_envs=2"),
        ({"buffer": buffer_of(sequence_length=3)}, "must sample a types.Batch"),
        ({"buffer": buffer_of(frame_stack=2)}, "must sample a types.Batch"),
        ({"learning_starts": 0}, "learning_starts must be at least 7, so that there are 8"),
        ({"learning_starts": 6}, "learning_starts must be at least 7, so that there are 8"),
        ({"buffer": buffer_of(n_step=3), "learning_starts": 10}, "must be at least 11, so that"),
        ({"rollout": 51}, "rollout must be at most 50 for this buffer, got 51"),
        ({"rollout": 49, "buffer": buffer_of(n_step=3)}, "rollout must be at most 48"),
        ({"updates": 0}, "updates must be at least 1, got 0"),
        ({"agent": line_agent(needs_next_action=True)}, "made for example"),
        ({"buffer": replay.make({"x": np.float32(0)}, 8, 2, num_envs=2)}, "made for example"),
    ],
)
def test_parts_that_do_not_fit(changes, match):
    with pytest.raises(ValueError, match=match):
        train.make(**fitting(**changes))


def test_the_least_learning_starts_is_enough():
    """One step less would learn from items that are not there."""
    for options in ({}, {"n_step": 3}, {"rollout": 3, "n_step": 2}, {"rollout": 2}):
        options = dict(options)
        n_step, rollout = options.pop("n_step", 1), options.pop("rollout", 1)
        buffer = buffer_of(n_step=n_step)
        for starts in range(40):
            try:
                program = train.make(
                    **fitting(buffer=buffer, learning_starts=starts, rollout=rollout)
                )
            except ValueError:
                continue
            break
        rows = program.schedule.warmup * rollout
        assert (rows - (n_step - 1)) * 2 >= 8
        assert (rows - rollout - (n_step - 1)) * 2 < 8


def test_next_actions_go_with_single_steps():
    agent = line_agent(needs_next_action=True)
    buffer = replay.make(train.example(wander(), agent), 100, 8, num_envs=2, n_step=2)
    with pytest.raises(ValueError, match="buffer must have n_step=1"):
        train.make(**fitting(agent=agent, buffer=buffer))


def test_bad_hyperparameters():
    program = line_program()
    with pytest.raises(TypeError, match="no hyper-parameter 'gama'; did you mean gamma"):
        program.init(KEY, gama=0.9)
    with pytest.raises(ValueError, match=r"gamma must be from 0 to 1, got 1\.5"):
        program.init(KEY, gamma=1.5)
    with pytest.raises(TypeError, match="no hyper-parameter 'lr'"):
        program.init(KEY, agent={"lr": 0.1})
    with pytest.raises(
        TypeError, match=r"'rate'; .*; the agent's go into agent=\{\.\.\.\}, the rep"
    ):
        program.init(KEY, rate=0.1)
    with pytest.raises(TypeError, match="the sampler has no hyper-parameter 'nothing'"):
        program.init(KEY, replay={"nothing": 1.0})
