"""Evaluation of a trained table, for `accel-rl evaluate`."""

from pathlib import Path

import typer

from accel_rl.cli import console
from accel_rl.cli.arguments import make_mdp

EPISODES = 100_000  # simulated by default


def evaluate_table(
    run: Path,
    env: str | None,
    epsilon: float,
    episodes: int | None,
    horizon: int | None,
    seed: int,
    json: bool,
) -> None:
    """Print the exact return of a table's policy, and a simulated one that checks it.

    Args:
      run: the run's folder, or its table file.
      env: environment to score in; the run's if None.
      epsilon: probability of a random action; 0 is greedy.
      episodes: number of simulated episodes, at least 2; `EPISODES` if None.
      horizon: steps after which episodes are truncated; the environment's limit, or 1,000, if None.
      seed: of the simulation.
      json: print JSON.

    Raises:
      typer.BadParameter: if there is no such table, or an argument does not match it.
    """
    import jax

    from accel_rl import envs, tabular
    from accel_rl.cli import table_folder
    from accel_rl.experiment import tabular_run

    episodes = EPISODES if episodes is None else episodes
    if episodes < 2:
        raise typer.BadParameter(
            "must be at least 2, for a standard error", param_hint="--episodes"
        )
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
