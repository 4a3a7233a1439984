"""Host environments against Gymnasium's, stepped by hand."""

import functools
import sys
import timeit
import types
import warnings

import gymnasium
import host_envs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optional import require

from accel_rl import envs
from accel_rl.types import Box, Discrete

BACKENDS = ("sync", "threads", "processes")


def by_hand(name, seeds, actions, **kwargs):
    """(observation, reward, terminated, truncated, final) of each step, by Gymnasium alone."""
    made = [gymnasium.make(name, **kwargs) for _ in seeds]
    first = [env.reset(seed=seed)[0] for env, seed in zip(made, seeds, strict=True)]
    rows = []
    for step in actions:
        row = []
        for env, action in zip(made, step, strict=True):
            final, reward, terminated, truncated, _ = env.step(action)
            observation = env.reset()[0] if terminated or truncated else final
            row.append((observation, reward, terminated, truncated, final))
        rows.append([np.array(column) for column in zip(*row, strict=True)])
    for env in made:
        env.close()
    return np.array(first), rows


def check_parity(name, backend, num_envs, steps, workers=None, **kwargs):
    rng = np.random.default_rng(0)
    with envs.host_environment(name, num_envs, backend, workers=workers, **kwargs) as env:
        space = env.action_space
        if isinstance(space, Discrete):
            actions = rng.integers(0, space.n, (steps, num_envs))
        else:
            shape = (steps, num_envs, *space.shape)
            actions = rng.uniform(space.low, space.high, shape).astype(np.float32)
        first, rows = by_hand(name, range(5, 5 + num_envs), actions, **kwargs)
        np.testing.assert_array_equal(env.reset(5), first)
        stops = 0
        for action, wanted in zip(actions, rows, strict=True):
            got = env.step(action)
            for ours, theirs in zip(got[:5], wanted, strict=True):
                np.testing.assert_array_equal(ours, theirs.astype(ours.dtype))
            assert got.observation.dtype == got.reward.dtype == np.float32
            stops += (got.terminated | got.truncated).sum()
    return stops


@pytest.mark.parametrize("backend", BACKENDS)
def test_steps_are_gymnasiums(backend):
    workers = None if backend == "sync" else 2
    assert check_parity("CartPole-v1", backend, 3, 60, workers) >= 3


def test_truncation_hands_on_the_final_observation():
    assert check_parity("Pendulum-v1", "sync", 2, 12, max_episode_steps=5) == 4
    with envs.host_environment("Pendulum-v1", 1, max_episode_steps=2) as env:
        env.reset(0)
        before = env.step(np.zeros((1, 1)))
        np.testing.assert_array_equal(before.observation, before.final_observation)
        last = env.step(np.zeros((1, 1)))
        assert last.truncated.all()
        assert not last.terminated.any()
        assert np.abs(last.observation - last.final_observation).max() > 1e-3


def test_lunar_lander():
    require("Box2D")
    with warnings.catch_warnings():  # its binding's types warn, and die where warnings are errors
        warnings.simplefilter("ignore", DeprecationWarning)
        import Box2D  # noqa: F401
    assert check_parity("LunarLander-v3", "sync", 2, 200) >= 2
    assert check_parity("LunarLander-v3", "sync", 1, 20, continuous=True) == 0


class Lacking:
    """Environment of Gymnasium whose package is not there; `__module__` says whose it is."""

    def __init__(self):
        raise gymnasium.error.DependencyNotInstalled("no module")


@pytest.mark.parametrize("extra", ["mujoco", "box2d", None])
def test_what_is_missing_is_said(extra, monkeypatch):
    folder = f"gymnasium.envs.{extra}" if extra else "elsewhere"
    monkeypatch.setitem(sys.modules, f"{folder}.lacking", types.SimpleNamespace(Env=Lacking))
    spec = gymnasium.envs.registration.EnvSpec("Lacking-v0", f"{folder}.lacking:Env")
    monkeypatch.setitem(gymnasium.registry, "Lacking-v0", spec)
    with pytest.raises(ImportError, match="Lacking-v0 needs a package that is not there") as found:
        envs.host_environment("Lacking-v0")
    assert (f"pip install 'accel-rl[{extra}]'" in str(found.value)) == bool(extra)


@pytest.mark.parametrize("backend", BACKENDS)
def test_pixels_keep_their_dtype(backend):
    with envs.host_environment(host_envs.Pixels, 2, backend, length=2) as env:
        assert env.observation_space == Box((0.0,) * 16, (255.0,) * 16, (4, 4, 1), np.dtype("u1"))
        assert env.reset().dtype == np.uint8
        env.step(np.array([0, 1]))
        last = env.step(np.array([1, 1]))
        # The environment writes all its observations into one array.
        assert last.final_observation.dtype == np.uint8
        assert (last.final_observation == 2).all()
        assert (last.observation == 0).all()


def test_wide_numbers_are_held_as_jax_holds_them():
    with envs.host_environment(host_envs.Wide, 2) as env:
        assert env.observation_space.dtype == env.action_space.dtype == np.float32
        assert env.reset(0).dtype == np.float32
        step = env.step(np.array([[1.0], [-1.0]]))
        np.testing.assert_array_equal(step.observation, [[0.5, 0.5], [-0.5, -0.5]])
    with envs.host_environment("FrozenLake-v1", 2) as env:
        assert env.observation_space == Discrete(16)
        assert env.reset(0).dtype == np.int32


