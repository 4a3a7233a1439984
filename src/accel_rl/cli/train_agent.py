"""`accel-rl train AGENT ENV`: an agent trained online, on many seeds at once."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from accel_rl.arguments import meant
from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson, Overwrite
from accel_rl.io.values import Json

if TYPE_CHECKING:
    from accel_rl.experiment.assembly import Experiment

# Names of the library, repeated so that --help does not import jax; a test compares them.
AGENTS = {
    "dqn": "DQN: double, dueling, prioritised; for a finite number of actions",
    "rainbow": "Rainbow: DQN that is double, dueling, distributional, noisy, n-step, prioritised",
    "ddpg": "DDPG, for bounded continuous actions",
    "td3": "TD3, for bounded continuous actions",
    "sac": "SAC, for bounded continuous actions",
    "q-learning": "Q-learning in a table, on-line",
    "sarsa": "SARSA in a table, on-line",
    "expected-sarsa": "Expected SARSA in a table, on-line",
    "double-q-learning": "Double Q-learning in two tables, on-line",
}
SAMPLERS = ("uniform", "prioritised", "rank-based", "amper-fr", "amper-k", "newest")
_ENVIRONMENTS = {
    **dict.fromkeys(("ddpg", "td3", "sac"), "Pendulum-v1"),
    **dict.fromkeys(("q-learning", "sarsa"), "FrozenLake-v1"),
    **dict.fromkeys(("expected-sarsa", "double-q-learning"), "Taxi-v3"),
}

Env = Annotated[
    str | None,
    typer.Argument(
        metavar="ENV", help="An environment's name; may be left out if --config says it."
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="section.name=value",
        help="Any setting: agent.learning_rate=1e-3 environment.time_limit=200. They come last: "
        "over options, over --config, over presets, over defaults.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Settings: a .toml file, or the config.json of another run."),
]
Sampler = Annotated[
    str | None,
    typer.Option(
        "--replay", metavar="SAMPLER", help=f"Sampler of the replay buffer: {', '.join(SAMPLERS)}."
    ),
]
Steps = Annotated[str | None, typer.Option(metavar="N", help="Environment steps, for each seed.")]
Seeds = Annotated[int | None, typer.Option(metavar="N", help="Independent trainings at once.")]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Seed of everything random.")]
Log = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Where metrics go: of console, jsonl, csv, tensorboard, wandb; comma-separated.",
    ),
]
Host = Annotated[
    bool,
    typer.Option(
        "--host",
        help="Step Gymnasium's environment on the host, also where a compiled one has its name.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="The run's folder. Default: runs/, and its name.")]


class AgentCommand(typer.core.TyperCommand):
    """Command whose help ends with the settings of its agent."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, then the agent's settings, for which the library is imported."""
        super().format_help(ctx, formatter)
        runtime.prepare_jax()
        from accel_rl.experiment import catalogue, words

        name = str(self.name).replace("-", "_")
        rows = [
            (f"agent.{each}", words.text(setting.default), setting.meaning)
            for each, setting in catalogue.describe_agent(name).items()
        ]
        console.print_table(
            "Settings of the agent, beside those of docs/configuration.md",
            ("name", "default", "meaning"),
            rows,
            numbers_from=3,
        )


def command(agent: str) -> Callable[..., None]:
    """Make the function of `accel-rl train AGENT`."""

    def train_agent(
        context: typer.Context,
        env: Env = None,
        overrides: Overrides = None,
        config: Config = None,
        replay: Sampler = None,
        steps: Steps = None,
        seeds: Seeds = None,
        seed: Seed = None,
        log: Log = None,
        host: Host = False,
        out: Out = None,
        overwrite: Overwrite = False,
        show: Annotated[
            bool, typer.Option("--show", help="Print the whole configuration, and train nothing.")
        ] = False,
        json: AsJson = False,
    ) -> None:
        runtime.prepare_jax()
        from accel_rl.cli import clearing, training_output
        from accel_rl.experiment import configuration, layers, training, words
        from accel_rl.io.run_folder import check_free

        given = options(
            replay=replay, steps=steps, seeds=seeds, seed=seed, log=log, host=host or None
        )
        experiment = assemble(agent, env, overrides or (), config, given)
        if show:
            tables = configuration.to_mapping(experiment.configuration)
            console.print_json(tables)
            same = words.assignments(layers.presets_in(tables))
            console.note(f"accel-rl: as the presets have it: {same or 'nothing'}")
            return
        directory = out or default_directory(experiment)
        with console.bad_input("--out"):
            check_free(directory, overwrite)
            clearing.clear(directory)
        with console.bad_input("--out", (training.FolderError,)):
            line, shown = console.command_line(context), sys.stderr.isatty()
            _, results = training.run(directory, experiment, line, resume=False, bar=shown)
        training_output.finish_training(directory, results, json)

    train_agent.__doc__ = f"""Train {AGENTS.get(agent, agent)}.

    Settings come from presets for the agent and the environment, from --config, from options and
    from words like agent.gamma=0.98, each over those before. The run's folder holds them all.
    """
    return train_agent


def no_agent(name: str) -> typer.BadParameter:
    """Return the error for a word that is not an agent's name."""
    return typer.BadParameter(
        f"no agent is named {name!r}; {meant(name, AGENTS)}", param_hint="AGENT"
    )


def epilog(agent: str) -> str:
    """Return the examples of an agent's help."""
    environment = _ENVIRONMENTS.get(agent, "CartPole-v1")
    return console.examples(
        f"accel-rl train {agent} {environment} --seeds 4 --out runs/{agent}",
        f"accel-rl train {agent} {environment} --steps 20000 agent.gamma=0.95 --json",
        f"accel-rl train {agent} --config runs/{agent}/config.json --seed 1",
        f"accel-rl train {agent} {environment} --show",
    )


def options(
    *,
    replay: str | None,
    steps: str | None,
    seeds: int | None,
    seed: int | None,
    log: str | None,
    host: bool | None = None,
) -> dict[str, Json]:
    """Return the options that were given, by dotted names of their settings."""
    from accel_rl.experiment import words

    given = {
        "replay.sampler": replay,
        "training.steps": None if steps is None else words.parse(steps),
        "training.seeds": seeds,
        "training.seed": seed,
        "environment.host": host,
        "training.log": None if log is None else [each.strip() for each in log.split(",")],
    }
    return {name: value for name, value in given.items() if value is not None}


def assemble(
    agent: str,
    env: str | None,
    overrides: Sequence[str],
    config: Path | None,
    given: Mapping[str, Json],
    sweep: Mapping[str, Sequence[float]] | None = None,
) -> "Experiment":
    """Assemble and check the training that a command describes."""
    from accel_rl import experiment

    if env is not None and "=" in env:  # ENV was left out
        overrides, env = (env, *overrides), None
    runtime.import_gymnax()
    with console.bad_input():
        return experiment.load(
            config, given, agent=agent, environment=env, words=overrides, sweep=sweep
        )


def default_directory(experiment: "Experiment") -> Path:
    """Return the default folder: `runs/` and a name made of the main settings."""
    from accel_rl.io.run_folder import part_of_a_path

    complete = experiment.configuration
    parts = (
        part_of_a_path(complete.agent.name),
        part_of_a_path(complete.environment.name),
        complete.replay.sampler,
        f"{complete.training.steps}steps",
        f"{complete.training.seeds}seeds",
        f"seed{complete.training.seed}",
    )
    return Path("runs") / "-".join(parts)
