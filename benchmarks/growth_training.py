"""Growth of fused training with seeds and environments, of its compilation, and of plans."""

import functools
import time
from typing import Any

import jax
import numpy as np
from growth_fit import Case, Curve, least_seconds

from accel_rl import agents, envs, replay, train

PER_STEP = "CPU time of an environment step"
IN_BATCHES = f"{PER_STEP}, 16 seeds at a time"
COMPILE, PLAN = "CPU time to compile", "CPU time of a plan"
SECONDS = 0.4  # of one measurement of a training


def program(num_envs: int = 1, capacity: int = 1_000) -> train.Program:
    """Make DQN on CartPole with two layers of 32 units and batches of 32."""
    env = envs.environment("CartPole-v1")
    agent = agents.dqn(env.observation_space, env.action_space, hidden=(32, 32))
    buffer = replay.make(train.example(env, agent), capacity, 32, num_envs=num_envs)
    return train.make(env, agent, buffer, num_envs=num_envs, learning_starts=100)


def step_seconds(made: train.Program, seeds: int, seed_batch: int | None = None) -> float:
    """Return the CPU time of an environment step of one seed, while all learn."""
    strategy = "vmap" if seed_batch is None else "batched"

    def segment(states: Any, iterations: Any, learning: bool) -> Any:
        one = functools.partial(made.segment, learning=learning)
        mapped = train.over_seeds(one, strategy, in_axes=(0, None), seed_batch=seed_batch)
        return mapped(states, iterations)[0]

    run = jax.jit(segment, static_argnums=2, donate_argnums=0)
    states = jax.jit(jax.vmap(made.init))(jax.random.split(jax.random.key(0), seeds))
    warmup = max(made.schedule.warmup, 2 * 64 // made.schedule.num_envs)
    held = [run(states, np.int32(warmup), False)]
    del states

    def advance(iterations: int) -> None:
        state = held.pop()
        held.append(jax.block_until_ready(run(state, np.int32(iterations), True)))

    # In whole blocks of those whose keys are generated at once.
    ahead = made.schedule.ahead
    seconds = least_seconds(lambda: advance(ahead), 1)
    if (blocks := min(int(SECONDS / seconds), 40)) > 0:
        seconds = least_seconds(lambda: advance(blocks * ahead), 3) / blocks
    return seconds / (ahead * made.schedule.steps * seeds)


def by_seeds(seeds: int) -> dict[str, float]:
    """Measure seeds of one environment each, all vmapped and in batches."""
    made = program()
    return {
        PER_STEP: step_seconds(made, seeds) * 1e6,
        IN_BATCHES: step_seconds(made, seeds, min(16, seeds)) * 1e6,
    }


def by_environments(num_envs: int) -> dict[str, float]:
    """Measure one seed of many environments, with an update after a step of all."""
    made = program(num_envs, num_envs * max(16, 10_000 // num_envs))
    return {PER_STEP: step_seconds(made, 1) * 1e6}


def compile_seconds(seeds: int = 1, steps: int = 10_000, capacity: int = 10_000) -> float:
    """Return the CPU time of tracing, lowering and compiling a whole training."""
    jax.config.update("jax_enable_compilation_cache", False)
    key = jax.random.key(0) if seeds == 1 else jax.random.split(jax.random.key(0), seeds)
    jax.clear_caches()
    run = train.fused(program(capacity=capacity), steps)
    began = time.process_time()
    jax.jit(run if seeds == 1 else jax.vmap(run)).lower(key).compile()
    return time.process_time() - began


def compiling(what: str, size: int) -> dict[str, float]:
    """Measure compilation with one setting at a size."""
    return {COMPILE: compile_seconds(**{what: size})}


def planning(kind: str, count: int) -> dict[str, float]:
    """Measure a plan for devices of one class."""
    import growth_plans  # here, so that only this case loads the composer

    return {PLAN: growth_plans.plan_seconds(kind, count)}


def _compile_case(what: str, name: str, sizes: tuple[int, ...]) -> Case:
    return Case(
        f"compile_{what}", f"compilation by {name}", name, sizes, (),
        functools.partial(compiling, what), (Curve(COMPILE, "s", "O(1)", 0.1),),
        share=1.5,
    )  # fmt: skip


CASES = (
    Case(
        "seeds", "fused DQN by seeds", "seeds", (1, 16, 256, 4_096), (), by_seeds,
        (Curve(PER_STEP, "us", "O(1)"), Curve(IN_BATCHES, "us", "O(1)")), share=3.0,
    ),
    Case(
        "environments", "fused DQN by environments", "environments",
        (1, 4, 16, 64, 256, 1_024, 4_096), (),
        by_environments, (Curve(PER_STEP, "us", "O(1)"),), share=2.0,
    ),
    _compile_case("seeds", "seeds", (1, 64, 4_096)),
    _compile_case("steps", "steps of the scan", (10**4, 10**6, 10**9)),
    _compile_case("capacity", "items of the buffer", (10**4, 10**6, 10**8)),
    Case(
        "planner_like", "plans over like devices", "devices", (2, 4, 8, 16, 32, 64), (2, 4, 8),
        functools.partial(planning, "like"), (Curve(PLAN, "s", "O(n)"),),
    ),
    Case(
        "planner_unlike", "plans over devices of a kind each", "devices",
        (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32, 64), (),
        functools.partial(planning, "unlike"), (Curve(PLAN, "s", "O(n^4)"),),
    ),
)  # fmt: skip