def test_episode_statistics():
    with envs.host_environment(host_envs.Pixels, 2, length=3) as env:
        env.reset()
        steps = [env.step(np.array([1, each % 2])) for each in range(7)]
    np.testing.assert_array_equal(
        [s.episode_length for s in steps], [[n % 3 + 1] * 2 for n in range(7)]
    )
    returns = np.array([s.episode_return for s in steps])
    np.testing.assert_array_equal(returns[:, 0], [1, 2, 3, 1, 2, 3, 1])
    np.testing.assert_array_equal(returns[:, 1], [0, 1, 1, 1, 1, 2, 0])


def test_seeds_and_resets_repeat():
    with envs.host_environment("CartPole-v1", 2, "threads", workers=1) as env:
        first = env.reset(3)
        env.step(np.array([0, 1]))
        assert not np.array_equal(env.reset(4), first)
        np.testing.assert_array_equal(env.reset(3), first)
        assert env.step(np.array([0, 1])).episode_length.tolist() == [1, 1]


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_environments_wait_at_the_same_time(backend):
    with envs.host_environment(host_envs.Sleeper, 4, backend, workers=4) as env:
        env.reset()
        # The least of several, as other programs can delay any of them.
        seconds = timeit.repeat(lambda: env.step(np.zeros(4, int)), number=1, repeat=5)
        assert min(seconds) < 0.3  # one after the other: 0.4


def test_a_process_that_ends_is_reported():
    env = envs.host_environment(host_envs.Dier, 2, "processes", workers=2)
    env.reset()
    env.step(np.zeros(2, int))
    with pytest.raises(RuntimeError, match="process of Dier 0 to 0 ended, with exit code 7"):
        env.step(np.zeros(2, int))
    with pytest.raises(RuntimeError, match="Dier is closed"):
        env.reset()
    env.close()


def test_errors_say_which_environment():
    with envs.host_environment(host_envs.Raiser, 2) as env:
        env.reset()
        env.step(np.zeros(2, int))
        with pytest.raises(FloatingPointError, match="host environment number 0"):
            env.step(np.zeros(2, int))
    with envs.host_environment(host_envs.Raiser, 1, "processes") as env:
        env.reset()
        env.step(np.zeros(1, int))
        with pytest.raises(RuntimeError, match=r"(?s)Raiser 0 to 0 failed.*100 %"):
            env.step(np.zeros(1, int))
    with pytest.raises(RuntimeError, match=r"(?s)Unmakable 0 to 0 failed.*no such display"):
        envs.host_environment(host_envs.Unmakable, 1, "processes")
    with pytest.raises(OSError, match="no such display"):
        envs.host_environment(host_envs.Unmakable)


@pytest.mark.parametrize("workers", [1, 2])
def test_all_are_closed_if_one_cannot_be_made(workers):
    made, closed = [], []
    make = functools.partial(host_envs.Closer, made, closed, most=2)
    # Closing the first one raises too; what went wrong before is its context.
    with pytest.raises(ConnectionError) as raised:
        envs.host_environment(make, 4, "threads", workers=workers)
    assert "no such display" in str(raised.value.__context__)
    assert sorted(closed) == [0, 1]


def test_all_are_closed_if_spaces_differ():
    closed = []

    class Other(host_envs.Closer):
        def __init__(self):
            super().__init__(["no error"], closed)
            self.observation_space = gymnasium.spaces.Discrete(3)

    makes = [functools.partial(host_envs.Closer, [1], closed), Other]
    with pytest.raises(ValueError, match=r"the same spaces, got .*Discrete\(3\)"):
        envs.HostEnvironment("closer", makes, "sync", 1)
    assert closed == [1, 1]


def test_all_are_closed_if_closing_one_fails():
    closed = []
    env = envs.host_environment(functools.partial(host_envs.Closer, [], closed), 3)
    with pytest.raises(ConnectionError, match="closed badly"):
        env.close()
    assert sorted(closed) == [0, 1, 2]
    env.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "CartPole-v1", "backend": "fork"}, "backend must be one of sync, threads"),
        ({"name": "CartPole-v1", "num_envs": 0}, "num_envs must be at least 1, got 0"),
        ({"name": "CartPole-v1", "workers": 2}, "from 1 to 1, got 2"),
        (
            {"name": "CartPole-v1", "backend": "threads", "workers": 2},
            "workers must be from 1 to 1, got 2",
        ),
        ({"name": "CartPol-v1"}, "no Gymnasium environment is named 'CartPol-v1'.*CartPole"),
        ({"name": host_envs.Dictionary}, "Dictionary's observation space must be Discrete"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        envs.host_environment(**arguments)


def test_bad_actions():
    with envs.host_environment("CartPole-v1", 2) as env:
        env.reset(0)
        for actions in (np.zeros(3, int), np.zeros(2), np.zeros((2, 1), int)):
            with pytest.raises(
                ValueError, match=r"actions must be of shape \(2,\) and dtype int32"
            ):
                env.step(actions)


def test_what_a_program_needs_to_know():
    with envs.host_environment(host_envs.Pixels) as env:
        described = env.environment
        assert described.observation_space == env.observation_space
        observation, _ = jax.eval_shape(described.reset, jax.random.key(0))
        assert (observation.shape, observation.dtype) == ((4, 4, 1), jnp.uint8)
        with pytest.raises(TypeError, match="Pixels steps on the host"):
            described.step(jax.random.key(0), (), 0)
