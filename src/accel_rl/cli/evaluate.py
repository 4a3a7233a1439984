"""`accel-rl evaluate`: what a trained table is worth."""

from pathlib import Path
from typing import Annotated

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import Json, Seed, make_mdp

EXAMPLES = console.examples(
    "accel-rl evaluate runs/lake",
    "accel-rl evaluate runs/taxi/table.npz --env Taxi-v3 --episodes 1000000 --json",
    "accel-rl evaluate runs/lake --epsilon 0.1",
)


def evaluate(
    run: Annotated[
        Path, typer.Argument(metavar="RUN_DIR|TABLE.npz", help="A run's folder, or its table.npz.")
    ],
    env: Annotated[
        str | None, typer.Option(help="Environment to score in; default: the run's.")
    ] = None,
    epsilon: Annotated[
        float, typer.Option(min=0, max=1, help="Share of random actions; 0 is greedy.")
    ] = 0.0,
    episodes: Annotated[
        int, typer.Option(min=2, max=10_000_000, help="Episodes to simulate.")
    ] = 100_000,
    horizon: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10**6,
            help="Steps that cut an episode; default: the environment's, or 1,000.",
        ),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Score a table's greedy policy: exactly, and by simulation as a check on the exact value."""
    runtime.prepare_jax()
    import jax

    from accel_rl import envs, tabular
    from accel_rl.cli import folders, runs

    with console.bad_input("RUN_DIR|TABLE.npz"):
        table = folders.load_table(run)
    name = env or table.environment
    if name is None:
        raise typer.BadParameter("the table does not say its environment", param_hint="--env")
    mdp = make_mdp(name, "--env")
    steps = horizon or runs.horizon_of(mdp)
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
