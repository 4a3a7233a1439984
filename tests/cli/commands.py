"""The command, called in this process."""

import json

from typer.testing import CliRunner

from accel_rl.cli.app import app

SMALL = ("--dpus", "8", "--passes", "6", "--tasklets", "4")

# A DQN of the smallest size, two seeds of 400 steps, in some of the options' order.
TINY = (
    *("--steps", "400", "--seeds", "2", "schedule.num_envs=4", "schedule.learning_starts=40"),
    *("replay.capacity=400", "replay.batch_size=8", "agent.hidden=[8]", "training.period=80"),
    *("evaluation.every=160", "evaluation.episodes=4", "evaluation.max_steps=50"),
)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    """The standard output of a command that must succeed."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(*arguments):
    return json.loads(succeed(*arguments, "--json"))
