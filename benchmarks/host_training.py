"""Rates of SAC and TD3 in MuJoCo's environments beside those of SB3.

    python benchmarks/host_training.py [--quick] [--rivals PYTHON] [--json PATH]

Both train with the settings of the scoreboard, an update after each step of one environment, in
interleaved rounds. Ours is what `accel-rl train` does, with XLA's threads; SB3 trains with one
thread of torch, and with one for each core. Timed are steps after the random ones, when all is
compiled, per second of wall time. `host_training_sb3.py` says what the other interpreter needs.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import Report, System, interleave, warn
from interpreter import Interpreter, rivals_of
from rich.console import Console

from accel_rl import experiment, train

PACKAGES = ("jax", "flax", "optax", "gymnasium", "mujoco")
CASES = (("sac", "HalfCheetah-v5"), ("td3", "Hopper-v5"))
RANDOM_STEPS, STEPS, ROUNDS = 1_000, 2_000, 7
BOUND = 1.5
RATE = "steps per second"
SCRIPT = Path(__file__).resolve().with_name("host_training_sb3.py")


def ours(agent: str, environment: str, steps: int) -> System:
    """Return our training: random steps, then twice `steps`, of which the second half is timed."""
    given = {"schedule.learning_starts": RANDOM_STEPS, "agent.random_steps": RANDOM_STEPS}
    chosen = experiment.load(agent=agent, environment=environment, settings=given)
    assert chosen.host is not None

    def timed(repeats: int) -> tuple[float, float]:
        wall = 0.0
        for _ in range(repeats):
            with chosen.host.open(chosen.configuration.schedule.num_envs) as env:
                *_, before, last = train.run(
                    chosen.program,
                    chosen.key,
                    RANDOM_STEPS + 2 * steps,
                    period=steps,
                    hyper=chosen.hyper,
                    env=env,
                ).rows
            assert last["steps"] - before["steps"] == steps
            wall += last["seconds"] - before["seconds"]
        return wall / repeats, wall / repeats

    return System(lambda: timed(1), steps, timed)


def sb3(rivals: Interpreter, agent: str, environment: str, threads: int, steps: int) -> System:
    """Return SB3's training; each run continues the same model."""
    asked = {
        "algorithm": agent,
        "environment": environment,
        "threads": threads,
        "random_steps": RANDOM_STEPS,
        "steps": steps,
    }
    return rivals.system(asked, steps)


def measure(
    report: Report, agent: str, environment: str, rivals: Interpreter | None, steps: int
) -> None:
    """Time all systems with one agent, and claim the rate beside SB3's better one."""
    systems = {"accel_rl": ours(agent, environment, steps)}
    if rivals is not None:
        for threads in sorted({1, len(os.sched_getaffinity(0))}):
            name = f"SB3, torch threads: {threads}"
            systems[name] = sb3(rivals, agent, environment, threads, steps)
    timings = interleave(systems, ROUNDS)
    case = f"{agent.upper()}, {environment}"
    for name, timing in timings.items():
        report.add(case, name, RATE, "steps/s", 1 / timing.wall)
    others = list(systems)[1:]
    for name in others:
        report.add_ratio(case, "accel_rl", name, timings, RATE)
    best = min(others, key=lambda name: np.median(timings[name].wall), default="SB3")
    report.claim(
        f"{case}: at least {BOUND:g} times SB3's rate", BOUND, [case], "accel_rl", best, RATE
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="TD3 alone, few steps")
    parser.add_argument("--rivals", metavar="PYTHON", help="interpreter that has SB3")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args(arguments)
    report = Report(PACKAGES, "host_training", quick=options.quick, seeds="seed 0 of each training")
    rivals = rivals_of(report, options.rivals, SCRIPT)
    cases, steps = (CASES[1:], 100) if options.quick else (CASES, STEPS)
    for agent, environment in cases:
        try:
            measure(report, agent, environment, rivals, steps)
        except ValueError as error:
            warn(str(error))  # the extra `mujoco` is absent
    report.finish(options.json, Console(width=140))


if __name__ == "__main__":
    main()
