"""The cases of `replay.py`: which systems run side by side, and what is recorded of them."""

import dataclasses
from collections.abc import Callable, Mapping

from common import Report, System, Timing, interleave
from replay_agreement import check_agreement
from replay_calls import Caller, Compiled, Make, make_rivals, system_of
from replay_loops import Loop, learner_loop, sampling_loop, seeds_loop, step_loop
from replay_memories import (
    AMPER_FR,
    AMPER_K,
    AMPER_MATCH,
    AUTO,
    DOCUMENTED,
    FLASHBAX_UNIFORM,
    INTERFACE,
    INTERFACE_UNIFORM,
    RANK,
    REMEDY,
    TREE,
    UNIFORM,
    Memory,
    Problem,
    make_memories,
)

LEAST = "least CPU time"  # over rounds: what claims about a CPU compare, held to one core
LEAST_WALL = "least wall time"  # likewise, about an accelerator
PROPORTIONAL = (AUTO, TREE, DOCUMENTED, REMEDY)
FLOOR = (UNIFORM, FLASHBAX_UNIFORM)
APPROXIMATE = (AMPER_FR, AMPER_MATCH, AMPER_K, RANK)
SAME_INTERFACE = (INTERFACE, DOCUMENTED, REMEDY, INTERFACE_UNIFORM, FLASHBAX_UNIFORM)
SAMPLED = (AUTO, TREE, UNIFORM, DOCUMENTED, *APPROXIMATE)  # alone, without updates
CALLED = (AUTO, TREE, DOCUMENTED, UNIFORM)  # from Python
BASES = (AUTO, TREE, INTERFACE)  # whose speed-ups over the rest are recorded
CALLS = ", sample + update calls"  # of what is called from Python at each step
SHORTER = {100_000: 2, 1_000_000: 4, 2**20: 4}  # loops over large memories


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of the benchmark: where figures go, and how long to measure."""

    report: Report
    rounds: int
    steps: int  # of the longest loop
    rivals: Mapping[str, Make] = dataclasses.field(default_factory=dict)

    def steps_at(self, capacity: int) -> int:
        """Return the steps of a loop over a buffer of a capacity."""
        return max(1, self.steps // SHORTER.get(capacity, 1))


def step_case(capacity: int, batch_size: int) -> str:
    """Return the name in records of a step in a compiled loop."""
    return f"step in a scan, capacity {capacity:,}, batch {batch_size}"


def learner_case(capacity: int, batch_size: int) -> str:
    """Return the name in records of a step that also learns."""
    return f"step with a learner in a scan, capacity {capacity:,}, batch {batch_size}"


def interface_case(capacity: int, batch_size: int) -> str:
    """Return the name in records of a step through flashbax's functions."""
    return f"step through flashbax's interface in a scan, capacity {capacity:,}, batch {batch_size}"


def seeds_case(capacity: int, batch_size: int, seeds: int) -> str:
    """Return the name in records of a step of several memories at once."""
    return f"step of {seeds} vmapped seeds in a scan, capacity {capacity:,}, batch {batch_size}"


def sampling_case(capacity: int, batch_size: int, law: str = "heavy") -> str:
    """Return the name in records of sampling without updates, from priorities of some law."""
    case = f"sampling alone in a scan, capacity {capacity:,}, batch {batch_size}"
    return case if law == "heavy" else f"{case}, {law} priorities"


def call_case(what: str, capacity: int, batch_size: int) -> str:
    """Return the name in records of Python calls that "sample" or "update"."""
    return f"Python call to {what}, capacity {capacity:,}, batch {batch_size}"


def steps(run: Run, problem: Problem, batch_size: int) -> None:
    """Return a step in a compiled loop, against flashbax, uniform replay, and calls from Python."""
    memories = make_memories(PROPORTIONAL + FLOOR, problem, batch_size)
    rivals = make_rivals(run.rivals, problem, batch_size)
    check_agreement(problem, rivals | _callers(memories, problem, batch_size))
    count = run.steps_at(problem.capacity)

    def make(name: str, memory: Memory) -> Loop:
        return step_loop(name, memory, problem, batch_size, count)

    case = step_case(problem.capacity, batch_size)
    called = {name + CALLS: system_of(rival, "sample", "update") for name, rival in rivals.items()}
    _time(run, case, "step", _loops(run, case, problem, memories, make), count, called)


def interface_steps(run: Run, problem: Problem, batch_size: int) -> None:
    """Return a step by the same calls of flashbax and of `accel_rl.replay.flashbax`."""
    memories = make_memories(SAME_INTERFACE, problem, batch_size)
    check_agreement(problem, _callers(memories, problem, batch_size))
    count = run.steps_at(problem.capacity)

    def make(name: str, memory: Memory) -> Loop:
        return step_loop(name, memory, problem, batch_size, count)

    case = interface_case(problem.capacity, batch_size)
    _time(run, case, "step", _loops(run, case, problem, memories, make), count)


