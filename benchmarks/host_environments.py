"""Rates of host environments beside those of SB3's vectorised environments and of EnvPool.

    python benchmarks/host_environments.py [--quick] [--rivals PYTHON] [--json PATH]

Eight environments step together with the same actions at each step, reset where episodes end, in
interleaved rounds. Ours and SB3's step Gymnasium's own environments, in sequence or in processes;
EnvPool's are written in C++. `host_environments_rivals.py` says what the other interpreter needs.
Rates are per second of wall time, since processes work for each other.
"""

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from common import Claim, Report, System, interleave, warn
from interpreter import Interpreter, rivals_of
from rich.console import Console

from accel_rl import envs
from accel_rl.types import Discrete

PACKAGES = ("jax", "gymnasium", "mujoco", "box2d")
ENVIRONMENTS = ("CartPole-v1", "LunarLander-v3", "HalfCheetah-v5")
RIVALS = ("SB3, in sequence", "SB3, processes", "EnvPool")
NUM_ENVS, STEPS, ROUNDS = 8, 500, 7
BOUND = 0.95
RATE = "environment steps per second"
SCRIPT = Path(__file__).resolve().with_name("host_environments_rivals.py")


def measure(report: Report, environment: str, rivals: Interpreter | None, steps: int) -> None:
    """Time all systems in one environment."""
    with ExitStack() as stack:
        ours = {
            f"accel_rl, {words}": stack.enter_context(
                envs.host_environment(environment, NUM_ENVS, backend)
            )
            for backend, words in (("sync", "in sequence"), ("processes", "processes"))
        }
        space = next(iter(ours.values())).action_space
        single = 0 if isinstance(space, Discrete) else np.zeros(space.shape, np.float32)
        actions = np.stack([single] * NUM_ENVS)
        systems = {}
        for name, env in ours.items():
            env.reset(0)

            def run(env: envs.HostEnvironment = env) -> None:
                for _ in range(steps):
                    env.step(actions)

            systems[name] = System(run, steps * NUM_ENVS)
        for name in RIVALS if rivals is not None else ():
            systems[name] = rival(rivals, name, environment, steps, actions)
        timings = interleave(systems, ROUNDS)
    case = f"{environment}, {NUM_ENVS} environments"
    for name, timing in timings.items():
        report.add(case, name, RATE, "steps/s", 1 / timing.wall)
    claim(report, case)


def rival(
    rivals: Interpreter, name: str, environment: str, steps: int, actions: np.ndarray
) -> System:
    """Return a system that another interpreter times."""
    asked = {
        "system": name,
        "environment": environment,
        "num_envs": NUM_ENVS,
        "steps": steps,
        "actions": actions.tolist(),
        "dtype": str(actions.dtype),
    }
    return rivals.system(asked, steps * NUM_ENVS)


def claim(report: Report, case: str) -> None:
    """Claim that ours step as fast as SB3's, within noise, in sequence and in processes."""
    for words in ("in sequence", "processes"):
        ours, theirs = (report.find(case, f"{name}, {words}", RATE) for name in ("accel_rl", "SB3"))
        value = ours.value / theirs.value if ours and theirs else None
        report.claims.append(
            Claim(
                f"{case}, {words}: at least {BOUND:g} of SB3's rate",
                value,
                BOUND,
                None if value is None else value >= BOUND,
                ours=report.place(case, f"accel_rl, {words}", RATE),
                rival=report.place(case, f"SB3, {words}", RATE),
            )
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="CartPole alone, few steps")
    parser.add_argument("--rivals", metavar="PYTHON", help="interpreter that has SB3 and EnvPool")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args(arguments)
    report = Report(PACKAGES, "host_environments", quick=options.quick, seeds="resets from seed 0")
    rivals = rivals_of(report, options.rivals, SCRIPT)
    names, steps = (ENVIRONMENTS[:1], 50) if options.quick else (ENVIRONMENTS, STEPS)
    for name in names:
        try:
            measure(report, name, rivals, steps)
        except ImportError as error:
            warn(str(error))
    report.finish(options.json, Console(width=140))


if __name__ == "__main__":
    main()
