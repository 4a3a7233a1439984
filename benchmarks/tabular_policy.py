"""Time to the final policy: every way from one log to the policy that its MDP has.

The final policy is that of value iteration on the MDP that the log's counts estimate. A system has
reached it after the first pass from which on the greedy policy's exact return stays within
TOLERANCE of that policy's. Times are wall time of all that a system does with the log, from its
columns to its values: partition, loading, passes and merges; compilation is not timed.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from common import Report
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from tabular_baselines import Baselines
from tabular_systems import Log, Problem

from accel_rl import native, pim, tabular
from accel_rl.datasets import TabularDataset
from accel_rl.experiment.tabular_run import TabularSettings, horizon_of
from accel_rl.io.machine import core_count
from accel_rl.pim import modelled
from accel_rl.plot import COLORS
from accel_rl.report.results import Claim
from accel_rl.types import Array

NUM_DPUS = 2_000
NUM_ROWS = 2**20
MOST_PASSES = 60
TOLERANCE = 0.01  # of the final policy's return
GAMMA, ALPHA = 0.95, 0.1
SECONDS, PASSES = "time to the final policy", "passes to the final policy"
FITTED = "fit_mdp and value iteration"
OURS = {"measured": "accel_rl cpu, by owner", "modelled": f"{NUM_DPUS:,} DPUs, modelled, by owner"}


def policy_case(environment: str) -> str:
    """Return the case's name in records."""
    return f"{environment}, to the final policy"


class Goal:
    """Return that a system must reach, and its exact returns."""

    def __init__(self, log: Log) -> None:
        """Fit the MDP of the log, and solve it."""
        horizon = horizon_of(log.mdp)
        self.returns = jax.jit(
            lambda values: tabular.episode_return(log.mdp, tabular.greedy_policy(values), horizon)
        )
        self._shape = log.mdp.num_states, log.mdp.num_actions
        self.solve = lambda: _solve(log)
        self.final = float(self.returns(jax.block_until_ready(self.solve())))

    def of_table(self, table: np.ndarray) -> float:
        """Return the exact return of the greedy policy of a table [S * A]."""
        return float(self.returns(jnp.asarray(table.reshape(self._shape))))

    def passes(self, returns: Sequence[float] | np.ndarray) -> int | None:
        """Return the passes after which returns stay at the goal; None if they do not."""
        near = np.asarray(returns) >= self.final - TOLERANCE * abs(self.final)
        if not near[-1]:
            return None
        return int(np.max(np.flatnonzero(~near), initial=-1)) + 2


def _solve(log: Log) -> Array:
    mdp = tabular.fit_mdp(log.transitions, log.mdp.num_states, log.mdp.num_actions)
    return tabular.value_iteration(mdp, GAMMA)[1]


def time_to_policy(
    report: Report, log: Log, loops: Baselines | None, dataset: TabularDataset, rounds: int
) -> None:
    """Record the seconds and the passes of each system; seconds are absent if it never arrives."""
    case, goal = policy_case(log.environment), Goal(log)
    report.add(case, FITTED, "return", "", [goal.final])

    def record(system: str, passes: int | None, run: Callable[[int], Any]) -> None:
        if passes is None:
            report.add(case, system, f"{PASSES} (0: more than {MOST_PASSES})", "", [0])
            return
        report.add(case, system, PASSES, "", [passes])
        run(passes)
        report.add(case, system, SECONDS, "s", [_seconds(run, passes) for _ in range(rounds)])

    report.add(case, FITTED, SECONDS, "s", [_seconds(goal.solve) for _ in range(rounds)])
    if loops is not None:
        for name, system in _loops(log, loops).items():
            record(name, goal.passes(_loop_returns(system, goal)), system)
    for by in ("time", "owner"):
        for backend in ("jax", "cpu") if native.why_absent() is None else ("jax",):
            train = _training(log, by, backend)
            passes = goal.passes(np.asarray(train(MOST_PASSES, probe=goal.returns).history))
            record(f"accel_rl {backend}, by {by}", passes, train)
        if passes is not None:
            system = f"{NUM_DPUS:,} DPUs, modelled, by {by}"
            report.add(case, system, PASSES, "", [passes])
            report.add(case, system, SECONDS, "s", [_modelled(dataset, by, passes)])


def policy_claims(report: Report, environments: Sequence[str]) -> None:
    """Claim that by owner is at the policy no later than each other system that gets there."""
    for environment in environments:
        found = [
            record
            for record in report.records
            if record.case == policy_case(environment) and record.metric == SECONDS
        ]
        for basis, system in OURS.items():
            ours = report.find(policy_case(environment), system, SECONDS)
            for rival in found:
                if ours is None or rival.system == system or rival.basis != basis:
                    continue
                text = f"{system}, {environment}: times as soon at the policy as {rival.system}"
                value = rival.value / ours.value
                report.claims.append(
                    Claim(text, value, 1.0, value >= 1.0, ours=ours.place, rival=rival.place)
                )


