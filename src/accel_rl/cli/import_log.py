"""`accel-rl import`: a dataset from a log of the user's own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import (
    AsJson,
    Replace,
    check_dataset_file,
    make_mdp,
    refuse_options,
    summary,
)

if TYPE_CHECKING:
    from accel_rl.datasets import TabularDataset
    from accel_rl.types import MDP

EXAMPLES = console.examples(
    "accel-rl import own.csv --out own.npz",
    "accel-rl import own.csv --out own.npz --state s --next-state s2 --truncated timeout",
    "accel-rl import log.txt --out lake.npz --env FrozenLake-v1 --overwrite",
)

_COLUMNS = "Columns, by their names in the file"  # help panel


def _column(text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        rich_help_panel=_COLUMNS, metavar="NAME", help=text
    )
    return option


def import_log(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV whose first line names the columns, an .npz of arrays, or lines of state, "
            "action, reward and next state separated by blanks.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="The file to write, ending in .npz.")],
    overwrite: Replace = False,
    state: Annotated[str | None, _column("Whole numbers from 0. Default: state.")] = None,
    action: Annotated[str | None, _column("Whole numbers from 0. Default: action.")] = None,
    reward: Annotated[str | None, _column("Finite numbers. Default: reward.")] = None,
    next_state: Annotated[
        str | None,
        _column("Where an episode ends, the state it ended in. Default: next_state."),
    ] = None,
    terminated: Annotated[
        str | None,
        _column("0 or 1: the episode ended by itself. Default: terminated, or else done."),
    ] = None,
    truncated: Annotated[
        str | None,
        _column("0 or 1: a time limit or the like cut the episode. Default: truncated."),
    ] = None,
    discount: Annotated[
        str | None,
        _column("In place of terminated: 0 where it terminated, or else 1. Default: discount."),
    ] = None,
    next_action: Annotated[
        str | None,
        _column("Default: next_action, or else the action of the row below in the episode."),
    ] = None,
    episode_end: Annotated[
        Literal["terminated", "truncated"] | None,
        typer.Option(
            help="How episodes end, where no column says so; one goes on while a row's state is "
            "the next state of the row above."
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            help="The environment of the log, if it is one that this library knows (envs): gives "
            "its sizes, the ends of episodes where no column does, and where train scores."
        ),
    ] = None,
    num_states: Annotated[
        int | None, typer.Option(min=1, help="States. Default: the largest of the log, and one.")
    ] = None,
    num_actions: Annotated[
        int | None, typer.Option(min=1, help="Actions. Default: the largest of the log, and one.")
    ] = None,
    all_rows: Annotated[
        bool,
        typer.Option(
            "--all-rows",
            help="Keep rows whose next action is unknown, the last of truncated episodes; sarsa "
            "refuses them, all other rules do not need it.",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Make a dataset of a log of your own, for `train` and Python.

    Rows stand in the order in which they happened. What is not as it should be is told with its
    line, and nothing is written.
    """
    runtime.prepare_jax()
    from accel_rl import datasets

    with console.bad_input("--out"):
        check_dataset_file(out, overwrite)
    mdp = None if env is None else make_mdp(env, "--env")
    if mdp is not None:
        why = "comes from --env: give one of the two"
        refuse_options(why, num_states=num_states, num_actions=num_actions)
    wanted = {
        "state": state,
        "action": action,
        "reward": reward,
        "next_state": next_state,
        "terminated": terminated,
        "truncated": truncated,
        "discount": discount,
        "next_action": next_action,
    }
    sizes = (num_states, num_actions) if mdp is None else (mdp.num_states, mdp.num_actions)
    with console.bad_input("FILE"), console.progress(f"reading {file}"):
        dataset, names = _dataset(file, wanted, episode_end, mdp, env, sizes, not all_rows)
    with console.progress(f"writing {out}"):
        datasets.save(out, dataset)
    if names.get("terminated") == "done" and terminated is None:
        cuts = (
            f", unless {names['truncated']} is 1"
            if "truncated" in names
            else "; where it only marks cuts, give --truncated done"
        )
        console.note(f"{file}: column done is taken for terminated{cuts}")
    info = dataset.info
    figures = {
        "file": str(out),
        **summary(dataset),
        "num_states": info.num_states,
        "num_actions": info.num_actions,
        "dropped": info.dropped,
        "missing_next_action": info.missing_next_action,
    }
    if json:
        console.print_json(figures)
        return
    typer.echo(
        f"{out}: {figures['transitions']:,} transitions in {figures['episodes']:,} episodes, "
        f"{figures['terminated']:,} of them terminated; {info.num_states:,} states, "
        f"{info.num_actions:,} actions, {figures['reward_per_episode']:.3f} reward per episode"
    )
    if info.dropped:
        typer.echo(
            f"{info.dropped:,} rows left out, whose next action is not in the log (--all-rows "
            "keeps them)"
        )


def _dataset(
    file: Path,
    wanted: dict[str, str | None],
    episode_end: Literal["terminated", "truncated"] | None,
    mdp: "MDP | None",
    env: str | None,
    sizes: tuple[int | None, int | None],
    require_next_action: bool,
) -> "tuple[TabularDataset, dict[str, str]]":
    """Read a log as a dataset; return it with the names of its columns in the file."""
    import numpy as np

    from accel_rl import datasets, envs
    from accel_rl.cli import log_files
    from accel_rl.datasets.arrays import ENDS, RowError, assembled

    # Without --env, never use the name of a known environment: train would score in it.
    name = env or ("unnamed" if file.stem in envs.list_environments() else file.stem)
    policy = f"unknown, imported from {file.name}"
    if mdp is not None and episode_end is None and log_files.is_text(file):
        found = datasets.load_text(
            file, mdp=mdp, environment=name, require_next_action=require_next_action
        )
        return found, {}
    try:
        columns = log_files.read(file, wanted)
        arrays = columns.arrays
        done = wanted["terminated"] is None and columns.names.get("terminated") == log_files.DONE
        truncated = arrays.get("truncated")
        if done and truncated is not None and truncated.shape == arrays["terminated"].shape:
            # done means any end of an episode in some logs, a termination in others. A truncated
            # row is not a termination either way.
            arrays["terminated"] = np.where(truncated == 1, 0, arrays["terminated"])
        if not any(end in arrays for end in ENDS):
            if episode_end is None:
                raise datasets.DatasetError(
                    "nothing says where episodes end: name a column by --terminated, --truncated "
                    "or --discount, or give --episode-end terminated or truncated (for text, --env "
                    "may tell)"
                )
            arrays["truncated"] = np.zeros(len(arrays["state"]), bool)
            if episode_end == "terminated":
                breaks = arrays["next_state"][:-1] != arrays["state"][1:]
                arrays["terminated"] = np.append(breaks, False)
        return assembled(arrays, *sizes, name, policy, require_next_action), columns.names
    except (datasets.DatasetError, TypeError) as error:
        place = f"{columns.where(error.row)}: " if isinstance(error, RowError) else ""
        message = str(error).replace("require_next_action=False", "--all-rows")
        raise datasets.DatasetError(f"{file}: {place}{message}") from error
