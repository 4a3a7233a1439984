"""The tables against Gymnasium's `P`, and bad arguments against their messages."""

import gymnasium
import numpy as np
import pytest

from accel_rl import envs
from accel_rl.envs.taxi import decode, encode

ISLAND = ["SFH", "FFF", "HFF", "SFG"]  # two starts, not square

CASES = [
    ("FrozenLake-v1", "FrozenLake-v1", {}),
    ("FrozenLake-v1", "FrozenLake-v1", {"is_slippery": False}),
    ("FrozenLake-v1", "FrozenLake-v1", {"map_name": "8x8"}),
    ("FrozenLake8x8-v1", "FrozenLake8x8-v1", {}),
    ("FrozenLake8x8-v1", "FrozenLake8x8-v1", {"is_slippery": False}),
    ("FrozenLake-v1", "FrozenLake-v1", {"desc": ISLAND, "success_rate": 0.7}),
    ("FrozenLake-v1", "FrozenLake-v1", {"success_rate": 1.0, "reward_schedule": (5, -2, -0.5)}),
    ("Taxi-v3", "Taxi-v4", {}),
    ("Taxi-v4", "Taxi-v4", {"is_rainy": True}),
    ("Taxi-v4", "Taxi-v4", {"is_rainy": True, "rainy_probability": 0.55}),
    ("CliffWalking-v1", "CliffWalking-v1", {}),
    ("CliffWalkingSlippery-v1", "CliffWalkingSlippery-v1", {}),
]


@pytest.mark.parametrize(("name", "gymnasium_name", "arguments"), CASES)
def test_tables_equal_gymnasium(name, gymnasium_name, arguments):
    mdp = envs.make_mdp(name, **arguments)
    reference = gymnasium.make(gymnasium_name, **arguments)
    table = reference.unwrapped.P
    assert len(table) == mdp.num_states
    ours = [
        np.asarray(column)
        for column in (mdp.probability, mdp.next_state, mdp.reward, mdp.terminated)
    ]
    for state, by_action in table.items():
        assert len(by_action) == mdp.num_actions
        for action, outcomes in by_action.items():
            count = len(outcomes)
            for column, expected in zip(ours, zip(*outcomes, strict=True), strict=True):
                row = column[state, action]
                np.testing.assert_array_equal(row[:count], np.array(expected, column.dtype))
            assert not ours[0][state, action, count:].any()
    longest = max(len(o) for by_action in table.values() for o in by_action.values())
    assert mdp.probability.shape[2] == longest
    initial = reference.unwrapped.initial_state_distrib.astype(np.float32)
    np.testing.assert_array_equal(np.asarray(mdp.initial), initial)
    assert mdp.time_limit == reference.spec.max_episode_steps


def test_direct_builders_take_the_map_s_time_limit():
    assert envs.frozen_lake().time_limit == 100
    assert envs.frozen_lake("8x8").time_limit == 200
    assert envs.frozen_lake("8x8", desc=ISLAND).time_limit == 100
    assert envs.frozen_lake(time_limit=7).time_limit == 7
    assert envs.taxi(time_limit=None).time_limit is None


def test_taxi_state_numbers():
    reference = gymnasium.make("Taxi-v4").unwrapped
    for state in range(500):
        assert decode(state) == reference.decode(state)
        assert encode(*decode(state)) == state


@pytest.mark.parametrize(
    ("build", "arguments", "message"),
    [
        (envs.frozen_lake, {"map_name": "5x5"}, "map_name must be one of 4x4, 8x8, got '5x5'"),
        (envs.frozen_lake, {"desc": []}, "rows of equal length"),
        (envs.frozen_lake, {"desc": "SFHG"}, "rows of equal length"),
        (envs.frozen_lake, {"desc": ["SFG", "FF"]}, "desc must be rows of equal length"),
        (envs.frozen_lake, {"desc": ["SFG", "FxF"]}, "of S, F, H, G, with an S, got"),
        (envs.frozen_lake, {"desc": ["FFG"]}, "with an S"),
        (envs.frozen_lake, {"success_rate": 1.5}, "success_rate .* got 1.5"),
        (envs.frozen_lake, {"reward_schedule": (1, 0)}, "not enough values"),
        (envs.frozen_lake, {"time_limit": 0}, "time_limit must be at least 1, got 0"),
        (envs.taxi, {"rainy_probability": float("nan")}, "rainy_probability .* got nan"),
    ],
)
def test_bad_values_are_refused(build, arguments, message):
    with pytest.raises(ValueError, match=message):
        build(**arguments)