def _seconds(run: Callable[..., Any], *args: Any) -> float:
    start = time.perf_counter()
    jax.block_until_ready(run(*args))
    return time.perf_counter() - start


def _loops(log: Log, loops: Baselines) -> dict[str, Callable[[int], Any]]:
    """Return C on one table, and on a table for each thread, as functions of the passes."""
    count = core_count()

    def encoded() -> tuple[Problem, np.ndarray]:
        problem = Problem(log, len(log.transitions.state), 1, "fp32", 1)
        return problem, np.asarray(problem.words)

    def sequential(passes: int, each: Callable[[np.ndarray], object] = lambda table: None) -> None:
        problem, rows = encoded()
        table, rates = problem.tables(1), problem.rates(np.asarray([ALPHA], np.float32))
        for _ in range(passes):
            loops.sequential(rows, problem.lengths, table, np.asarray(rates.alpha), GAMMA)
            each(table[0, 0])

    def threads(passes: int, each: Callable[[np.ndarray], object] = lambda table: None) -> None:
        problem, rows = encoded()
        table = problem.tables(1)[0, 0]
        for _ in range(passes):
            loops.private_tables(rows[0], table, ALPHA, GAMMA, count)
            each(table)

    return {"C sequential": sequential, f"C {count} threads, private tables": threads}


def _loop_returns(run: Callable[..., Any], goal: Goal) -> list[float]:
    returns: list[float] = []
    run(MOST_PASSES, lambda table: returns.append(goal.of_table(table)))
    return returns


def _training(log: Log, by: str, backend: str) -> Callable[..., pim.TrainResult]:
    """Return a training from the log's columns on, as a function of the passes."""

    def train(passes: int, probe: Callable[[Array], Array] | None = None) -> pim.TrainResult:
        chunks = pim.partition(
            log.transitions, NUM_DPUS, log.mdp.num_states, log.mdp.num_actions, by=by
        )
        return pim.train(
            chunks,
            tabular.Hyperparameters(jnp.float32(ALPHA), jnp.float32(GAMMA)),
            rule=tabular.q_learning(),
            schedule=pim.MergeSchedule(passes),
            backend=backend,
            probe=probe,
        )

    return train


def _modelled(dataset: TabularDataset, by: str, passes: int) -> float:
    """Return modelled seconds of all parts, and of the log's sort by owner."""
    kernel = TabularSettings(by=by, dpus=NUM_DPUS, passes=passes).kernel
    machine = pim.load_machine()
    run = modelled.workload(machine, modelled.load_of(dataset), kernel, NUM_DPUS)
    seconds = pim.cost.modelled_seconds(machine, run)
    return seconds.total + seconds.sort


def draw(report: Report, path: Path, environments: Sequence[str]) -> None:
    """Draw the seconds of all systems, one panel for each environment, as PNG."""
    with matplotlib.rc_context({"font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(6 * len(environments), 3.6), layout="constrained")
        for axes, name in zip(figure.subplots(1, len(environments)), environments, strict=True):
            _bars(axes, report, policy_case(name))
            axes.set_title(name)
        figure.suptitle(
            f"From {NUM_ROWS:,} rows of a random policy to the final policy; "
            f"measured on {core_count()} cores (blue), modelled (green)"
        )
        figure.savefig(path, dpi=150, format="png")


def _bars(axes: Axes, report: Report, case: str) -> None:
    found = [r for r in report.records if r.case == case and r.metric == SECONDS]
    found.sort(key=lambda record: record.value)
    passes = {
        r.system: int(r.value) for r in report.records if r.case == case and PASSES in r.metric
    }
    never = [system for system, count in passes.items() if count == 0]
    labels = [r.system for r in found] + never
    colors = [COLORS[2 if r.basis == "modelled" else 0] for r in found]
    values = [r.value for r in found]
    bars = axes.barh(range(len(found)), values, color=colors)
    texts = [
        f"{value:.2g} s" + (f", {passes[r.system]} passes" if r.system in passes else "")
        for value, r in zip(values, found, strict=True)
    ]
    axes.bar_label(bars, texts, padding=3)
    for row in range(len(found), len(labels)):
        axes.annotate(f"not within {MOST_PASSES} passes", (min(values), row), va="center")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set(xscale="log", xlabel="seconds", xlim=(min(values) / 1.5, max(values) * 5))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
