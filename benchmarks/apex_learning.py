"""Whether Ape-X over TCP learns what the same program learns with its memory in the process.

    python benchmarks/apex_learning.py [--quick] [--json PATH]

DQN on CartPole with prioritised replay, once as Ape-X (two actors in processes of their own, a
replay server, all over TCP on the loopback), and once as one process whose actors and memory are
threads' and arrays: the same program, schedule, exploration and priorities of actors. Of Ape-X's
trainings every fourth has an actor killed with SIGKILL in its course, which is started again.

Scored is the final policy, by the mean return of 20 greedy episodes. A claim holds where two
one-sided tests show means to be equal (Schuirmann, 1987): the 90 % interval of Welch of their
difference lies within the margin, which is a fifth of the greatest return, so that both tests are
at 5 %. Its value is the margin over the interval's further end. The report is written after each
pair of trainings; a run that is stopped leaves what it found.
"""

import argparse
import os
import signal
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import Claim, Report
from rich.console import Console
from scipy import stats

from accel_rl import remote, train
from accel_rl.remote import apex
from accel_rl.remote.apex import ApexTraining, LocalActors, run_learner

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "flax", "optax", "gymnax", "accel-rl")
SEEDS, STEPS = 20, 30_000
QUICK_SEEDS, QUICK_STEPS = 4, 6_000
GREATEST = 500.0  # return of CartPole-v1
MARGIN = GREATEST / 5
LEVEL = 0.05  # of each of the two tests
EPISODES = 20  # that a final policy plays
TCP, LOCAL = "Ape-X over TCP", "in one process"
KILLED = 4  # every so many trainings an actor is killed


def whole_training() -> ApexTraining:
    """Return the training of a full run."""
    return apex.load(
        "CartPole-v1",
        {
            "agent.hidden": (64, 64),
            "replay.capacity": 20_000,
            "replay.beta_steps": STEPS,
            "schedule.updates": 16,
            "training.steps": STEPS,
        },
    )


def final_return(training: ApexTraining, state: train.TrainState) -> float:
    """Mean return of the last policy's greedy episodes."""
    agent = training.experiment.program.agent
    play = train.evaluator(training.experiment.env, agent, episodes=EPISODES)
    return float(np.mean(play(agent.policy(state.agent), training.key)))


def over_tcp(training: ApexTraining, steps: int, kill: bool) -> float:
    """Return a training by Ape-X, whose first actor is killed where that is asked for."""
    with (
        warnings.catch_warnings(),
        remote.ReplayServer() as server,
        LocalActors(training, server.address, restarts=1) as actors,
    ):
        warnings.filterwarnings("ignore", "actor 0 ended", RuntimeWarning)
        killed: list[int] = []

        def on_row(row: dict[str, Any]) -> None:
            if kill and not killed and row["steps"] > 0.3 * steps and row["actors_heard"] == 2:
                killed.append(actors.processes[0].pid)
                os.kill(killed[0], signal.SIGKILL)

        done = run_learner(training, server.address, steps, ended=actors.gone, on_row=on_row)
    if kill and not killed:
        raise RuntimeError("the training ended before an actor could be killed")
    return final_return(training, done.state)


def in_one_process(training: ApexTraining, steps: int, program: train.Program) -> float:
    """Return the same program with its memory and its actors here."""
    done = train.pipelined(
        program,
        training.key,
        steps,
        hyper=training.experiment.hyper,
        executor="asynchronous",
        num_actors=training.num_actors,
        actor_priorities=training.n_step,
        exploration=training.exploration,
    )
    return final_return(training, done.state)


def local_program(training: ApexTraining) -> train.Program:
    """Program with a local buffer of as many complete items as the server's table holds."""
    schedule, capacity = training.schedule, training.experiment.configuration.replay.capacity
    larger = capacity + (training.n_step - 1) * schedule.num_envs
    return training.experiment.with_settings({"replay.capacity": larger}).program


def further_end(one: np.ndarray, other: np.ndarray) -> float:
    """Of the interval of the difference of means, by Welch, at 1 - 2 LEVEL."""
    parts = [np.var(each, ddof=1) / len(each) for each in (one, other)]
    error = np.sqrt(sum(parts))
    if error == 0:
        return float(abs(one.mean() - other.mean()))
    lengths = len(one), len(other)
    freedom = sum(parts) ** 2 / sum(p**2 / (n - 1) for p, n in zip(parts, lengths, strict=True))
    reach = stats.t.ppf(1 - LEVEL, freedom) * error
    return float(abs(one.mean() - other.mean()) + reach)


def fill(
    report: Report, case: str, found: dict[str, list[float]], seconds: dict[str, list[float]]
) -> None:
    """Return the report's records and its claim, of what there is so far."""
    report.records.clear()
    report.claims.clear()
    for name, returns in found.items():
        report.add(case, name, "greedy return after training", "", returns)
        mean, error = np.mean(returns), np.std(returns, ddof=1) / np.sqrt(len(returns))
        report.add(case, name, "mean of it", "", [mean])
        report.add(case, name, "standard error of the mean", "", [error])
        report.add(case, name, "wall time of a training", "s", seconds[name])
    end = further_end(np.array(found[TCP]), np.array(found[LOCAL]))
    report.add(case, f"{TCP} - {LOCAL}", "further end of the 90 % interval", "", [end])
    claim = (
        f"{case}: mean greedy returns over TCP and in one process are equal within {MARGIN:g}, by "
        f"two one-sided tests at {LEVEL:.0%}; margin over the interval's further end"
    )
    ours, theirs = (report.place(case, name, "mean of it") for name in (TCP, LOCAL))
    value = MARGIN / max(end, 1e-9)
    report.claims.append(Claim(claim, value, 1.0, end <= MARGIN, ours=ours, rival=theirs))


def main() -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few seeds, few steps")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args()
    seeds, steps = (QUICK_SEEDS, QUICK_STEPS) if options.quick else (SEEDS, STEPS)
    numbers = f"0 to {seeds - 1}, one of each training"
    report = Report(PACKAGES, "apex_learning", quick=options.quick, seeds=numbers)
    console = Console(width=160)
    whole = whole_training()
    case = f"{whole.experiment.configuration.environment.name}, {steps:,} steps, {seeds} seeds, "
    case += f"an actor killed in {seeds // KILLED}"
    program = local_program(whole)
    found: dict[str, list[float]] = {TCP: [], LOCAL: []}
    seconds: dict[str, list[float]] = {TCP: [], LOCAL: []}
    for seed in range(seeds):
        training = ApexTraining(whole.experiment.with_settings({"training.seed": seed}))
        for name in (TCP, LOCAL):
            began = time.perf_counter()
            if name == TCP:
                value = over_tcp(training, steps, kill=seed % KILLED == KILLED - 1)
            else:
                value = in_one_process(training, steps, program)
            seconds[name].append(time.perf_counter() - began)
            found[name].append(value)
            text = f"seed {seed}, {name}: {value:.1f} in {seconds[name][-1]:.0f} s"
            console.print(text, highlight=False)
        if seed and options.json is not None:
            fill(report, case, found, seconds)
            report.write(options.json)
    fill(report, case, found, seconds)
    report.finish(options.json, console)


if __name__ == "__main__":
    main()
