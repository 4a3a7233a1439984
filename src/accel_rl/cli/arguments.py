"""Arguments that several commands share, and their resolution."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from accel_rl.cli.console import bad_input
from accel_rl.io.values import Json

if TYPE_CHECKING:
    from accel_rl.datasets import TabularDataset
    from accel_rl.types import MDP

# Names of the library, repeated so that --help does not import jax; a test compares them.
Rule = Literal["q_learning", "sarsa", "sarsa_epsilon_greedy", "expected_sarsa", "double_q_learning"]
Numerics = Literal["fp32", "int32_scaled", "int32_pow2"]
OrderName = Literal["SEQ", "STR", "RAN", "RAN_REPLACEMENT"]
Merge = Literal["visits", "mean", "visited", "damped"]
BackendName = Literal["auto", "jax", "cpu", "upmem"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything random.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Write into a folder that is not empty.")
]
Replace = Annotated[
    bool, typer.Option("--overwrite", help="Replace the file, if there is one already.")
]
Transitions = Annotated[int, typer.Option("--num", min=1, max=2**31 - 1, help="Transitions.")]


def make_mdp(name: str, argument: str) -> "MDP":
    """Make the tables of an environment; an unknown name is reported for `argument`."""
    from accel_rl import envs

    with bad_input(argument):
        return envs.make_mdp(name)


def refuse_options(reason: str, **options: object) -> None:
    """Refuse options that were given and are not for this kind of run, by name."""
    for name, value in options.items():
        if value is not None:
            raise typer.BadParameter(reason, param_hint=f"--{name.replace('_', '-')}")


def names_file(value: str) -> bool:
    """Return whether an argument for an environment or a file names a file."""
    return value.endswith((".npz", ".csv", ".tsv", ".txt")) or Path(value).is_file()


def check_file(path: Path) -> None:
    """Raise ValueError if a file cannot be written: its folder is absent, or it is a folder."""
    if path.is_dir():
        raise ValueError(f"{path} is a directory")
    if not path.parent.is_dir():
        raise ValueError(f"directory {path.parent} does not exist")


def check_dataset_file(path: Path, overwrite: bool) -> None:
    """Check, before any work, that a dataset's file can be written.

    Raises:
        ValueError: it does not end in .npz, its folder is absent, it is a folder itself, or it
            exists and `overwrite` is False.
    """
    check_file(path)
    if path.suffix != ".npz":
        raise ValueError(f"{path} must end in .npz, the format of datasets")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists; --overwrite replaces it")


def summary(dataset: "TabularDataset") -> dict[str, Json]:
    """Summarise a dataset: metadata, counts, and reward per episode."""
    import numpy as np

    rewards = np.asarray(dataset.transitions.reward, np.float64)
    episodes = int(np.asarray(dataset.episode)[-1]) + 1
    return {
        "environment": dataset.info.environment,
        "policy": dataset.info.policy,
        "seed": dataset.info.seed,
        "transitions": len(dataset),
        "episodes": episodes,
        "terminated": int(np.sum(np.asarray(dataset.transitions.discount) == 0)),
        "reward_per_episode": float(rewards.sum()) / episodes,
    }
