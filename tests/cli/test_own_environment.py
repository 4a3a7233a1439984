"""An environment of one's own on the command line, from a module in the present folder."""

import json
import subprocess
import sys

import pytest
from commands import TINY, invoke

CHAIN = """
import numpy as np

from accel_rl import envs


def chain():
    def outcomes(state, action):
        after = min(max(state + (1 if action == 1 else -1), 0), 5)
        return [(1.0, after, -1.0, after == 5)]

    return envs.build_mdp(outcomes, 2, np.arange(6) == 0, 30)


envs.register("Chain", chain)
"""

# As the console script starts: Python puts the script's folder on its path, not the present one.
SCRIPT = "import sys; sys.path.pop(0); from accel_rl.cli import main; main()"


@pytest.fixture
def command(tmp_path):
    (tmp_path / "chain_of_a_test.py").write_text(CHAIN)

    def run(*words):
        line = [sys.executable, "-c", SCRIPT, *(str(word) for word in words)]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_what_no_module_registers_is_told_in_a_line(command):
    result = command("collect", "chain_of_a_test:Chian", "--num", 10, "--out", "log.npz")
    assert result.returncode == 2
    assert "registers no 'Chian'; did you mean Chain?" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_module_that_is_absent_is_told_in_a_line(tmp_path):
    words = ("--num", 10, "--out", tmp_path / "log.npz")
    result = invoke("collect", "no_such_module_of_a_test:Chain", *words)
    assert result.exit_code == 2
    assert "it is neither installed nor on Python's path" in result.stderr
    assert result.stderr.count("\n") == 1


AGENT = """
from accel_rl import agents


def small(observation_space, action_space, *, width: int = 4):
    '''Make a small DQN.

    Args:
      width: of its layer.
    '''
    return agents.dqn(observation_space, action_space, hidden=(width,))
"""


@pytest.mark.long  # processes that compile
def test_an_agent_of_ones_own_trains_and_plays(command, tmp_path):
    (tmp_path / "own_agent_of_a_test.py").write_text(AGENT)
    name = "own_agent_of_a_test:small"
    tiny = [word for word in TINY if not word.startswith("agent.hidden")]
    trained = command("train", name, "chain_of_a_test:Chain", *tiny, "agent.width=5", "--out", "r")
    assert trained.returncode == 0, trained.stderr
    config = json.loads((tmp_path / "r" / "config.json").read_text())
    assert (config["agent"]["name"], config["agent"]["width"]) == (name, 5)
    played = command("play", "r", "--json")
    assert played.returncode == 0, played.stderr
    shown = command("train", name, "CartPole-v1", "--help")
    assert "agent.width" in shown.stdout
    for words, says in (
        ((name, "CartPole-v1", "agent.widht=5"), "did you mean agent.width?"),
        (("own_agent_of_a_test:smal", "CartPole-v1"), "is no function of its module"),
        (("no_such_module_of_a_test:x", "CartPole-v1"), "neither installed nor on Python's path"),
    ):
        refused = command("train", *words)
        assert refused.returncode == 2
        assert says in refused.stderr
        assert refused.stderr.count("\n") == 1


@pytest.mark.long  # processes that compile
def test_a_training_takes_a_module_s_environment(command, tmp_path):
    trained = command("train", "dqn", "chain_of_a_test:Chain", *TINY)
    assert trained.returncode == 0, trained.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name == "dqn-chain_of_a_test_Chain-uniform-400steps-2seeds-seed0"
    config = json.loads((run / "config.json").read_text())
    assert config["environment"]["name"] == "chain_of_a_test:Chain"
    resumed = command("resume", run, "--steps", 480, "--json")
    assert json.loads(resumed.stdout)["steps"] == 480, resumed.stderr
    scored = command("evaluate", run, "--episodes", 2, "--json")
    assert json.loads(scored.stdout)["environment"] == "chain_of_a_test:Chain", scored.stderr


@pytest.mark.long  # processes that compile
def test_a_table_takes_a_module_s_environment(command, tmp_path):
    name = "chain_of_a_test:Chain"
    assert command("collect", name, "--num", 2000, "--out", "log.npz").returncode == 0
    words = ("--dpus", 4, "--passes", 6, "--tasklets", 2, "--out", "run", "--json")
    trained = json.loads(command("train", "log.npz", *words).stdout)
    assert trained["environment"] == name
    scored = command("evaluate", "run", "--json")
    assert json.loads(scored.stdout)["environment"] == name, scored.stderr
    assert command("plot", "run", "--out", "pictures").returncode == 0
    assert {each.name for each in (tmp_path / "pictures").iterdir()} == {"curve.png", "time.png"}
