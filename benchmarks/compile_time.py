"""Time to compile a training, by agent, kind of replay, number of seeds and executor.

    python benchmarks/compile_time.py [--quick] [--json PATH]

Each case trains for a few steps in caches that are empty, and the time is what JAX reports of
lowering and of compiling all that this took, evaluation not included. Scripts and notebooks keep
compiled programs on disk, so that a user waits once for each program and version of JAX.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
from common import Claim, Report
from rich.console import Console

from accel_rl import agents, envs, replay, train

EVENTS = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)
METRIC = "time to compile"
# AMPER's over prioritised replay's, eight seeds' over one's, and other executors' over the fused
MOST = 2.0
SAMPLERS = ("uniform", "prioritised", "rank_based", "amper_fr", "amper_k")
AGENTS = {
    "dqn": {},
    "dqn, C51, dueling, noisy": {"distributional": "c51", "dueling": True, "noisy": True},
    "ddpg": {},
    "td3": {},
    "sac": {},
}  # fmt: skip
PACKAGES = ("jax", "jaxlib", "numpy", "flax", "optax", "gymnax")
ROUNDS, SEEDS = 3, 8
ONE, MANY = "one seed", f"{SEEDS} seeds"
EXECUTORS = ("deterministic", "asynchronous")
BY_EXECUTOR = "DQN by executor, uniform replay, one seed"


class Clock:
    """Seconds of compilation so far."""

    def __init__(self) -> None:
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._add)

    def _add(self, event: str, seconds: float, **_: Any) -> None:
        if event in EVENTS:
            self.seconds += seconds


def program(agent: str, sampler: str, env: Any) -> train.Program:
    """Make a training program of two layers of 64 units."""
    name, *_ = agent.split(",")
    made = getattr(agents, name)(
        env.observation_space, env.action_space, hidden=(64, 64), **AGENTS[agent]
    )
    memory = replay.make(train.example(env, made), 10_000, 32, sampler, num_envs=4)
    return train.make(env, made, memory, num_envs=4, learning_starts=100)


def compile_once(
    clock: Clock, agent: str, sampler: str, seeds: int, executor: str, *, on_host: bool
) -> float:
    """Return the seconds in which a training was compiled."""
    name = "CartPole-v1" if agent.startswith("dqn") else "Pendulum-v1"
    key = jax.random.key(0) if seeds == 1 else jax.random.split(jax.random.key(0), seeds)
    jax.clear_caches()
    before = clock.seconds
    if on_host:
        with envs.host_environment(name, 4 * seeds) as env:
            train.run(program(agent, sampler, env.environment), key, 200, env=env)
    else:
        made = program(agent, sampler, envs.environment(name))
        train.run(made, key, 200, seeds="vmap", executor=executor)
    return clock.seconds - before


def cases() -> list[tuple[str, str, str, int, str, bool]]:
    """Return case, system, sampler, seeds, executor and whether the environment is on the host."""
    found = [("agents, uniform replay, one seed", agent, "uniform", 1, "fused", False)
             for agent in AGENTS]  # fmt: skip
    for title, seeds in ((ONE, 1), (MANY, SEEDS)):
        case = f"DQN by kind of replay, {title}"
        found += [(case, sampler, sampler, seeds, "fused", False) for sampler in SAMPLERS]
    found += [(BY_EXECUTOR, name, "uniform", 1, name, False) for name in EXECUTORS]
    return [*found, (BY_EXECUTOR, "fused, environments on the host", "uniform", 1, "fused", True)]


def claims(report: Report) -> None:
    """Claim that neither AMPER, seeds nor executors of many parts cost more than twice the time."""

    def claim(text: str, over: tuple[str, str], under: tuple[str, str]) -> None:
        found = [report.find(*place, METRIC) for place in (over, under)]
        a, b = (None if each is None else each.value for each in found)
        value = None if a is None or b is None else a / b
        holds = None if value is None else value <= MOST
        ours, rival = (report.place(*place, METRIC) for place in (over, under))
        report.claims.append(Claim(text, value, MOST, holds, sense="<=", ours=ours, rival=rival))

    one, many = (f"DQN by kind of replay, {title}" for title in (ONE, MANY))
    for case in (one, many):
        for sampler in ("amper_fr", "amper_k"):
            claim(f"{case}: {sampler} over prioritised", (case, sampler), (case, "prioritised"))
    claim(f"uniform: {MANY} over {ONE}", (many, "uniform"), (one, "uniform"))
    for executor in EXECUTORS:
        claim(f"uniform: {executor} executor over fused", (BY_EXECUTOR, executor), (one, "uniform"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="DQN with one seed, once")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_compilation_cache", False)
    clock, console = Clock(), Console(width=160, highlight=False)
    report = Report(PACKAGES, "compile_time", quick=options.quick, seeds="JAX's key 0")
    for case, system, sampler, seeds, executor, on_host in cases():
        agent = system if system in AGENTS else "dqn"
        if options.quick and (seeds > 1 or agent != "dqn" or executor != "fused"):
            continue
        seconds = [
            compile_once(clock, agent, sampler, seeds, executor, on_host=on_host)
            for _ in range(1 if options.quick else ROUNDS)
        ]
        report.add(case, system, METRIC, "s", seconds)
        console.print(f"{case}: {system}: {min(seconds):.2f} s")
    claims(report)
    report.finish(options.json, console)


if __name__ == "__main__":
    main()
