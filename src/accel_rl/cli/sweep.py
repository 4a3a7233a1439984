"""`accel-rl sweep`: trainings of an agent with every combination of some settings."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accel_rl.cli import console, runtime, train_agent
from accel_rl.cli.arguments import AsJson, Overwrite
from accel_rl.cli.train_agent import Config, Log, Sampler, Seed, Seeds, Steps

if TYPE_CHECKING:
    from accel_rl.experiment.assembly import Experiment

EXAMPLES = console.examples(
    "accel-rl sweep dqn CartPole-v1 agent.learning_rate=1e-4,3e-4,1e-3 --seeds 4",
    "accel-rl sweep td3 Pendulum-v1 agent.tau=0.005,0.02 agent.hidden=[64,64],[256,256] --json",
    "accel-rl sweep dqn Acrobot-v1 replay.sampler=uniform,prioritised,amper_fr --out runs/memories",
)


def sweep(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="As of train: dqn, td3, ...")],
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[ENV] section.name=VALUE,VALUE...",
            help="Settings, some of them with several values.",
        ),
    ],
    config: Config = None,
    replay: Sampler = None,
    steps: Steps = None,
    seeds: Seeds = None,
    seed: Seed = None,
    log: Log = None,
    out: Annotated[
        Path | None, typer.Option(help="The sweep's folder. Default: runs/, and its name.")
    ] = None,
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Train an agent with every combination of some settings, and say which is best.

    Hyper-parameters such as agent.learning_rate are mapped over together with the seeds, in one
    compiled program; settings that change the program, such as agent.hidden, one after the other.
    Combinations are compared by their seeds' inter-quartile mean of greedy episodes.
    """
    runtime.prepare_jax()
    from accel_rl.cli import clearing, training_output
    from accel_rl.experiment import sweep as sweeps
    from accel_rl.experiment import training
    from accel_rl.io.run_folder import check_free

    if ":" not in agent and agent.replace("_", "-") not in train_agent.AGENTS:
        raise train_agent.no_agent(agent)
    env, settings = (None, words) if "=" in words[0] else (words[0], words[1:])
    given = train_agent.options(replay=replay, steps=steps, seeds=seeds, seed=seed, log=log)

    def make(words: Sequence[str], swept: Mapping[str, Sequence[Any]]) -> "Experiment":
        return train_agent.assemble(agent, env, words, config, given, swept)

    with console.bad_input():
        groups = sweeps.plan(settings, make)
    directory = out or Path(f"{train_agent.default_directory(groups[0][1])}-sweep")
    with console.bad_input("--out"):
        check_free(directory, overwrite)
        clearing.clear(directory)
    command = console.command_line(context)
    with console.bad_input("--out", (training.FolderError,)):
        results = sweeps.run(
            directory, groups, command, bar=sys.stderr.isatty(), on_group=console.note
        )
    training_output.finish_sweep(directory, results, json)
