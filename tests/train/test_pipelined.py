"""The pipelined executor: against `fused`, under the clock, and when something fails."""

import dataclasses
import functools
import signal
import threading
import time

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import walk
from tiny_training import assert_same

from accel_rl import agents, envs, replay, train
from accel_rl.train.pipeline import learner
from accel_rl.train.pipeline.actors import initial_priorities
from accel_rl.train.pipeline.learner import Learner, UpdateInputs, group_size
from accel_rl.train.schedule import MOST_AHEAD
from accel_rl.types import Transition

STEPS, PERIOD = 300, 100
KEY = jax.random.key(5)


def assert_same_metrics(rows, metrics):
    """Rows have the metrics of `fused`, bit for bit."""
    for name, values in metrics.items():
        values = np.asarray(values)
        found = np.array([row[name] for row in rows], values.dtype)
        np.testing.assert_array_equal(found, values, err_msg=name)


@functools.cache
def exact(sampler, policy_lag, priority_lag, **schedule):
    """A program with `prevent_fusion`, and its fused result."""
    lags = {"policy_lag": policy_lag, "priority_lag": priority_lag}
    program = train.prevent_fusion(walk.program(sampler, **lags, **schedule))
    run = jax.jit(train.fused(program, STEPS, period=PERIOD))
    return program, jax.block_until_ready(run(KEY, **walk.HYPER))


plain = functools.cache(walk.program)


def check_equality(*args, **schedule):
    program, wanted = exact(*args, **schedule)
    got = train.pipelined(program, KEY, STEPS, hyper=walk.HYPER, period=PERIOD)
    assert_same(got.state, wanted.state)
    assert_same_metrics(got.rows, wanted.metrics)
    return program, got


LONG = {"updates": 2, "rollout": 2, "n_step": 3}
GROUPED = {"updates": 3, "rollout": 2}  # several updates in one call


@pytest.mark.parametrize(
    ("sampler", "policy_lag", "priority_lag", "schedule"),
    [
        pytest.param("prioritised", 1, 0, {}, marks=pytest.mark.slow),
        ("prioritised", 2, 1, LONG),
        pytest.param("uniform", 1, 5, GROUPED, marks=pytest.mark.slow),
    ],
)
def test_equals_fused(sampler, policy_lag, priority_lag, schedule):
    program, got = check_equality(sampler, policy_lag, priority_lag, **schedule)
    updates = schedule.get("updates", 1)
    assert got.rows[-1]["policy_age_mean"] == got.rows[-1]["policy_age_max"] == updates * policy_lag
    assert got.rows[-1]["priority_age_max"] == (priority_lag if sampler == "prioritised" else 0)
    assert group_size(program) == (1 if sampler == "prioritised" else updates)


def test_groups_divide_the_updates_and_are_of_limited_size(monkeypatch):
    program = plain("uniform", updates=6)
    batch = jax.eval_shape(
        lambda: program.buffer.sample(program.buffer.init(), KEY, 1.0, 1.0).batch
    )
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(batch))
    for room, wanted in ((0, 1), (2, 2), (5, 3), (100, 6)):
        monkeypatch.setattr(learner, "MOST_BYTES", room * size)
        assert group_size.__wrapped__(program) == wanted
    assert group_size(plain("prioritised", updates=4)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "lags"),
    [
        *(("uniform", lags) for lags in [(0, 0), (1, 0), (1, 1), (2, 1)]),
        *(("prioritised", lags) for lags in [(0, 0), (1, 1), (2, 1), (1, 3)]),
    ],
)
def test_equals_fused_with_any_lags(sampler, lags):
    check_equality(sampler, *lags)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["amper_fr", "rank_based"])
def test_equals_fused_with_other_samplers(sampler):
    check_equality(sampler, 1, 1)


