"""Loading of experiments from files and settings."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from accel_rl.experiment import configuration, layers, training
from accel_rl.experiment.assembly import Experiment, assemble
from accel_rl.io.values import Json


def load(
    file: str | Path | None = None,
    settings: Mapping[str, Json] | None = None,
    *,
    agent: str | None = None,
    environment: str | None = None,
    words: Sequence[str] = (),
    sweep: Mapping[str, Sequence[float]] | None = None,
    command: layers.Command | None = None,
) -> Experiment:
    """Assemble an experiment from presets, a file, settings and words, each over those before.

    Args:
      file: TOML, or a run's `config.json`; see docs/configuration.md.
      settings: values by dotted name, such as {"agent.learning_rate": 1e-3}.
      agent: name of the agent, such as "dqn"; the file's if None.
      environment: name of the environment, such as "CartPole-v1"; the file's if None.
      words: settings as on the command line, such as "agent.learning_rate=1e-3".
      sweep: values of hyper-parameters by dotted name; all combinations train at once.
      command: "apex" or "compose", for its presets over those of the agent.

    Raises:
      ValueError: if a setting is unknown, of the wrong type or out of range, or no agent or
        environment is named.
      OSError: if the file cannot be read.
    """
    spelt = None if agent is None else agent.replace("-", "_")
    path = None if file is None else Path(file)
    tables = layers.resolve(spelt, environment, path, settings or {}, words, command)
    if sweep:
        swept = {name: list(each) for name, each in sweep.items()}
        tables = layers.shares({**tables, configuration.SWEEP: swept})
    experiment = assemble(configuration.from_mapping(tables))
    if command is not None and experiment.host is not None:
        name = experiment.configuration.environment.name
        raise ValueError(
            f"{command} takes environments that are compiled, and {name} steps on the host: "
            "accel-rl train trains in it"
        )
    training.check(experiment)
    return experiment
