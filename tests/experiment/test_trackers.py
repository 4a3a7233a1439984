"""Trackers of a training's folder."""

import sys
import types

import pytest

from accel_rl import experiment
from accel_rl.experiment import configuration, folder


def test_weights_and_biases_gets_the_configuration_and_keeps_one_id(monkeypatch, tmp_path):
    started = []
    fake = types.ModuleType("wandb")

    def init(**given):
        started.append(given)
        return types.SimpleNamespace(step=0, log=lambda *row, **step: None, finish=lambda: None)

    fake.init = init
    monkeypatch.setitem(sys.modules, "wandb", fake)
    settings = {"training.log": ["wandb"]}
    made = experiment.load(agent="dqn", environment="CartPole-v1", settings=settings)
    complete = made.configuration
    for rows in (None, []):
        (logger,) = folder.loggers(tmp_path, complete, bar=False)
        logger.begin(rows)
        logger.close()
    first, again = started
    assert first["id"] == again["id"]
    assert (first["resume"], again["resume"]) == ("never", "allow")
    assert (first["project"], first["name"]) == ("accel-rl", tmp_path.name)
    assert first["config"] == configuration.to_mapping(complete)


def test_wandb_that_is_absent_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    settings = {"training.log": ["wandb"]}
    with pytest.raises(ValueError, match=r"pip install 'accel-rl\[wandb\]'"):
        experiment.load(agent="dqn", environment="CartPole-v1", settings=settings)
