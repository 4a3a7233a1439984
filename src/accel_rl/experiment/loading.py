"""Loading of experiments from files and words."""

from pathlib import Path

from accel_rl.experiment import configuration, layers, training
from accel_rl.experiment.assembly import Experiment, assemble


def load(
    file: str | Path | None = None,
    *words: str,
    agent: str | None = None,
    environment: str | None = None,
) -> Experiment:
    """Assemble an experiment from presets, a file and words, later ones over earlier ones.

    Args:
      file: TOML, or a run's `config.json`; see docs/configuration.md.
      *words: settings such as "agent.learning_rate=1e-3".
      agent: name of the agent, such as "dqn"; the file's if None.
      environment: name of the environment, such as "CartPole-v1"; the file's if None.

    Raises:
      ValueError: if a setting is unknown, of the wrong type or out of range, or no agent or
        environment is named.
      OSError: if the file cannot be read.
    """
    spelt = None if agent is None else agent.replace("-", "_")
    path = None if file is None else Path(file)
    tables = layers.resolve(spelt, environment, path, {}, words)
    experiment = assemble(configuration.from_mapping(tables))
    training.check(experiment)
    return experiment
