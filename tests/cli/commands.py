"""The command, called in this process."""

import json

from typer.testing import CliRunner

from accel_rl.cli.app import app

SMALL = ("--dpus", "8", "--passes", "6", "--tasklets", "4")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    """The standard output of a command that must succeed."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def as_json(*arguments):
    return json.loads(succeed(*arguments, "--json"))
