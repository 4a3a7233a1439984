import sys

import gymnasium
import numpy as np
import pytest
from dataset_examples import gymnasium_mdp
from gymnasium.spaces import Box, Discrete
from optional import require

from accel_rl.datasets import DatasetError, from_minari, validate

require("Minari")
import minari  # noqa: E402

# Minari warns of every descriptive field that a dataset leaves out.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:minari.*")


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def buffer(observations, actions, rewards, terminated=False, truncated=False):
    none = [False] * (len(rewards) - 1)
    return minari.data_collector.EpisodeBuffer(
        observations=observations,
        actions=actions,
        rewards=rewards,
        terminations=[*none, terminated],
        truncations=[*none, truncated],
    )


def create(*buffers, observation=None, action=None, name="test/episodes-v0"):
    return minari.create_dataset_from_buffers(
        name,
        list(buffers),
        observation_space=observation or Discrete(6),
        action_space=action or Discrete(3),
    )


def rows(data):
    t = data.transitions
    columns = (t.state, t.action, t.reward, t.next_state, t.discount, t.next_action, data.episode)
    return [tuple(row) for row in np.stack([np.asarray(c, float) for c in columns], 1)]


EPISODES = (
    buffer([0, 1, 2], [1, 2], [0.5, 1.0], terminated=True),
    buffer([3, 4, 5], [0, 1], [0.0, -1.0], truncated=True),
    buffer([5, 5], [2], [2.0]),  # cut, and says nothing of it
    buffer([1, 0], [1], [3.0], terminated=True, truncated=True),
)


def test_rows_without_a_next_action_are_dropped_and_counted():
    data = from_minari(create(*EPISODES))
    assert rows(data) == [
        (0, 1, 0.5, 1, 1, 2, 0),
        (1, 2, 1.0, 2, 0, 0, 0),
        (3, 0, 0.0, 4, 1, 1, 1),
        (1, 1, 3.0, 0, 0, 0, 2),
    ]
    assert (data.info.dropped, data.info.missing_next_action) == (2, 0)
    assert (data.info.num_states, data.info.num_actions) == (6, 3)
    assert data.info.policy == "unknown, imported from Minari's test/episodes-v0"


def test_rows_without_a_next_action_can_stay_and_an_id_will_do():
    create(*EPISODES)
    data = from_minari("test/episodes-v0", require_next_action=False)
    assert rows(data)[3:5] == [(4, 1, -1.0, 5, 1, 0, 1), (5, 2, 2.0, 5, 1, 0, 2)]
    np.testing.assert_array_equal(data.truncated, [0, 0, 0, 1, 1, 0])
    assert (data.info.dropped, data.info.missing_next_action) == (0, 2)


def test_spaces_that_start_elsewhere_are_shifted():
    shifted = create(
        buffer([7, 9], [-1], [1.0], terminated=True),
        observation=Discrete(3, start=7),
        action=Discrete(2, start=-1),
    )
    assert rows(from_minari(shifted)) == [(0, 0, 1, 2, 0, 0, 0)]


# Minari leaves its temporary directories to the garbage collector.
@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
def test_a_recording_of_gymnasium_is_what_its_tables_say():
    env = minari.DataCollector(gymnasium.make("Taxi-v4", max_episode_steps=20))
    env.action_space.seed(0)
    for episode in range(3):
        env.reset(seed=episode)
        while True:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                break
    source = env.create_dataset("test/taxi-v0")
    env.close()
    data = from_minari(source)
    validate(data)
    assert data.info.environment == "Taxi-v4"
    assert (len(data), data.info.dropped) == (57, 3)
    mdp, t = gymnasium_mdp("Taxi-v4", 200), data.transitions
    np.testing.assert_array_equal(t.next_state, mdp.next_state[t.state, t.action, 0])
    np.testing.assert_array_equal(t.reward, mdp.reward[t.state, t.action, 0])


def test_other_spaces_are_refused_by_name():
    box = Box(0, 1, (2,), np.float64)
    source = create(buffer([np.zeros(2), np.ones(2)], [1], [1.0]), observation=box)
    with pytest.raises(TypeError, match=r"the observation space must be Discrete, got Box\("):
        from_minari(source)
    source = create(buffer([0, 1], [np.zeros(2)], [1.0]), action=box, name="test/box-v0")
    with pytest.raises(TypeError, match=r"the action space must be Discrete, got Box\("):
        from_minari(source)


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        (
            {"observations": [0, 6], "actions": [0], "rewards": [1.0]},
            r"row 0 of 1: next_state is 6, must be in \[0, 6\)",
        ),
        (
            {"observations": [0, 1], "actions": [0], "rewards": [np.nan]},
            "row 0 of 1: reward is nan, must be finite",
        ),
        (
            {"observations": [0, 1, 2], "actions": [0], "rewards": [1.0]},
            r"episode 0: observations must have shape \(2,\), got \(3,\)",
        ),
        (
            {
                "observations": [0, 1, 2],
                "actions": [0, 0],
                "rewards": [1.0, 1.0],
                "terminations": [True, True],
            },
            "row 0 of 2: discount is 0.0, must be 1 where the row below is of the same episode",
        ),
    ],
)
def test_a_wrong_episode_is_named(episode, message):
    ends = [True] * len(episode["rewards"])
    parts = {"terminations": ends, "truncations": ends, **episode}
    source = create(minari.data_collector.EpisodeBuffer(**parts))
    with pytest.raises(DatasetError, match=f"^test/episodes-v0: {message}"):
        from_minari(source)


def test_nothing_known_is_left():
    with pytest.raises(DatasetError, match="none of the 1 rows has a known next action"):
        from_minari(create(EPISODES[2]))


def test_an_unknown_id_is_not_downloaded():
    with pytest.raises(FileNotFoundError, match="not found locally"):
        from_minari("test/nothing-v0")


def test_without_minari_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ImportError, match=r"pip install 'accel-rl\[minari\]'"):
        from_minari("test/episodes-v0")
