"""A small run, made once through the command itself."""

import json

import pytest
from commands import SMALL, TINY, as_json


@pytest.fixture(scope="session", autouse=True)
def assembled_once():
    """Commands with one configuration share a program, and so its compiled functions."""
    from accel_rl.experiment import assembly, configuration, trained

    made, make = {}, assembly.assemble

    def text(wanted):
        return json.dumps(configuration.to_mapping(wanted), sort_keys=True)

    def shared(wanted):
        if text(wanted) not in made:
            found = make(wanted)
            made[text(wanted)] = made[text(found.configuration)] = found
        return made[text(wanted)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "assemble", shared)
        patch.setattr(trained, "assemble", shared)
        yield


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "lake.npz"
    as_json("collect", "FrozenLake-v1", "--num", 4000, "--seed", 3, "--out", path)
    return path


@pytest.fixture(scope="session")
def run(dataset, tmp_path_factory):
    """The folder of a run, and what `train --json` printed."""
    path = tmp_path_factory.mktemp("run") / "lake"
    return path, as_json("train", dataset, *SMALL, "--out", path)


@pytest.fixture(scope="session")
def training(tmp_path_factory):
    """The folder of an agent's training, and what `train --json` printed."""
    path = tmp_path_factory.mktemp("training") / "cartpole"
    words = ("--replay", "uniform", "--log", "jsonl,csv", "--out", path)
    return path, as_json("train", "dqn", "CartPole-v1", *TINY, *words)


@pytest.fixture(scope="session")
def sweep(tmp_path_factory):
    """The folder of a sweep, and what it printed."""
    path = tmp_path_factory.mktemp("sweep") / "sweep"
    words = ("agent.learning_rate=2.5e-4,1e-2", "replay.sampler=uniform,amper-fr")
    return path, as_json("sweep", "dqn", "CartPole-v1", *TINY, "--out", path, *words)
