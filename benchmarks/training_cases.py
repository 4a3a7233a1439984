"""The cases of `training.py`: what runs side by side, and what is recorded of it."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import training_limit
import training_ours
import training_plain
from common import Report, Timing
from learning_curves import curve
from training_rivals import Rivals
from training_settings import LEARNING_STARTS, MAX_STEPS, Setting

from accel_rl import train

OURS, PLAIN = "accel_rl", "plain loop"
STEPS, WALL, CPU = "steps", "steps per second", "steps per core-second"
RETURN, COMPILE = "greedy return", "compile, empty cache"
COMPILE_AGAIN = "compile, from the persistent cache"
SAMPLERS = ("uniform", "prioritised", "amper_fr", "amper_k")
CHUNKED, WHOLE = "chunked loop", "whole loop"
SAMPLER_CASE, CHUNK_CASE = "setting B by replay, 1 seed", "setting A in chunks of about 1 s, 1 seed"

Trainer = Callable[[], tuple[float, float]]  # trains once; CPU and wall seconds


class Run(NamedTuple):
    """A run of the benchmark."""

    report: Report
    rounds: int
    rivals: Rivals | None = None
    peak: float | None = None  # FLOP per second of BLAS


def speed(run: Run, setting: Setting, seeds: int, steps: int, rival_steps: int = 0) -> None:
    """Time systems in turn.

    Args:
      run: of the benchmark.
      setting: for all.
      seeds: ours go through `over_seeds`, the plain loop's through `vmap`.
      steps: of each seed.
      rival_steps: of the other systems, which train one seed; 0: they do not run.
    """
    case = setting.title(seeds)
    keys = jax.random.key(0) if seeds == 1 else jax.random.split(jax.random.key(0), seeds)
    ours = training_ours.make_train(setting, steps)
    plain = training_plain.make_train(setting, steps)
    programs = {
        OURS: ours if seeds == 1 else train.over_seeds(ours),
        PLAIN: plain if seeds == 1 else jax.vmap(plain),
    }
    trainers: dict[str, Trainer] = {}
    work: dict[str, float] = {}
    for name, program in programs.items():
        trainers[name] = _trainer(_compiled(run.report, case, name, program, keys), keys)
        work[name] = seeds * steps
    for name in run.rivals.systems if run.rivals and rival_steps else ():
        trainers[name] = _asked(run.rivals, name, setting, rival_steps)
        work[name] = rival_steps
    timings = in_turn(trainers, work, run.rounds)
    _record(run.report, case, timings, OURS)
    for name in programs if run.peak else ():
        share = training_limit.flops(setting) / run.peak / timings[name].wall
        run.report.add(case, name, training_limit.SHARE, "", share)


def samplers(run: Run, setting: Setting, steps: int) -> None:
    """Time our loop with each kind of replay."""
    trainers: dict[str, Trainer] = {}
    key = jax.random.key(0)
    for name in SAMPLERS:
        program = training_ours.make_train(setting, steps, name)
        trainers[name] = _trainer(_compiled(run.report, SAMPLER_CASE, name, program, key), key)
    timings = in_turn(trainers, dict.fromkeys(SAMPLERS, float(steps)), run.rounds)
    run.report.add_rates(SAMPLER_CASE, timings, STEPS, wall=True)
    for name in SAMPLERS[1:]:
        for metric in (WALL, CPU):
            run.report.add_ratio(SAMPLER_CASE, name, SAMPLERS[0], timings, metric)


def chunks(run: Run, setting: Setting, seconds: float, count: int) -> None:
    """Time the chunked loop, in chunks that take about so many seconds, beside the whole one."""
    program, key = training_ours.make_program(setting), jax.random.key(0)
    period = 10 * setting.num_envs
    probe = 20 * period
    period = int(seconds * probe / _chunk_seconds(program, setting, probe, 1)[1][0])
    period = max(period - period % setting.num_envs, 2 * LEARNING_STARTS)
    steps = count * period
    whole = jax.jit(training_ours.make_train(setting, steps)).lower(key).compile()
    trainer = _trainer(whole, key)
    samples: dict[str, list[tuple[float, float]]] = {CHUNKED: [], WHOLE: []}
    trainer()
    for _ in range(run.rounds):
        samples[WHOLE].append(trainer())
        cpu, wall = _chunk_seconds(program, setting, period, count)
        samples[CHUNKED].append((sum(cpu), sum(wall)))
    timings = {name: Timing(*(np.asarray(each) / steps).T) for name, each in samples.items()}
    run.report.add_rates(CHUNK_CASE, timings, STEPS, wall=True)
    for metric in (WALL, CPU):
        run.report.add_ratio(CHUNK_CASE, CHUNKED, WHOLE, timings, metric)


def learning(
    run: Run, setting: Setting, seeds: int, steps: int, rival_seeds: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Trains to the end and plays greedy episodes.

    Returns:
      By system, environment steps [N] and the returns of episodes while training [seeds, N].
    """
    case = f"{setting.title(seeds)}, {steps:,} steps"
    agent = training_ours.make_agent(setting)
    net = training_plain.network(setting)
    plain_agent = agent._replace(
        act=lambda params, memory, observation, *_, **__: (
            net.apply(params, observation).argmax(-1).astype(np.int32),
            memory,
        )
    )
    ours = training_ours.make_train(setting, steps)
    plain = training_plain.make_train(setting, steps)
    env = training_ours.make_program(setting).env

    def learn(key: jax.Array) -> Any:
        run_key, play_key = jax.random.split(key)
        state, metrics = ours(run_key)
        play = train.evaluator(env, agent, max_steps=MAX_STEPS)
        return metrics, play(agent.policy(state.agent), play_key).mean()

    def learn_plain(key: jax.Array) -> Any:
        run_key, play_key = jax.random.split(key)
        carry, metrics = plain(run_key)
        play = train.evaluator(env, plain_agent, max_steps=MAX_STEPS)
        return metrics, play(carry.params, play_key).mean()

    curves = {}
    keys = jax.random.split(jax.random.key(1), seeds)
    for name, program in {OURS: learn, PLAIN: learn_plain}.items():
        metrics, scores = jax.jit(train.over_seeds(program))(keys)
        run.report.add(case, name, RETURN, "mean of 100 episodes", np.asarray(scores))
        curves[name] = curve(metrics)
    for name in run.rivals.systems if run.rivals else ():
        scores = [
            np.mean(run.rivals.train(name, setting, steps, seed, evaluate=True)["returns"])
            for seed in range(rival_seeds)
        ]
        metric = f"{RETURN}, {rival_seeds} seed{'s' if rival_seeds > 1 else ''}"
        run.report.add(case, name, metric, "mean of 20 episodes", scores)
    return curves


