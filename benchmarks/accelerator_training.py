"""Fused trainings of `accelerator.py`: by seeds and environments, beside rivals."""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import training_ours
import training_plain
from accelerator_run import Run
from common import warn
from training_settings import SETTINGS

from accel_rl import agents, envs, replay, train

PLAIN, LIBRARY = "plain loop", "accel_rl"
BRAX = "brax:halfcheetah"


def training_case(environment: str, seeds: int, num_envs: int) -> str:
    """Return the name in records of a fused training."""
    counts = ((seeds, "seed"), (num_envs, "environment"))
    return ", ".join([environment, *(f"{n:,} {what}{'s' * (n != 1)}" for n, what in counts)])


def by_seeds(run: Run) -> None:
    """Time fused trainings by seeds and environments, beside the plain loop of PureJaxRL's form."""
    wide = run.size(64, 16_384)
    sizes = [(256, 10, False), (1, 10, True), (64, 10, True), (1024, 10, True), (1, wide, False)]
    sizes += [(4096, 10, False), (256, 128, False)]
    for seeds, num_envs, beside in sizes[:2] if run.dry_run else sizes:
        seeds = min(seeds, run.size(2, seeds))
        capacity = max(10_240, 2 * num_envs)
        setting = dataclasses.replace(SETTINGS["A"], num_envs=num_envs, capacity=capacity)
        # At least some that learn, in whole iterations.
        steps = num_envs * max(run.size(120, 1000), -(-1100 // num_envs) + 1)
        makers: dict[str, Callable[..., Any]] = {LIBRARY: training_ours.make_train}
        makers |= {PLAIN: training_plain.make_train} if beside else {}
        case = training_case("DQN on CartPole-v1", seeds, num_envs)
        program = functools.partial(training_ours.make_program, setting)
        for name, make in makers.items():
            made = functools.partial(make, setting, steps)
            measure = functools.partial(_train, run, case, name, program, seeds, steps, made)
            run.case(f"{case}, {name}", measure)
        if beside:
            _training_targets(run, case)
        elif seeds == 256 and num_envs == 10:
            rate = run.report.find(case, LIBRARY, "environment steps")
            run.target(f"{case}: 20 M steps/s", rate.value / 20 if rate else None, 1.0)
    for agent, environment in (("dqn", "Breakout-MinAtar"), ("sac", "Pendulum-v1")):
        for seeds in dict.fromkeys((1, run.size(1, 64))):
            case = training_case(f"{agent.upper()} on {environment}", seeds, 16)
            steps = 16 * run.size(80, 600)
            program = functools.partial(_program, agent, environment, 16, 512)
            run.case(case, functools.partial(_train, run, case, LIBRARY, program, seeds, steps))


def brax(run: Run) -> None:
    """Time fused trainings of SAC on brax's halfcheetah by environments, where brax imports."""
    try:
        envs.environment(BRAX)
    except ValueError as error:
        warn(f"{BRAX} is left out: {error}")
        return
    # The widest first: each compiles for up to a minute, and there may be no time for all.
    for num_envs in (8,) if run.dry_run else (4096, 1, 64):
        case = training_case(f"SAC on {BRAX}", 1, num_envs)
        starts = 256  # two batches: an iteration of physics takes milliseconds
        steps = num_envs * (-(-starts // num_envs) + run.size(20, 200))
        program = functools.partial(_program, "sac", BRAX, num_envs, starts, backend="spring")
        run.case(case, functools.partial(_train, run, case, LIBRARY, program, 1, steps))


def _program(
    agent: str, environment: str, num_envs: int, learning_starts: int, **arguments: Any
) -> train.Program:
    env = envs.environment(environment, **arguments)
    made = getattr(agents, agent)(env.observation_space, env.action_space)
    capacity = max(16_384, 2 * num_envs)
    memory = replay.make(train.example(env, made), capacity, 128, num_envs=num_envs)
    return train.make(env, made, memory, num_envs=num_envs, learning_starts=learning_starts)


def _train(
    run: Run,
    case: str,
    name: str,
    make_program: Callable[[], train.Program],
    seeds: int,
    steps: int,
    make_train: Callable[[], Any] | None = None,
) -> None:
    """Time a program fused, or another training that does the same updates."""
    keys = jax.random.split(jax.random.key(0), seeds)
    program = make_program()
    trained = train.fused(program, steps) if make_train is None else make_train()
    began = time.perf_counter()
    compiled = jax.jit(jax.vmap(trained)).lower(keys).compile()
    run.report.add(case, name, "compile", "s", [time.perf_counter() - began])
    least = run.time(case, name, "environment step", seeds * steps, lambda: compiled(keys))
    run.report.add(case, name, "environment steps", "M/s", [1 / least])
    schedule = program.schedule
    updates = schedule.updates * (steps // schedule.steps - schedule.warmup)
    rate = updates / steps / least  # M/s
    run.report.add(case, name, "updates", "k/s", [1e3 * rate])
    performed = 1e-6 * rate * _operations(program)
    run.report.add(case, name, "operations of updates", "TFLOP/s", [performed])


def _operations(program: train.Program) -> float:
    """Return XLA's count of the operations of one update."""
    # XLA counts the body of a loop once, so a count of the whole training would be far too low.
    agent, memory, key = program.agent, program.require_replay(), jax.random.key(0)
    drawn = jax.eval_shape(lambda: memory.sample(memory.init(), key, 1.0, 1.0))
    state = jax.eval_shape(agent.init, key)
    analysis = jax.jit(agent.learn).lower(state, drawn.batch, drawn.weights, key).cost_analysis()
    return float(analysis["flops"])


def _training_targets(run: Run, case: str) -> None:
    ours, plain = (run.least(case, name, "environment step") for name in (LIBRARY, PLAIN))
    value = plain / ours if ours and plain else None
    run.target(f"{case}: times as fast as the {PLAIN}", value, 1.3)