@pytest.mark.long  # trains twice
def test_goes_on_from_a_state():
    program, wanted = exact("prioritised", 2, 1, **LONG)
    half = train.pipelined(program, KEY, STEPS // 2, hyper=walk.HYPER, period=PERIOD)
    kept = jax.tree.map(np.array, half.state)
    rest = train.pipelined(program, half.state, STEPS, period=PERIOD)
    assert_same(rest.state, wanted.state)
    assert_same(half.state, kept)  # what it was given, it has not given away
    again = jax.jit(program.segment, static_argnums=2)(half.state, 1, True)[0]
    assert int(again.iteration) == int(half.state.iteration) + 1
    # Rows end where they would have, and the first is of what was left of its period.
    assert [row["steps"] for row in rest.rows] == [168, 272, 304]
    assert rest.rows[0]["updates"] == 2 * (168 - 152) // 8


def test_a_training_that_goes_on_compiles_nothing(caplog):
    """Each chunk of `train.run` is such a call, with a port of its own."""
    program = plain("prioritised", priority_lag=1, **LONG)
    first = train.pipelined(program, KEY, 104, hyper=walk.HYPER)
    second = train.pipelined(program, first.state, 200)
    jax.config.update("jax_log_compiles", True)  # of all threads, unlike jax.log_compiles
    try:
        train.pipelined(program, second.state, STEPS)
    finally:
        jax.config.update("jax_log_compiles", False)
    compiled = [each for each in caplog.messages if each.startswith("Finished XLA compilation")]
    assert compiled == []


@pytest.mark.slow
def test_rounding_is_all_that_a_fence_changes():
    program = walk.program("prioritised", policy_lag=2, priority_lag=1, **LONG)
    wanted = exact("prioritised", 2, 1, **LONG)[1]
    got = train.pipelined(program, KEY, STEPS, hyper=walk.HYPER, period=PERIOD)
    chex.assert_trees_all_close(
        got.state.agent.params, wanted.state.agent.params, rtol=1e-3, atol=1e-5
    )


@pytest.mark.long  # trains twice
def test_a_port_is_a_memory_elsewhere():
    ports = []

    def port(memory):
        ports.append(train.LocalPort(memory))
        return ports[-1]

    program = train.prevent_fusion(walk.program("prioritised", policy_lag=1, port=port))
    wanted = exact("prioritised", 1, 0)[1]
    with pytest.raises(TypeError, match="LocalPort is a replay port"):
        train.fused(program, STEPS)
    got = train.pipelined(program, KEY, STEPS, hyper=walk.HYPER, period=PERIOD)
    assert got.state.replay is None
    assert_same(got.state.agent, wanted.state.agent)
    assert_same(ports[0].state, wanted.state.replay)
    assert ports[0].can_sample()  # it was not closed


def test_a_memory_that_is_too_empty_to_learn_from_is_refused():
    program = walk.program(port=train.LocalPort, learning_starts=0)
    with pytest.raises(ValueError, match="learning_starts must be larger"):
        train.pipelined(program, KEY, STEPS)


@pytest.mark.long  # trains four times
def test_devices(monkeypatch):
    devices = jax.devices()
    moved, learn = [], Learner.learn

    def batch_is_there(learner, batch, key):
        moved.append({device for leaf in jax.tree.leaves(batch) for device in leaf.devices()})
        return learn(learner, batch, key)

    monkeypatch.setattr(Learner, "learn", batch_is_there)
    placement = train.Placement(act=devices[1], replay=devices[2], learn=devices[3])
    program, wanted = exact("prioritised", 1, 0)
    got = train.pipelined(program, KEY, STEPS, hyper=walk.HYPER, period=PERIOD, placement=placement)
    assert_same(got.state, wanted.state)
    for part, device in (("actor", 1), ("replay", 2), ("agent", 3)):
        for leaf in jax.tree.leaves(getattr(got.state, part)):
            assert leaf.devices() == {devices[device]}
    # Before they reach the learner's worker.
    assert moved == [{devices[3]}] * int(got.state.agent.updates)
    split = dataclasses.replace(placement, learn=devices[4:6])
    got = train.pipelined(program, KEY, 120, hyper=walk.HYPER, placement=split)
    one = train.pipelined(program, KEY, 120, hyper=walk.HYPER)
    for ours, theirs in zip(
        jax.tree.leaves(got.state.agent.params),
        jax.tree.leaves(one.state.agent.params),
        strict=True,
    ):
        assert ours.devices() == set(devices[4:6])
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_index_and_store_on_devices_of_their_own():
    devices = jax.devices()
    placement = train.Placement(replay=devices[2], store=devices[6])
    program, wanted = exact("prioritised", 2, 1, **LONG)
    half = train.pipelined(
        program, KEY, STEPS // 2, hyper=walk.HYPER, period=PERIOD, placement=placement
    )
    got = train.pipelined(program, half.state, STEPS, period=PERIOD, placement=placement)
    assert_same(got.state, wanted.state)
    for leaf in jax.tree.leaves(got.state.replay):
        assert leaf.devices() == {devices[2]}


@pytest.mark.long  # compiles blocks of keys
def test_what_is_drawn_in_blocks():
    """Keys and exponents are those of single iterations, for threads that ask at once."""
    program = plain("prioritised", updates=2)
    state = program.init(KEY, beta=0.3, beta_steps=3000.0)
    beta = jax.jit(program.beta)
    inputs, found = UpdateInputs(program, state, jax.devices()[0]), {}
    iterations = [0, 1, MOST_AHEAD - 1, MOST_AHEAD, 2 * MOST_AHEAD + 7]

    def draw(iteration):
        found[iteration] = inputs.sampling(iteration), inputs.learning(iteration)

    threads = [threading.Thread(target=draw, args=(each,)) for each in iterations]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for iteration in iterations:
        wanted = jax.tree.map(jax.random.key_data, program.keys(state.key, iteration))
        (sampling, exponent), learning = found[iteration]
        np.testing.assert_array_equal([jax.random.key_data(key) for key in sampling], wanted.sample)
        np.testing.assert_array_equal(learning, wanted.learn)
        assert exponent == float(beta(state.hyper, np.int32(iteration)))


def check_learned(program, state):
    """The agent knows what the right way is worth; one that has not learned does not."""
    values = walk.worth(program.agent, state.agent)
    assert (values.argmax(axis=1) == 1).all(), values
    np.testing.assert_allclose(values[:, 1], walk.VALUES, atol=0.15)


@functools.cache
def busy():
    """A program with several updates and steps in an iteration."""
    return walk.program("prioritised", updates=4, rollout=2, n_step=2, priority_lag=1)


@pytest.mark.parametrize(
    ("queue_size", "num_actors"),
    [
        pytest.param(1, 1, marks=pytest.mark.slow),
        pytest.param(3, 2, marks=pytest.mark.long),
    ],
)
def test_asynchronous_learns_within_its_bounds(queue_size, num_actors):
    program = busy()
    state = jax.jit(program.init)(KEY)
    with pytest.raises(AssertionError):
        check_learned(program, state)
    got = train.pipelined(
        program,
        KEY,
        3000,
        hyper=walk.HYPER,
        executor="asynchronous",
        queue_size=queue_size,
        num_actors=num_actors,
        period=500,
        timeline=50,
    )
    check_learned(program, got.state)
    iterations = 3000 // 8
    assert [row["steps"] for row in got.rows] == [64, 568, 1072, 1576, 2080, 2584, 3000]
    assert sum(row["updates"] for row in got.rows) == 4 * (iterations - 8)
    assert got.state.agent.updates == 4 * (iterations - 8)
    assert int(got.state.iteration) == iterations
    for row in got.rows:
        assert 0 <= row["policy_age_mean"] <= row["policy_age_max"] <= 4 * queue_size
        assert row["episodes"] > 0
        assert np.isfinite(row["loss"]) == (row["updates"] > 0)
    assert got.rows[0]["updates"] == 0
    assert max(row["priority_age_max"] for row in got.rows) >= 1
    assert {span.worker for span in got.timeline} <= {
        *("inserter", "sampler", "learner", "updater"),
        *(["actor"] if num_actors == 1 else ["actor_0", "actor_1"]),
    }
    assert {span.step for span in got.timeline} >= {
        "collect",
        "insert",
        "sample",
        "learn",
        "update",
    }
    assert all(span.start <= span.end for span in got.timeline)
    # What it ends with is a state like any other, with nothing under way.
    assert not np.asarray(got.state.delayed_priorities[2]).any()
    rest = train.pipelined(program, got.state, 3100)
    assert rest.state.agent.updates > got.state.agent.updates


@pytest.mark.slow
def test_actors_have_seeds_of_their_own():
    program = walk.program(num_envs=4)
    got = train.pipelined(
        program, KEY, 400, hyper=walk.HYPER, executor="asynchronous", num_actors=2
    )
    positions = np.asarray(got.state.replay.store.data.observation)[:, 0].reshape(-1, 4)
    assert not any((positions[:60, :2] == positions[:60, 2:]).all(axis=0))


def slow_program(env, seconds, **lags):
    """On the host; a step and a sample take some time, in which nothing is computed."""

    class Slow(train.LocalPort):
        def sample(self, *args):
            time.sleep(seconds)
            return super().sample(*args)

    return walk.program(env=env.environment, port=Slow, num_envs=1, learning_starts=20, **lags)


@pytest.mark.parametrize(
    ("lags", "overlaps"),
    [
        pytest.param((1, 1), True, marks=pytest.mark.long),
        pytest.param((0, 0), False, marks=pytest.mark.slow),
    ],
)
def test_overlap(lags, overlaps):
    seconds = 0.02
    with envs.host_environment(walk.HostWalk, seconds=seconds) as env:
        program = slow_program(env, seconds, policy_lag=lags[0], priority_lag=lags[1])
        got = train.pipelined(program, KEY, 80, hyper=walk.HYPER, period=20, env=env, timeline=1000)
    # The first rows have the compiling in them.
    wall = got.rows[-1]["seconds"] - got.rows[-3]["seconds"]
    worked = {
        name: sum(row[f"worked_seconds_{name}"] for row in got.rows[-2:])
        for name in ("actor", "buffer", "learner")
    }
    assert worked["actor"] > 40 * seconds
    assert worked["buffer"] > 40 * seconds
    overlap = sum(row["overlap_seconds"] for row in got.rows[-2:])
    if overlaps:
        assert wall < 0.8 * sum(worked.values())
        assert overlap > 20 * seconds
    else:
        assert wall > 0.9 * (worked["actor"] + worked["buffer"])
        assert overlap < 20 * seconds


@pytest.mark.long  # trains three times
def test_host_environments_of_the_deterministic_executor():
    def run(backend, **kwargs):
        with envs.host_environment(walk.HostWalk, 4, backend) as env:
            program = walk.program("prioritised", env=env.environment, rollout=2, policy_lag=1)
            got = train.pipelined(
                program, KEY, 1600, hyper=walk.HYPER, period=400, env=env, **kwargs
            )
        return program, got

    program, got = run("sync")
    _, again = run("threads")
    assert_same(got.state, again.state)
    check_learned(program, got.state)
    assert all(row["episodes"] > 0 for row in got.rows)
    assert got.rows[-1]["episode_length"] < walk.LIMIT
    # The first steps, when acts are random: episodes are long enough to be cut.
    with envs.host_environment(walk.HostWalk, 4) as env:
        early = train.pipelined(program, KEY, 160, hyper=walk.HYPER, env=env)
    data = jax.tree.map(lambda leaf: np.asarray(leaf)[:160], early.state.replay.store.data)
    ends = np.asarray(data.next_observation)[:, 2] * 4
    stopped = np.asarray(data.discount) == 0
    np.testing.assert_array_equal(stopped, (ends == 0) | (ends == 4))
    np.testing.assert_array_equal(np.asarray(data.reward), ends == 4)
    assert np.asarray(data.truncated).any()
    assert not (np.asarray(data.truncated) & stopped).any()


def test_host_actors_of_an_on_policy_agent():
    """The next action is that which is executed next."""
    with envs.host_environment("FrozenLake-v1", 2, is_slippery=False) as env:
        agent = agents.tabular(tabular_rule(), env.observation_space, env.action_space)
        memory = replay.make(train.example(env.environment, agent), 64, 2, num_envs=2)
        program = train.make(env.environment, agent, memory, num_envs=2, learning_starts=4)
        got = train.pipelined(program, KEY, 60, env=env)
    data = jax.tree.map(
        lambda leaf: np.asarray(leaf)[:60].reshape(30, 2), got.state.replay.store.data
    )
    goes_on = (data.discount[:-1] > 0) & ~data.truncated[:-1]
    assert goes_on.sum() > 20
    np.testing.assert_array_equal(data.extras[:-1][goes_on], data.action[1:][goes_on])
    assert len(np.unique(data.action)) > 1


def tabular_rule():
    from accel_rl import tabular

    return tabular.sarsa()


_td_error = functools.cache(jax.jit)


def reference_priorities(agent, critics, steps, n, gamma):
    """Priorities of steps [R, E], written as a loop."""
    rollout, num_envs = steps.reward.shape
    found = np.zeros((rollout, num_envs))
    td_error = _td_error(agent.td_error)
    for t in range(rollout):
        for e in range(num_envs):
            reward, weight, k = 0.0, 1.0, 0
            while True:
                reward += weight * steps.reward[t + k, e]
                weight *= gamma * steps.discount[t + k, e]
                cut = steps.discount[t + k, e] == 0 or steps.truncated[t + k, e]
                if cut or k + 1 == n or t + k + 1 == rollout:
                    break
                k += 1
            batch = walk.Batch(
                *(steps.observation[t, e][None], steps.action[t, e][None]),
                *(np.float32([reward]), np.float32([weight])),
                steps.next_observation[t + k, e][None],
            )
            error = td_error(critics, batch, KEY)
            found[t, e] = abs(error[0]) + 1e-6
    return found


def test_actors_judge_by_n_step_targets():
    rng = np.random.default_rng(0)
    shape = (6, 2)
    steps = Transition(
        observation=rng.normal(size=(*shape, 3)).astype(np.float32),
        action=rng.integers(0, 2, shape).astype(np.int32),
        reward=rng.normal(size=shape).astype(np.float32),
        discount=(rng.random(shape) > 0.2).astype(np.float32),
        truncated=rng.random(shape) < 0.2,
        next_observation=rng.normal(size=(*shape, 3)).astype(np.float32),
    )
    agent = walk.program().agent
    critics = agent.critics(agent.init(jax.random.key(0)))
    for n in (1, 3, 9):
        judging = jax.jit(
            lambda critics, steps, n=n: initial_priorities(agent, critics, steps, n, 0.9, KEY)
        )
        got = judging(critics, jax.tree.map(jnp.asarray, steps))
        np.testing.assert_allclose(
            got, reference_priorities(agent, critics, steps, n, 0.9), rtol=1e-4
        )


@pytest.mark.long  # compiles a training and a judge
def test_priorities_of_actors_reach_the_memory():
    program = walk.program("prioritised", rollout=2, n_step=2, learning_starts=160)
    got = train.pipelined(
        program,
        KEY,
        168,
        hyper={**walk.HYPER, "replay": {"alpha": 1.0}},
        actor_priorities=2,
        exploration=agents.ape_x_exploration(4),
        executor="asynchronous",
    )
    # Acting ended before the first update was published: the first networks give all priorities.
    agent = program.agent
    first = jax.jit(program.init)(KEY, **walk.HYPER).agent
    data = got.state.replay.store.data
    steps = jax.tree.map(
        lambda leaf: np.asarray(leaf)[:168].reshape(21, 2, 4, *leaf.shape[1:]), data
    )
    wanted = np.stack(
        [
            reference_priorities(
                agent, agent.critics(first), jax.tree.map(lambda leaf, n=n: leaf[n], steps), 2, 0.9
            )
            for n in range(21)
        ]
    ).ravel()
    samples = [
        program.buffer.sample(got.state.replay, jax.random.key(n), 1.0, 0.9) for n in range(8)
    ]
    slots = np.concatenate([sample.indices for sample in samples])
    odds = np.concatenate([sample.probabilities for sample in samples])
    # One update has given 16 items others; the rest have what they were given, but for the sum.
    ratio = odds / wanted[slots]
    kept = np.isclose(ratio, np.median(ratio), rtol=1e-3)
    assert kept.mean() > 0.5
    # Of several priorities: if the memory had given one to all, the ratio would fit one alone.
    assert np.unique(wanted[slots][kept].round(4)).size >= 4


def test_epsilon_of_ape_x_reaches_a_wrapped_agent():
    env = walk.environment()
    plain_agent = agents.dqn(env.observation_space, env.action_space, hidden=(4,))
    agent = agents.normalise_observations(plain_agent)
    policy = agent.policy(agent.init(jax.random.key(0)))
    changed = agents.ape_x_exploration(8, 0.4, 7.0)(policy, jnp.arange(8))
    assert changed.inner.exploration.start.shape == (8,)


def test_epsilon_of_ape_x():
    exploration = agents.ape_x_exploration(8, 0.4, 7.0)
    policy = walk.program().agent.policy(walk.program().agent.init(KEY))
    got = exploration(policy, jnp.arange(2, 6, dtype=jnp.int32)).exploration.epsilon(10_000)
    np.testing.assert_allclose(got, [0.4 ** (1 + i / 7 * 7) for i in range(2, 6)], rtol=1e-5)
    for arguments, name in (((2, 1.5), "epsilon"), ((2, 0.5, -1), "alpha")):
        with pytest.raises(ValueError, match=name):
            agents.ape_x_exploration(*arguments)


class Failing(train.LocalPort):
    """A port of which a method fails at its tenth call."""

    def __init__(self, memory, method):
        super().__init__(memory)
        self.left = 10

        def fail(*args, **kwargs):
            self.left -= 1
            if not self.left:
                raise ConnectionError("the line is dead")
            return method_of(self)(*args, **kwargs)

        method_of = getattr(type(self).__mro__[1], method).__get__
        setattr(self, method, fail)


@pytest.mark.parametrize(
    ("method", "worker", "executor"),
    [
        ("add", "buffer", "deterministic"),
        ("sample", "sampler", "asynchronous"),
        pytest.param("add", "inserter", "asynchronous", marks=pytest.mark.slow),
        pytest.param("update", "updater", "asynchronous", marks=pytest.mark.slow),
        pytest.param("sample", "buffer", "deterministic", marks=pytest.mark.slow),
        pytest.param("update", "buffer", "deterministic", marks=pytest.mark.slow),
    ],
)
def test_errors_of_the_memory(method, worker, executor):
    port = functools.partial(Failing, method=method)
    program = walk.program("prioritised", policy_lag=1, priority_lag=1, port=port)
    before = threading.active_count()
    with pytest.raises(ConnectionError, match="line is dead") as error:
        train.pipelined(program, KEY, STEPS, executor=executor)
    assert error.value.__notes__ == [f"in the pipeline's worker {worker!r}"]
    assert threading.active_count() == before
    with pytest.raises(RuntimeError, match="closed"):
        program.buffer.can_sample()


class Falling(walk.HostWalk):
    def step(self, action):
        if self.time == 2:
            raise FloatingPointError("a leg broke")
        return super().step(action)


@pytest.mark.parametrize("num_actors", [1, 2])
def test_errors_of_environments(num_actors):
    before = threading.active_count()
    hosts = [envs.host_environment(Falling, 2) for _ in range(num_actors)]
    program = walk.program(env=hosts[0].environment, num_envs=2 * num_actors)
    with pytest.raises(FloatingPointError, match="a leg broke") as error:
        train.pipelined(
            program,
            KEY,
            STEPS,
            env=hosts,
            num_actors=num_actors,
            executor="deterministic" if num_actors == 1 else "asynchronous",
        )
    assert error.value.__notes__[0].startswith("in host environment number")
    assert error.value.__notes__[1].startswith("in the pipeline's worker 'actor")
    assert threading.active_count() == before


def test_errors_of_the_caller():
    before = threading.active_count()
    rows = []

    def on_row(row):
        rows.append(row["steps"])
        if len(rows) == 2:
            raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough"):
        train.pipelined(plain(), KEY, STEPS, period=PERIOD, on_row=on_row)
    assert rows == [64, 164]
    assert threading.active_count() == before


@pytest.mark.long  # trains until it is stopped
def test_ctrl_c():
    main = threading.main_thread().ident
    assert threading.get_ident() == main
    interrupt = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))

    def on_row(row):
        # Not before: jax dies of an interrupt that meets its compiler.
        if row["steps"] == 64:
            interrupt.start()

    with envs.host_environment(walk.HostWalk, 4, seconds=0.01) as env:
        program = walk.program(env=env.environment)
        before = threading.active_count()
        with pytest.raises(KeyboardInterrupt):
            train.pipelined(
                program, KEY, 100_000, env=env, executor="asynchronous", period=64, on_row=on_row
            )
        interrupt.join()
        assert threading.active_count() == before


