"""Bad input to `envs` and `datasets`, and to what reads and writes their files."""

import functools

import jax
import numpy as np
import pytest
from refusals import NAN, check_refused, rows_of

from accel_rl import datasets, envs, io
from accel_rl.envs import wrappers
from accel_rl.types import Box, Discrete, TabularTransition

POLICY = np.zeros(16, np.int32)
lake = functools.cache(lambda: envs.make_mdp("FrozenLake-v1"))
cart = functools.cache(lambda: envs.environment("CartPole-v1"))
WHOLE, REAL = np.zeros(1, np.int32), np.zeros(1, np.float32)
ROW = TabularTransition(WHOLE, WHOLE, REAL, WHOLE, REAL + 1, WHOLE)
LOG = datasets.TabularDataset(ROW, WHOLE, datasets.DatasetInfo("one", 1, 1, "only"))
layout = functools.cache(lambda: envs.layout("FrozenLake-v1"))


def collect(policy="random", number=10, **options):
    return datasets.collect(lake(), policy, number, **options)


def rollout(number=4, num_envs=2, actions=4, **options):
    return datasets.rollout(
        envs.make_sampler(lake()), datasets.random_policy(actions), jax.random.key(0),
        num_transitions=number, num_envs=num_envs, **options,
    )  # fmt: skip


def arrays(state=(0, 1), action=(0, 1), reward=(0, 1), next_state=(1, 2), terminated=(0, 1), **o):
    return datasets.from_arrays(state, action, reward, next_state, terminated, **o)


