"""`accel-rl collect`: a dataset of logged transitions in a tabular environment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import (
    AsJson,
    Replace,
    Seed,
    Transitions,
    check_dataset_file,
    make_mdp,
    summary,
)

if TYPE_CHECKING:
    from accel_rl.datasets import Policy
    from accel_rl.types import MDP

EXAMPLES = console.examples(
    "accel-rl collect FrozenLake-v1 --num 1000000 --out lake.npz",
    "accel-rl collect Taxi-v3 --policy epsilon-greedy --epsilon 0.3 --out taxi.npz --json",
    "accel-rl collect Taxi-v3 --policy runs/taxi --out again.npz",
)

_PLANNING_GAMMA = 0.95  # discount of value iteration for --policy epsilon-greedy


def collect(
    env: Annotated[str, typer.Argument(metavar="ENV", help="A tabular environment's name.")],
    out: Annotated[Path, typer.Option(help="The file to write, ending in .npz.")],
    overwrite: Replace = False,
    num: Transitions = 1_000_000,
    policy: Annotated[
        str,
        typer.Option(
            metavar="random|epsilon-greedy|FILE",
            help="random; epsilon-greedy about an optimal policy; or about the values in a "
            "run's folder or table.npz.",
        ),
    ] = "random",
    epsilon: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of random actions, unless the policy is random."),
    ] = 0.1,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Collect transitions under a fixed behaviour policy."""
    runtime.prepare_jax()
    from accel_rl import datasets

    mdp = make_mdp(env, "ENV")
    with console.bad_input("--out"):
        check_dataset_file(out, overwrite)
    behaviour = _policy(policy, mdp, epsilon)
    with console.progress(f"collecting {num:,} transitions of {env}"):
        with console.bad_input():
            dataset = datasets.collect(mdp, behaviour, num, seed=seed, environment=env)
        datasets.save(out, dataset)
    figures = {"file": str(out), **summary(dataset)}
    if json:
        console.print_json(figures)
    else:
        typer.echo(
            f"{out}: {figures['transitions']:,} transitions in {figures['episodes']:,} episodes "
            f"of {env}, {figures['policy']} policy, seed {seed}, "
            f"{figures['reward_per_episode']:.3f} reward per episode"
        )


def _policy(name: str, mdp: "MDP", epsilon: float) -> "Policy | str":
    from accel_rl import datasets, tabular
    from accel_rl.cli import table_folder

    if name == "random":
        return name
    values: Any
    if name == "epsilon-greedy":
        _, values = tabular.value_iteration(mdp, _PLANNING_GAMMA)
    else:
        with console.bad_input("--policy"):
            values = table_folder.load_table(Path(name)).values
            if values.shape != (mdp.num_states, mdp.num_actions):
                raise ValueError(
                    f"{name} holds values of shape {values.shape}, the environment has "
                    f"{mdp.num_states} states and {mdp.num_actions} actions"
                )
    with console.bad_input("--epsilon"):
        return datasets.epsilon_greedy_policy(values, epsilon)