def test_a_host_environment_must_be_given():
    with envs.host_environment(walk.HostWalk, 4) as env:
        program = walk.program(env=env.environment)
        with pytest.raises(TypeError, match="HostWalk steps on the host: give its env"):
            train.pipelined(program, KEY, STEPS)
        with pytest.raises(TypeError, match="HostWalk steps on the host"):
            jax.eval_shape(train.fused(program, STEPS), KEY)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_actors": 2}, "are for the asynchronous executor, got None, 2 and 0"),
        ({"queue_size": 2}, "are for the asynchronous executor, got 2, 1 and 0"),
        ({"queue_size": 0, "executor": "asynchronous"}, "queue_size must be at least 1, got 0"),
        (
            {"num_actors": 3, "executor": "asynchronous"},
            "num_actors must divide num_envs, 4, got 3",
        ),
        ({"actor_priorities": -1}, "actor_priorities must be at least 0, got -1"),
        ({"steps": 10}, "steps must be more than learning_starts"),
        ({"period": 0}, "period must be at least 1, got 0"),
        ({"hyper": {"gamma": 2.0}}, "gamma must be from 0 to 1, got 2.0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        train.pipelined(plain(), KEY, **{"steps": STEPS, **arguments})


def test_bad_starts_and_environments():
    program = plain()
    with pytest.raises(TypeError, match="key must be"):
        train.pipelined(program, 3, STEPS)
    with pytest.raises(ValueError, match="start must be a single key"):
        train.pipelined(program, jax.random.split(KEY), STEPS)
    state = dataclasses.replace(program.init(KEY), iteration=jnp.int32(50))
    with pytest.raises(ValueError, match="hyper must be None where start is a state"):
        train.pipelined(program, state, STEPS, hyper=walk.HYPER)
    with pytest.raises(ValueError, match="steps must be more than the 200 of the state, got 200"):
        train.pipelined(program, state, 200)
    with (
        envs.host_environment("CartPole-v1", 4) as cart,
        envs.host_environment(walk.HostWalk) as one,
    ):
        with pytest.raises(ValueError, match="env's observation_space must be the program's"):
            train.pipelined(program, KEY, STEPS, env=cart)
        with pytest.raises(ValueError, match="env must have 4 environments for each actor, got 1"):
            train.pipelined(program, KEY, STEPS, env=one)
        with pytest.raises(ValueError, match="env must be one for each of 1 actors, got 2"):
            train.pipelined(program, KEY, STEPS, env=[one, one])
