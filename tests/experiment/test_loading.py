"""Experiments loaded and trained from Python, and the schema of their files."""

import json

import jax
import jsonschema
import numpy as np
import pytest

from accel_rl import experiment
from accel_rl.experiment import configuration, layers

TINY = {
    "training.steps": 200,
    "training.period": 100,
    "evaluation.every": 100,
    "evaluation.episodes": 2,
    "evaluation.max_steps": 20,
    "schedule.learning_starts": 50,
    "agent.hidden": (4,),
    "replay.batch_size": 8,
    "replay.capacity": 100,
}


def tiny(*words, **more):
    return experiment.load(None, TINY, agent="dqn", environment="CartPole-v1", words=words, **more)


def without_time(rows):
    return [{name: row[name] for name in row if name != "seconds"} for row in rows]


def test_a_folder_changes_nothing_and_its_configuration_trains_the_same(tmp_path):
    made = tiny()
    in_memory, written = made.train(), made.train(tmp_path / "run")
    again = experiment.load(tmp_path / "run" / "config.json")
    assert again.configuration == made.configuration
    jax.tree.map(np.testing.assert_array_equal, in_memory.state.agent, written.state.agent)
    np.testing.assert_equal(without_time(in_memory.rows), without_time(written.rows))
    assert json.loads((tmp_path / "run" / "results.json").read_text())["steps"] == 200
    longer = experiment.load(tmp_path / "run" / "config.json", {"training.steps": 300})
    assert longer.train(tmp_path / "run", resume=True).rows[-1]["steps"] == 300


def test_returns_of_scaled_rewards_are_unscaled(tmp_path):
    made = tiny("environment.reward_scale=2")
    for rows in (made.train().rows, made.train(tmp_path / "run").rows):
        assert 1 <= rows[-1]["evaluation"] <= 20


@pytest.mark.parametrize(
    ("words", "more", "message"),
    [
        ((), {"agent": None}, "no agent is named"),
        ((), {"environment": None}, "no environment is named"),
        (("training.stps=1",), {}, "did you mean training.steps"),
        (("training.period=0",), {}, "period"),
        ((), {"settings": {"agent.name": "td3"}}, "the agent is named by"),
        ((), {"command": "sweep"}, "command must be one of apex, compose, got 'sweep'"),
        ((), {"sweep": {"agent.gama": [0.9]}}, "did you mean agent.gamma"),
    ],
)
def test_refuses(words, more, message):
    with pytest.raises(ValueError, match=message):
        experiment.load(words=words, **{"agent": "dqn", "environment": "CartPole-v1", **more})


def test_schema_accepts_what_loads_and_refuses_what_does_not():
    schema = experiment.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema).is_valid
    complete = configuration.to_mapping(tiny("replay.sampler=amper_fr").configuration)
    assert check(json.loads(json.dumps(complete)))
    for agent in layers.presets():
        for table in layers.preset(agent, "Breakout-MinAtar"):
            assert check(json.loads(json.dumps(table))), agent
    for bad in (
        {"agent": {"name": "dqn", "policy_delay": 2}},
        {"agent": {"name": "dqn", "hidden": "64"}},
        {"replay": {"sampler": "uniform", "alpha": 0.5}},
        {"training": {"steps": "many"}},
        {"training": {"stepps": 1}},
        {"trainin": {}},
    ):
        assert not check(bad), bad
    assert check({"training": {"steps": 1000, "period": "10%"}})