def in_turn(
    trainers: Mapping[str, Trainer], work: Mapping[str, float], rounds: int
) -> dict[str, Timing]:
    """Time each once in each round, after a run that is not counted."""
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in trainers}
    for number in range(rounds + 1):
        for name, trainer in trainers.items():
            taken = trainer()
            if number:
                samples[name].append(taken)
    return {name: Timing(*(np.asarray(each) / work[name]).T) for name, each in samples.items()}


def _compiled(
    report: Report, case: str, name: str, program: Callable[[Any], Any], keys: jax.Array
) -> Callable[[Any], Any]:
    """Compiles twice, first from nothing and then as in a new process; records what it took."""
    executable = None
    for metric in (COMPILE, COMPILE_AGAIN):
        jax.clear_caches()
        began = time.perf_counter()
        executable = jax.jit(program).lower(keys).compile()
        report.add(case, name, metric, "s", [time.perf_counter() - began])
    assert executable is not None
    return executable


def _trainer(executable: Callable[[Any], Any], keys: jax.Array) -> Trainer:
    def train_once() -> tuple[float, float]:
        cpu, wall = time.process_time(), time.perf_counter()
        jax.block_until_ready(executable(keys))
        return time.process_time() - cpu, time.perf_counter() - wall

    return train_once


def _asked(rivals: Rivals, name: str, setting: Setting, steps: int) -> Trainer:
    def train_once() -> tuple[float, float]:
        taken = rivals.train(name, setting, steps)
        return taken["cpu"], taken["wall"]

    return train_once


def _record(report: Report, case: str, timings: Mapping[str, Timing], system: str) -> None:
    report.add_rates(case, timings, STEPS, wall=True)
    for rival in timings:
        if rival != system:
            for metric in (WALL, CPU):
                report.add_ratio(case, system, rival, timings, metric)


class _Stopwatch:
    """A logger that keeps the CPU and wall seconds between one row and the next."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def begin(self, rows: Sequence[Any] | None) -> None:
        self._last = time.process_time(), time.perf_counter()

    def log(self, row: Any) -> None:
        now = time.process_time(), time.perf_counter()
        self.cpu.append(now[0] - self._last[0])
        self.wall.append(now[1] - self._last[1])
        self._last = time.process_time(), time.perf_counter()

    def close(self) -> None:
        pass


def _chunk_seconds(
    program: train.Program, setting: Setting, period: int, count: int
) -> tuple[list[float], list[float]]:
    """CPU and wall seconds of `count` learning chunks, after those in which it compiles."""
    watch = _Stopwatch()
    warmup = program.schedule.warmup * program.schedule.steps
    steps = warmup + (1 + count) * period
    hyper = training_ours.hyperparameters(setting, steps)
    train.run(program, jax.random.key(0), steps, period=period, hyper=hyper, loggers=[watch])
    return watch.cpu[-count:], watch.wall[-count:]
