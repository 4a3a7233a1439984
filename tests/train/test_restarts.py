"""Actors that fail and are restarted."""

import contextlib
import functools
import os
import signal
import threading
import warnings

import jax
import numpy as np
import pytest
import walk

from accel_rl import envs, train
from accel_rl.train.pipeline.actors import ActorConfig, ActorSlot, DeviceActor, Published, Version

STEPS = 120
KEY = jax.random.key(5)
ITERATIONS = STEPS // 4


@contextlib.contextmanager
def within(seconds):
    """Fails the test if it hangs."""

    def ring(*_):
        raise TimeoutError(f"not done within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Flaky(walk.HostWalk):
    """Fails at its third step while there is none of as many files as it may fail."""

    def __init__(self, folder, times, dies=False):
        super().__init__()
        self.folder, self.times, self.dies, self.steps = folder, times, dies, 0

    def step(self, action):
        self.steps += 1
        failed = len(os.listdir(self.folder))
        if self.steps == 3 and failed < self.times:
            (self.folder / str(failed)).touch()
            if self.dies:
                os._exit(3)
            raise FloatingPointError("a leg broke")
        return super().step(action)


def train_with(env, program, **kwargs):
    arguments = {"hyper": walk.HYPER, "executor": "asynchronous", "period": 40, **kwargs}
    with within(120):
        return train.pipelined(program, KEY, STEPS, env=env, **arguments)


def opener(opened, folder, times, each=4, **kwargs):
    """A function that opens an actor's environments, and notes them."""

    def opens(number):
        opened.append(envs.host_environment(Flaky, each, folder=folder, times=times, **kwargs))
        return opened[-1]

    return opens


@functools.cache
def host_program():
    with envs.host_environment(walk.HostWalk) as env:
        return walk.program(env=env.environment, learning_starts=40)


def check_complete(got, restarts):
    """It is a whole training, with as many steps and updates as without a failure."""
    assert int(got.state.iteration) == ITERATIONS
    assert got.state.agent.updates == ITERATIONS - 10
    assert [row["steps"] for row in got.rows] == [40, 80, 120]
    assert got.rows[-1]["actor_restarts"] == restarts
    cursor = got.state.replay.store.cursor
    assert (int(cursor.row), int(cursor.laps)) == (ITERATIONS, 0)


@pytest.mark.parametrize("num_actors", [1, 2])
def test_a_training_goes_on(num_actors, tmp_path):
    opened, before = [], threading.active_count()
    with pytest.warns(RuntimeWarning, match="restarts after") as warned:
        got = train_with(
            opener(opened, tmp_path, 2, each=4 // num_actors),
            host_program(),
            restarts=3,
            num_actors=num_actors,
        )
    check_complete(got, 2)
    assert len(opened) == num_actors + 2
    for number, each in enumerate(warned):
        left = f"after FloatingPointError: a leg broke ({2 - number} restarts left)"
        assert str(each.message).startswith("'actor")
        assert str(each.message).endswith(left)
    for env in opened:
        with pytest.raises(RuntimeError, match="is closed"):
            env.reset()
    assert threading.active_count() == before
    # An episode that a failure cut short is nowhere: steps follow one another or are first ones.
    data = jax.tree.map(lambda leaf: np.asarray(leaf)[:STEPS], got.state.replay.store.data)
    rows = jax.tree.map(lambda leaf: leaf.reshape(ITERATIONS, 4, *leaf.shape[1:]), data)
    goes_on = (rows.next_observation[:-1] == rows.observation[1:]).all(-1)
    goes_on |= (rows.discount[:-1] == 0) | rows.truncated[:-1]
    assert (~goes_on).any(axis=1).sum() <= 2


@pytest.mark.long
def test_a_process_that_died(tmp_path):
    opens = opener([], tmp_path, 1, backend="processes", workers=1, dies=True)
    with pytest.warns(RuntimeWarning, match=r"ended, with exit code 3 \(0 restarts left\)"):
        got = train_with(opens, host_program(), restarts=1)
    check_complete(got, 1)


def test_the_limit(tmp_path):
    opened, before = [], threading.active_count()
    with (
        pytest.warns(RuntimeWarning, match="restarts after") as warned,
        pytest.raises(FloatingPointError, match="a leg broke") as error,
    ):
        train_with(opener(opened, tmp_path, 9), host_program(), restarts=2)
    assert error.value.__notes__ == [
        "in host environment number 0",
        "in the pipeline's worker 'actor'",
    ]
    assert len(warned) == 2
    assert len(opened) == 3
    assert threading.active_count() == before


def test_environments_that_are_closed_cannot_be_started_anew(tmp_path):
    with (
        envs.host_environment(Flaky, 4, folder=tmp_path, times=1) as env,
        pytest.warns(RuntimeWarning, match="restarts after"),
        pytest.raises(FloatingPointError, match="a leg broke") as error,
    ):
        train_with(env, host_program(), restarts=2)
    assert error.value.__notes__[1:] == [
        "the actor could not be restarted: RuntimeError: Flaky is closed",
        "in the pipeline's worker 'actor'",
    ]


def test_environments_that_are_open_are_reset():
    """If what failed is around them, with a seed that is a function of the key and the restart."""

    def seeds():
        calls, given = [], []
        with envs.host_environment(walk.HostWalk, 4) as env:
            step, reset = env.step, env.reset

            def failing(actions):
                calls.append(actions)
                if len(calls) in (5, 9):
                    raise ConnectionError("the line is dead")
                return step(actions)

            def noted(seed):
                given.append(seed)
                return reset(seed)

            env.step, env.reset = failing, noted
            with pytest.warns(RuntimeWarning, match="the line is dead"):
                got = train_with(env, host_program(), restarts=2)
        check_complete(got, 2)
        assert len(calls) == ITERATIONS + 2
        return given

    first = seeds()
    assert len(set(first)) == 3
    assert seeds() == first


def failing_program(times):
    """Its environments are pure but for failures."""
    env, calls = walk.environment(), []

    def check(reward):
        calls.append(None)
        if len(calls) % 10 == 0 and len(calls) <= 10 * times:
            raise FloatingPointError("a leg broke")
        return reward

    def step(key, state, action):
        observation, state, reward, *rest = env.step(key, state, action)
        reward = jax.pure_callback(check, reward, reward, vmap_method="broadcast_all")
        return observation, state, reward, *rest

    return walk.program(env=env._replace(step=step), learning_starts=40)


@pytest.mark.long  # compiles a training of its own
def test_compiled_environments():
    with pytest.warns(RuntimeWarning, match="a leg broke"):
        got = train_with(None, failing_program(2), restarts=2)
    check_complete(got, 2)


@pytest.mark.long  # compiles an actor of its own
def test_each_start_has_keys_of_its_own():
    program = walk.program()
    state = jax.jit(program.init)(KEY)
    version = Version(Published(program.agent.policy(state.agent), None), 0)

    def starts(number):
        slot = ActorSlot(ActorConfig(program, 2, 0, None), number, jax.devices()[0], state.key, 0.9)
        actor = DeviceActor(slot, jax.tree.map(lambda leaf: leaf[2 * number :][:2], state.actor))
        keys, stood = [np.array(actor._key)], []
        for _ in range(3):
            actor.restart(version)
            keys.append(np.array(actor._key))
            stood.append(jax.tree.map(np.array, actor.state))
            rollout = actor.collect(version, 0)
            assert rollout.transitions.reward.shape == (2,)
        return keys, stood

    keys, stood = starts(0)
    others, _ = starts(1)
    assert len({key.tobytes() for key in keys + others}) == 8
    assert (stood[0].episode_length == 0).all()
    again, stood_again = starts(0)
    for one, other in zip(
        jax.tree.leaves((keys, stood)), jax.tree.leaves((again, stood_again)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_nothing_is_restarted_that_need_not_be():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = train_with(None, walk.program(learning_starts=40), restarts=1)
    check_complete(got, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"restarts": 1}, "restarts are for the asynchronous executor"),
        ({"restarts": -1, "executor": "asynchronous"}, "restarts must be at least 0, got -1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        train.pipelined(walk.program(), KEY, STEPS, **arguments)


def test_environments_of_another_type_are_refused(tmp_path):
    program = host_program()
    opened = []
    with pytest.raises(ValueError, match="env must have 4 environments for each actor, got 2"):
        train.pipelined(program, KEY, STEPS, env=opener(opened, tmp_path, 0, each=2))
    with pytest.raises(RuntimeError, match="closed"):
        opened[0].reset()