def learner_steps(run: Run, problem: Problem, batch_size: int) -> None:
    """Return a step with a small learner."""
    memories = make_memories((*PROPORTIONAL, UNIFORM), problem, batch_size)
    count = run.steps_at(problem.capacity)

    def make(name: str, memory: Memory) -> Loop:
        return learner_loop(name, memory, problem, batch_size, count)

    case = learner_case(problem.capacity, batch_size)
    _time(run, case, "step", _loops(run, case, problem, memories, make), count)


def seeds_steps(run: Run, problem: Problem, batch_size: int, seeds: int) -> None:
    """Return a step of several vmapped memories; times are for each of them."""
    memories = make_memories((*PROPORTIONAL, UNIFORM), problem, batch_size)
    count = max(1, run.steps_at(problem.capacity) // seeds)

    def make(name: str, memory: Memory) -> Loop:
        return seeds_loop(name, memory, problem, batch_size, count, seeds)

    case = seeds_case(problem.capacity, batch_size, seeds)
    loops = _loops(run, case, problem, memories, make)
    _time(run, case, "step and seed", loops, count * seeds)


def sampling(run: Run, problem: Problem, batch_size: int) -> None:
    """Time sampling alone, by the library's samplers and flashbax."""
    memories = make_memories(SAMPLED, problem, batch_size)
    count = max(1, run.steps_at(problem.capacity) // 4)
    loops = {name: sampling_loop(name, memory, problem, count) for name, memory in memories.items()}
    case = sampling_case(problem.capacity, batch_size, problem.law)
    _time(run, case, "batch", loops, count)


def calls(run: Run, problem: Problem, batch_size: int) -> None:
    """Call from Python: sampling with items and weights, and updating."""
    memories = make_memories(CALLED, problem, batch_size)
    callers: dict[str, Caller] = {
        name: Compiled(name, memory, problem, batch_size) for name, memory in memories.items()
    }
    rivals = make_rivals(run.rivals, problem, batch_size)
    check_agreement(problem, {k: v for k, v in (callers | rivals).items() if k != UNIFORM})
    callers |= rivals
    for what in ("sample", "update"):
        timed = {name: system_of(each, what) for name, each in callers.items()}
        if what == "update":
            timed.pop(UNIFORM, None)
        _time(run, call_case(what, problem.capacity, batch_size), "call", {}, 1, timed)


def _callers(
    memories: Mapping[str, Memory], problem: Problem, batch_size: int
) -> dict[str, Caller]:
    """Those of the memories that have not been checked yet, to be checked."""
    return {
        name: Compiled(name, memory, problem, batch_size)
        for name, memory in memories.items()
        if name in (*PROPORTIONAL, INTERFACE) and name not in problem.agreed
    }


def _loops(
    run: Run,
    case: str,
    problem: Problem,
    memories: Mapping[str, Memory],
    make: Callable[[str, Memory], Loop],
) -> dict[str, Loop]:
    """Return a loop for each memory; whole arrays that a step of each copies are recorded."""
    loops = {name: make(name, memory) for name, memory in memories.items()}
    for name, loop in loops.items():
        passes = [loop.passes(problem.capacity)]
        run.report.add(case, name, "whole arrays copied in a step", "", passes)
    return loops


def _time(
    run: Run,
    case: str,
    unit: str,
    loops: Mapping[str, Loop],
    work: float,
    more: Mapping[str, System] | None = None,
) -> None:
    """Time loops of so many units, and more systems, and record microseconds and speed-ups."""
    systems = {name: System(loop, work) for name, loop in loops.items()} | dict(more or {})
    record_times(run.report, case, unit, interleave(systems, run.rounds))


def record_times(report: Report, case: str, unit: str, timings: Mapping[str, Timing]) -> None:
    """Record least times, medians with quartiles, and speed-ups of `BASES` in wall time."""
    for system, timing in timings.items():
        report.add(case, system, f"{LEAST} for a {unit}", "us", [timing.cpu.min() * 1e6])
        report.add(case, system, f"{LEAST_WALL} for a {unit}", "us", [timing.wall.min() * 1e6])
        report.add(case, system, f"CPU time for a {unit}", "us", timing.cpu * 1e6)
        report.add(case, system, f"wall time for a {unit}", "us", timing.wall * 1e6)
    for base in (name for name in BASES if name in timings):
        for rival in (name for name in timings if name not in BASES):
            speedups = timings[rival].wall / timings[base].wall
            report.add(case, f"{base} over {rival}", "speed-up, round by round", "", speedups)
