"""How fast the core of the replay server is, in this process and without a network, beside cpprb.

    python benchmarks/replay_core.py [--quick] [--json PATH]

Both are called from Python and hold the same items of 40 bytes (four columns, as CartPole has
them) with the same priorities, and are checked to draw from the same distribution. They run in
interleaved rounds; claims compare CPU times. cpprb's sample computes importance-sampling weights,
the core's gives probabilities: "core, weights" adds NumPy's computation of the same weights.

The process holds itself to one core.
"""

import argparse
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import Report, System, interleave, warn
from replay import hold_to_one_core
from rich.console import Console

CAPACITY = 131_072
BATCHES = (64, 512)
PUSHED = 50
ALPHA, BETA = 0.6, 0.4
COLUMNS = (("obs", (4,)), ("act", ()), ("rew", ()), ("next_obs", (4,)))  # float32
CORE, WEIGHTED, CPPRB = "core", "core, weights", "cpprb"
PACKAGES = ("numpy", "cpprb", "accel-rl")
METRIC = "items per core-second"
PARTS, CHECKED = 20, 200_000  # of the check of distributions


class Problem(NamedTuple):
    """What both hold."""

    items: dict[str, np.ndarray]  # float32 [capacity, ...]
    priorities: np.ndarray  # float32 [capacity]


class Memory(NamedTuple):
    """A full memory, as a benchmark calls it."""

    sample: Callable[[int], Callable[[], np.ndarray]]
    """sample(batch): a call that draws a batch and returns its slots."""

    update: Callable[[int], Callable[[], object]]
    """update(batch): a call that sets priorities of slots that were drawn."""

    push: Callable[[], object]
    """Push PUSHED items with priorities."""


def make_problem(capacity: int) -> Problem:
    random = np.random.default_rng(0)
    items = {
        name: random.standard_normal((capacity, *shape), np.float32) for name, shape in COLUMNS
    }
    return Problem(items, random.exponential(size=capacity).astype(np.float32))


def core(problem: Problem, weighted: bool = False) -> Memory:
    """Ours."""
    from accel_rl.remote import _native

    columns = [(name, "f4", shape) for name, shape in COLUMNS]
    capacity = len(problem.priorities)
    table = _native.Table("table", capacity, columns, priority_exponent=ALPHA)
    table.push(list(problem.items.values()), problem.priorities)
    seeds = itertools.count()

    def sample(batch: int) -> Callable[[], np.ndarray]:
        arrays = _native.Batch(table, batch)

        def call() -> np.ndarray:
            table.sample(next(seeds), arrays)
            if weighted:
                weights = (arrays.probabilities * arrays.size) ** -BETA
                weights /= weights.max()
            return arrays.slots

        return call

    def update(batch: int) -> Callable[[], object]:
        rounds = drawn_before(problem, batch)
        generations = np.ones(batch, np.uint32)

        def call() -> object:
            slots, priorities = next(rounds)
            return table.update(slots, generations, priorities)

        return call

    some = [column[:PUSHED] for column in problem.items.values()]
    return Memory(sample, update, lambda: table.push(some, problem.priorities[:PUSHED]))


def cpprb(problem: Problem) -> Memory:
    """Return the rival."""
    from cpprb import PrioritizedReplayBuffer

    fields = {name: {"shape": shape or 1, "dtype": np.float32} for name, shape in COLUMNS}
    buffer = PrioritizedReplayBuffer(len(problem.priorities), fields, alpha=ALPHA, eps=0.0)
    buffer.add(**problem.items, priorities=problem.priorities)

    def sample(batch: int) -> Callable[[], np.ndarray]:
        return lambda: buffer.sample(batch, beta=BETA)["indexes"]

    def update(batch: int) -> Callable[[], object]:
        rounds = drawn_before(problem, batch)
        return lambda: buffer.update_priorities(*next(rounds))

    some = {name: column[:PUSHED] for name, column in problem.items.items()}
    return Memory(
        sample, update, lambda: buffer.add(**some, priorities=problem.priorities[:PUSHED])
    )


def drawn_before(problem: Problem, batch: int) -> itertools.cycle:
    """Slots and new priorities of 64 batches, again and again; the same for all systems."""
    random, capacity = np.random.default_rng(1), len(problem.priorities)
    return itertools.cycle(
        [
            (
                np.sort(random.integers(0, capacity, batch)).astype(np.uint32),
                random.exponential(size=batch).astype(np.float32),
            )
            for _ in range(64)
        ]
    )


def check(name: str, memory: Memory, problem: Problem) -> None:
    """Raise AssertionError if a memory does not draw by priority^alpha."""
    call = memory.sample(BATCHES[-1])
    slots = np.concatenate([call().copy() for _ in range(-(-CHECKED // BATCHES[-1]))])
    law = problem.priorities**ALPHA
    part = np.argsort(np.argsort(law)) * PARTS // len(law)
    expected = np.bincount(part, weights=law) / law.sum()
    found = np.bincount(part[slots], minlength=PARTS) / len(slots)
    assert np.abs(found / expected - 1).max() < 0.1, f"{name} draws from another distribution"


def measure(report: Report, systems: dict[str, Memory], rounds: int) -> None:
    """All cases."""
    for batch in BATCHES:
        calls = {name: System(each.sample(batch), batch) for name, each in systems.items()}
        record(report, f"sample {batch}", calls, rounds)
    plain = {name: each for name, each in systems.items() if name != WEIGHTED}
    for batch in BATCHES:
        calls = {name: System(each.update(batch), batch) for name, each in plain.items()}
        record(report, f"update {batch}", calls, rounds)
    calls = {name: System(each.push, PUSHED) for name, each in plain.items()}
    record(report, f"push {PUSHED}", calls, rounds)


def record(report: Report, case: str, calls: dict[str, System], rounds: int) -> None:
    """Time the systems, and record rates, times and ratios."""
    timings = interleave(calls, rounds)
    report.add_rates(case, timings, "items")
    for name, timing in timings.items():
        report.add(case, name, "CPU time per item", "us", 1e6 * timing.cpu)
        if name != CPPRB:
            report.add_ratio(case, name, CPPRB, timings, METRIC)


def claims(report: Report) -> None:
    """Return the targets."""
    for batch in BATCHES:
        text = f"sample {batch} of 40 B items at {CAPACITY:,}: times as fast as cpprb"
        report.claim(text, 4.0, [f"sample {batch}"], CORE, CPPRB, METRIC)


def main(arguments: Sequence[str] | None = None) -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds: under a minute")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args(arguments)
    report = Report(
        PACKAGES, "replay_core", quick=options.quick, seeds="fixed, of NumPy's generators"
    )
    problem = make_problem(CAPACITY)
    systems = {CORE: core(problem), WEIGHTED: core(problem, weighted=True)}
    try:
        systems[CPPRB] = cpprb(problem)
    except ImportError as error:
        warn(f"cpprb does not run, and claims are null: {error}")
    for name, memory in systems.items():
        check(name, memory, problem)
    measure(report, systems, 9 if options.quick else 25)
    claims(report)
    report.finish(options.json, Console(width=160))


if __name__ == "__main__":
    hold_to_one_core()
    main()