TABLE = {
    "envs.make": [
        (lambda: envs.make("Nope-v1"), ValueError, "no environment is named 'Nope-v1'; known:"),
    ],
    "envs.make_mdp": [
        (lambda: envs.make_mdp("CartPole-v1"), ValueError, "no environment with tables is"),
        (lambda: envs.make_mdp("Taxi-v3", x=1), TypeError, "unexpected keyword argument 'x'"),
    ],
    "envs.environment": [
        (lambda: envs.environment("Cartpole-v1"), ValueError, "did you mean CartPole-v1?"),
    ],
    "envs.frozen_lake": [
        (lambda: envs.frozen_lake("5x5"), ValueError, "map_name must be one of 4x4, 8x8, got '5x5"),
        (lambda: envs.frozen_lake(success_rate=NAN), ValueError, "success_rate must be from 0"),
        (lambda: envs.frozen_lake(success_rate="x"), TypeError, "success_rate must be a number"),
        (lambda: envs.frozen_lake(reward_schedule=(1, 0, NAN)), ValueError, "finite, got nan"),
        (lambda: envs.frozen_lake(time_limit=1.5), TypeError, "time_limit must be an int, got 1.5"),
    ],
    "envs.cliff_walking": [
        (lambda: envs.cliff_walking(time_limit=0), ValueError, "time_limit must be at least 1, go"),
        (lambda: envs.cliff_walking(time_limit=True), TypeError, "time_limit must be an int, got"),
    ],
    "envs.taxi": [
        (lambda: envs.taxi(rainy_probability=-1), ValueError, "rainy_probability must be from 0"),
        (lambda: envs.taxi(rainy_probability=None), TypeError, "rainy_probability must be a numb"),
    ],
    "envs.render_ansi": [
        (lambda: envs.render_ansi(layout(), state=99), ValueError, "state 99 is not in this layou"),
        (lambda: envs.render_ansi(layout(), action=9), ValueError, "must be from 0 to 3, got 9"),
        (lambda: envs.render_ansi(layout(), action=1.5), TypeError, "action must be an int, got 1"),
    ],
    "envs.space_of": [
        (lambda: envs.space_of(None), ValueError, "space must be Discrete (from 0) or Box, got N"),
    ],
    "envs.action_of": [
        (
            lambda: envs.action_of(Box(0.0, 1.0, (2,)), np.zeros(3), "Point"),
            *(ValueError, "an action of Point must have the shape (2,), got Array([0., 0., 0.]"),
        ),
        (lambda: envs.action_of(Discrete(2), 1.0), TypeError, "the environment must be an integer"),
    ],
    "envs.host_environment": [
        (lambda: envs.host_environment("CartPole-v9"), ValueError, "no Gymnasium environment is n"),
        (lambda: envs.host_environment("CartPole-v1", 1.5), TypeError, "num_envs must be an int"),
        (lambda: envs.host_environment("x", 2, "process"), ValueError, "backend must be one of sy"),
    ],
    "envs.wrappers.cast_observations": [
        (lambda: wrappers.cast_observations(cart(), np.int32), ValueError, "dtype must hold the"),
    ],
    "envs.wrappers.scale_rewards": [
        (lambda: wrappers.scale_rewards(cart(), 0.0), ValueError, "finite and not zero, got 0.0"),
        (lambda: wrappers.scale_rewards(cart(), NAN), ValueError, "finite and not zero, got nan"),
    ],
    "envs.wrappers.clip_rewards": [
        (lambda: wrappers.clip_rewards(cart(), NAN, 1), ValueError, "low must be below high, got"),
    ],
    "envs.wrappers.frame_stack": [
        (lambda: wrappers.frame_stack(cart(), 2.0), TypeError, "frames must be an int, got 2"),
        (lambda: wrappers.frame_stack(cart(), 0), ValueError, "frames must be at least 1, got 0"),
    ],
    "envs.wrappers.normalise_observations": [
        (
            lambda: wrappers.normalise_observations(cart(), clip="x"),
            *(TypeError, "clip must be a number, got 'x'"),
        ),
    ],
    "envs.wrappers.one_hot": [
        (lambda: wrappers.one_hot(cart()), TypeError, "one_hot needs Discrete observations, CartP"),
    ],
    "envs.wrappers.time_limit": [
        (lambda: wrappers.time_limit(cart(), True), TypeError, "steps must be an int, got Tru"),
    ],
    "datasets.collect": [
        (lambda: collect("greedy"), ValueError, "policy must be one of random, got 'greedy'"),
        (lambda: collect(POLICY[:3]), ValueError, "of the environment, got (3, 4)"),
        (lambda: collect(number=2.5), TypeError, "num_transitions must be an int, got 2.5"),
        (lambda: collect(seed=2**32), ValueError, "seed must be from 0 to 4294967295"),
    ],
    "datasets.rollout": [
        (lambda: rollout(time_limit=0), ValueError, "time_limit must be at least 1, got 0"),
        (lambda: rollout(actions=3), ValueError, "policy has 3 actions, the sampler 4"),
    ],
    "datasets.deterministic_policy": [
        (lambda: datasets.deterministic_policy([0], 0), ValueError, "integers in [0, 0)"),
        (lambda: datasets.deterministic_policy([-1], 2), ValueError, "integers in [0, 2)"),
    ],
    "datasets.epsilon_greedy_policy": [
        (lambda: datasets.epsilon_greedy_policy([[NAN]], 0.1), ValueError, "q must be finite"),
        (lambda: datasets.epsilon_greedy_policy([[0]], NAN), ValueError, "epsilon must be from 0"),
    ],
    "datasets.random_policy": [
        (lambda: datasets.random_policy(0), ValueError, "num_actions must be at least 1, got 0"),
    ],
    "datasets.stochastic_policy": [
        (lambda: datasets.stochastic_policy([[0.0]]), ValueError, "must be 1, got 0.0"),
    ],
    "datasets.from_arrays": [
        (lambda: arrays(state=[0, -1]), datasets.DatasetError, "row 1: state is -1, must be a who"),
        (lambda: arrays(num_states=2), datasets.DatasetError, "row 1: next_state is 2, must be a "),
        (lambda: arrays(action=[0, 0.5]), datasets.DatasetError, "row 1: action is 0.5, must be a"),
        (lambda: arrays(reward=[NAN, 0]), datasets.DatasetError, "row 0: reward is nan, must be f"),
        (lambda: arrays(reward=[1e39, 0]), datasets.DatasetError, "must be finite in float32"),
        (lambda: arrays(terminated=[0, 2]), datasets.DatasetError, "row 1: terminated is 2, must "),
        (lambda: arrays(action=[0]), datasets.DatasetError, "action must have the shape of state"),
        (lambda: arrays(state=[[0], [1]]), datasets.DatasetError, "state must have the shape of s"),
        (lambda: arrays([], [], [], [], []), datasets.DatasetError, "none of the 0 rows"),
        (lambda: arrays(next_action=[3, 7], num_actions=3), datasets.DatasetError, "row 0: next_a"),
        (lambda: arrays(terminated=None), ValueError, "to tell where episodes end, give term"),
        (lambda: arrays(discount=[1, 0]), ValueError, "to tell where episodes end, give term"),
        (lambda: arrays(num_actions=0), ValueError, "num_actions must be from 1 to 2147483647, go"),
        (lambda: arrays(state=["a", "b"]), TypeError, "state must be of numbers, got <U1"),
        (lambda: arrays(num_states=2.5), TypeError, "num_states must be an int, got 2.5"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), rows_of(TABLE))
def test_refuses(call, error, says):
    check_refused(call, error, says)


FILES = {
    "datasets.load": [
        (lambda at: datasets.load(at / "absent"), FileNotFoundError, "absent"),
        (lambda at: datasets.load(at / "folder"), IsADirectoryError, "folder"),
        (lambda at: datasets.load(at / "text"), datasets.DatasetError, "not an .npz file"),
        (lambda at: datasets.load(at / "empty"), datasets.DatasetError, "not an .npz file"),
    ],
    "datasets.load_text": [
        (lambda at: datasets.load_text(at / "absent", mdp=lake()), FileNotFoundError, "absent"),
        (lambda at: datasets.load_text(at / "folder", mdp=lake()), IsADirectoryError, "folder"),
        (lambda at: datasets.load_text(at / "empty", mdp=lake()), datasets.DatasetError, "no rows"),
        (lambda at: datasets.load_text(at / "text"), ValueError, "give either mdp, or episode_end"),
        (
            lambda at: datasets.load_text(
                at / "text", episode_end="truncated", num_states=2.5, num_actions=2
            ),
            *(TypeError, "num_states must be an int, got 2.5"),
        ),
    ],
    "datasets.save": [
        (lambda at: datasets.save(at / "no" / "x.npz", LOG), FileNotFoundError, "no/x.npz"),
        (lambda at: datasets.save(at / "folder", LOG), IsADirectoryError, "folder"),
    ],
    "io.atomic_write": [
        (lambda at: io.atomic_write(at / "folder").__enter__(), IsADirectoryError, "folder"),
        (lambda at: io.atomic_write(at / "no" / "x").__enter__(), FileNotFoundError, "no/x"),
        (lambda at: io.atomic_write("").__enter__(), IsADirectoryError, "Is a directory"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), rows_of(FILES))
def test_leaves_files_as_they_were(tmp_path, call, error, says):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "empty").touch()
    check_refused(lambda: call(tmp_path), error, says)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "folder", "text"]
    assert (tmp_path / "text").read_text() == "hello\n"
