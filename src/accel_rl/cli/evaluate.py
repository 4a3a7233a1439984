"""`accel-rl evaluate`: scores of agents and of tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson, Seed, make_mdp, refuse_options
from accel_rl.io.values import Json

EXAMPLES = console.examples(
    "accel-rl evaluate runs/cartpole --checkpoint best --episodes 1000",
    "accel-rl evaluate runs/lake",
    "accel-rl evaluate runs/taxi/table.npz --env Taxi-v3 --episodes 1000000 --json",
    "accel-rl evaluate runs/lake --epsilon 0.1",
)

_AGENTS, _TABLES = "Agents", "Tables"  # help panels
_EPISODES = 100_000  # of a table, simulated by default


def evaluate(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN_DIR|TABLE.npz", help="The folder of a run or a sweep, or a table.npz."
        ),
    ],
    episodes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10_000_000,
            help="Episodes to play. Default: as configured for each seed of an agent, "
            f"{_EPISODES:,} for a table.",
        ),
    ] = None,
    checkpoint: Annotated[
        Literal["last", "best"] | None,
        typer.Option(
            rich_help_panel=_AGENTS,
            help="last, the default, or the one that was evaluated best while training.",
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(rich_help_panel=_TABLES, help="Environment to score in; default: the run's."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=_TABLES, min=0, max=1, help="Share of random actions; 0 is greedy."
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_TABLES,
            min=1,
            max=10**6,
            help="Steps that cut an episode; default: the environment's, or 1,000.",
        ),
    ] = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Score what was learned: an agent by greedy episodes, a table exactly and by simulation."""
    runtime.prepare_jax()
    if not _is_agents(run):
        refuse_options("is of agents, this is a table", checkpoint=checkpoint)
        _evaluate_table(run, env, epsilon or 0.0, episodes or _EPISODES, horizon, seed, json)
        return
    refuse_options(
        "is of tables, this run is an agent's", env=env, epsilon=epsilon, horizon=horizon
    )
    from accel_rl.cli import training_output
    from accel_rl.experiment import scoring

    runtime.import_gymnax()

    with console.bad_input("RUN_DIR"), console.progress(f"playing {run}"):
        figures = scoring.score(run, checkpoint or "last", episodes, seed)
    if json:
        console.print_json({"run": str(run), **figures})
    else:
        training_output.print_scores(figures)
        path = figures["checkpoint"] or f"the {checkpoint or 'last'} of each group in {run}"
        typer.echo(f"checkpoint: {path}")
    _tell(run, figures["unfinished"])


def _tell(run: Path, unfinished: Sequence[Mapping[str, Json]]) -> None:
    """Note trainings that have not ended, and how to resume them."""
    from accel_rl.experiment import words

    for each in unfinished:
        settings = words.assignments(each["settings"])
        of = f"{each['run']} ({settings})" if settings else each["run"]
        left = "" if each["scored"] else "; it has no such checkpoint and is not in the table"
        console.note(f"accel-rl: {of} has {each['steps']:,} of {each['of']:,} steps{left}")
    if unfinished:
        console.note(f"accel-rl: not all has ended: accel-rl resume {run}")


def _is_agents(run: Path) -> bool:
    if not run.is_dir():
        return False
    from accel_rl.io.run_folder import kind_of

    with console.bad_input("RUN_DIR"):
        return kind_of(run) in ("training", "sweep")


def _evaluate_table(
    run: Path,
    env: str | None,
    epsilon: float,
    episodes: int,
    horizon: int | None,
    seed: int,
    json: bool,
) -> None:
    """Print the exact return of a table's policy, and a simulated one that checks it."""
    import jax

    from accel_rl import envs, tabular
    from accel_rl.cli import table_folder
    from accel_rl.experiment import tabular_run

    with console.bad_input("RUN_DIR|TABLE.npz"):
        table = table_folder.load_table(run)
    name = env or table.environment
    if name is None:
        raise typer.BadParameter(
            "the table is of no environment that is known here; give one of those that envs lists "
            "to score in",
            param_hint="--env",
        )
    mdp = make_mdp(name, "--env")
    steps = horizon or tabular_run.horizon_of(mdp)
    with console.bad_input("--env"), console.progress(f"scoring in {name}"):
        values = jax.numpy.asarray(table.values)
        policy = (
            tabular.greedy_policy(values)
            if epsilon == 0
            else tabular.epsilon_greedy(values, epsilon)
        )
        exact = float(tabular.episode_return(mdp, policy, steps))
        optimal = float(tabular.optimal_return(mdp, steps))
    sampler = envs.make_sampler(mdp)
    with console.bad_input("--episodes"), console.progress(f"playing in {name}"):
        mean, error = tabular.monte_carlo_return(
            jax.tree_util.Partial(envs.dynamics.reset, sampler),
            jax.tree_util.Partial(envs.dynamics.step, sampler),
            policy,
            jax.random.key(seed),
            episodes,
            steps,
        )
    figures = {
        "environment": name,
        "policy": "greedy" if epsilon == 0 else f"epsilon-greedy, epsilon {epsilon:g}",
        "horizon": steps,
        "episode_return": exact,
        "optimal_return": optimal,
        "monte_carlo_return": float(mean),
        "standard_error": float(error),
        "episodes": episodes,
    }
    if json:
        console.print_json(figures)
        return
    rows = (
        ("exact", f"{exact:.4f}"),
        (f"simulated, {episodes:,} episodes", f"{float(mean):.4f} ± {float(error):.4f}"),
        ("best possible", f"{optimal:.4f}"),
    )
    title = f"Return per episode of at most {steps} steps: {figures['policy']} policy in {name}"
    console.print_table(title, ("", "return"), rows)
