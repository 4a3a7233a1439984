"""The parts of `accelerator.py` that measure speed, beside rivals, but for trainings."""

import contextlib
import functools
import importlib.util
import itertools
import os
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import replay_memories as memories
from accelerator_run import ROUNDS, Run
from common import Report, warn
from interpreter import Interpreter
from replay_agreement import check_agreement
from replay_calls import SCRIPT, TORCHRL, Torchrl
from replay_cases import CALLS, sampling_case, step_case
from replay_loops import Loop, sampling_loop, seeds_loop, step_loop
from replay_memories import DOCUMENTED, REMEDY, UNIFORM, Problem

from accel_rl import am, envs

STEP, BATCH_DRAWN = "step", "batch"
FORMS = ("wide", "rows", "pallas")
OURS = {form: f"accel_rl PER, {form}" for form in FORMS}
# The library's samplers by the names of the records.
memories.SAMPLERS.update({OURS[form]: ("prioritised", {"form": form}) for form in FORMS})
MATCHED: dict[str, tuple[str, dict[str, Any]]] = {
    "accel_rl AMPER-fr, match": ("amper_fr", {"form": "match"}),
    "accel_rl AMPER-k, match": ("amper_k", {"form": "match"}),
    "accel_rl AMPER-fr, rejection": ("amper_fr", {"form": "rejection"}),
}
memories.SAMPLERS.update(MATCHED)
RIVALS = (DOCUMENTED, REMEDY)
LARGE, BATCH, LARGE_BATCH = 2**20, 256, 4096
NUMERICS, STEP_SIZES = ("fp32", "int32_scaled"), 64  # of tables
COPY, PRODUCT = "copy", "product in float32, precision"
CALLED = 100  # calls between two looks at the clock


def per_case(capacity: int, batch_size: int) -> str:
    """Return the name in records of a step of prioritised replay in a compiled loop."""
    return f"PER {step_case(capacity, batch_size)}"


def called_case(capacity: int, batch_size: int) -> str:
    """Return the name in records of a step that is a call from Python."""
    return f"PER step called, capacity {capacity:,}, batch {batch_size}"


def replay_steps(run: Run) -> None:
    """Time steps of prioritised replay in a scan, by capacity, batch and seeds, and called."""
    small = 2**12
    sizes = [(run.size(small, LARGE), BATCH)]
    sizes += [(run.size(small, 2**17), BATCH), (run.size(small, 2**23), BATCH)]
    sizes += [(run.size(small, LARGE), run.size(BATCH, LARGE_BATCH))]
    for number, (capacity, batch) in enumerate(dict.fromkeys(sizes)):
        systems = (*OURS.values(), UNIFORM, *RIVALS) if number == 0 else OURS.values()
        problem = Problem(capacity)
        for name in systems:
            count = run.size(20, 200 if name in RIVALS else 1000)
            make = functools.partial(
                step_loop, name, problem=problem, batch_size=batch, steps=count
            )
            _loop(run, per_case(capacity, batch), name, batch, problem, make, count)
        if number == 0:
            _replay_targets(run, per_case(capacity, batch))
            for name in OURS.values():
                run.case(f"called, {name}", functools.partial(_called, run, name, problem, batch))
    capacity = run.size(2**10, 2**17)
    problem = Problem(capacity)
    for seeds, name in itertools.product(dict.fromkeys((16, run.size(16, 256))), OURS.values()):
        count = run.size(5, 100)
        make = functools.partial(
            seeds_loop, name, problem=problem, batch_size=BATCH, steps=count, seeds=seeds
        )
        case = f"{per_case(capacity, BATCH)}, {seeds} seeds"
        _loop(run, case, name, BATCH, problem, make, count)
    # Last, as nothing but the end of this part's time ends a process that hangs.
    problem = Problem(sizes[0][0])
    run.case(f"called, {TORCHRL}", functools.partial(_torchrl, run, problem, BATCH))


def _loop(
    run: Run,
    case: str,
    name: str,
    batch_size: int,
    problem: Problem,
    make: Callable[..., Loop],
    count: int,
    unit: str = STEP,
) -> None:
    def measure() -> None:
        memory = memories.make_memories([name], problem, batch_size).get(name)
        if memory is not None:
            loop = make(memory=memory)
            copied = [loop.passes(problem.capacity)]
            run.report.add(case, name, "whole arrays copied in a step", "", copied)
            run.time(case, name, unit, count, loop)

    run.case(f"{case}, {name}", measure)


def _replay_targets(run: Run, case: str) -> None:
    least = {name: run.least(case, name, STEP) for name in (*OURS.values(), DOCUMENTED)}
    by_xla = [least[OURS[form]] for form in ("wide", "rows") if least[OURS[form]]]
    by_pallas, rival = least[OURS["pallas"]], least[DOCUMENTED]
    best = [each for each in (*by_xla, by_pallas) if each]
    run.target(f"{case}, by XLA: steps in 30 us", 30 / min(by_xla) if by_xla else None, 1.0)
    run.target(f"{case}, by Pallas: steps in 12 us", 12 / by_pallas if by_pallas else None, 1.0)
    value = rival / min(best) if best and rival else None
    run.target(f"{case}: times as fast as {DOCUMENTED}", value, 8.0)


def _called(run: Run, name: str, problem: Problem, batch_size: int) -> None:
    """Time a step as a call from Python, whose state is donated."""
    memory = memories.make_memories([name], problem, batch_size)[name]
    items = jax.tree.map(jnp.asarray, memories.make_items(memories.ADDED, 3))

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state: Any, items: Any, key: jax.Array) -> Any:
        state = memory.add(state, items)
        drawn = memory.sample(state, key)
        return memory.update(state, drawn, drawn.probabilities + 1), drawn.items

    state, key = problem.full(name, memory), jax.random.key(1)

    def calls() -> Any:
        nonlocal state
        for _ in range(CALLED):
            state, batch = step(state, items, key)
        return state, batch

    run.time(called_case(problem.capacity, batch_size), name, STEP, CALLED, calls)


def _torchrl(run: Run, problem: Problem, batch_size: int) -> None:
    """Time calls of torchrl's tree on the device, or of the CPU's in a dry run.

    In a process of its own: two frameworks in one would share the CUDA libraries of the first.
    """
    case, rival = called_case(problem.capacity, batch_size), None
    device, count = ("cpu", 20) if run.dry_run else ("cuda", CALLED)
    try:
        if importlib.util.find_spec("torchrl") is None:
            raise ImportError("it is not installed")
        with contextlib.closing(Interpreter(sys.executable, SCRIPT, os.environ)) as python:
            torchrl = Torchrl(python, problem, batch_size, device)
            check_agreement(problem, {TORCHRL: torchrl})
            rounds = [torchrl.seconds(("sample", "update"), count) for _ in range(ROUNDS)]
    except (ImportError, RuntimeError) as error:
        warn(f"{TORCHRL} is left out: {error}")
    else:
        name = f"{TORCHRL}, {device.upper()} tree{CALLS}"
        taken = [1e6 * wall for _, wall in rounds]
        rival = min(taken)
        run.report.add(case, name, f"wall time for a {STEP}", "us", taken)
        run.report.add(case, name, f"least wall time for a {STEP}", "us", [rival])
    ours = [run.least(case, name, STEP) for name in OURS.values()]
    best = min((each for each in ours if each), default=None)
    value = rival / best if rival and best else None
    run.target(f"{case}: times as fast as {TORCHRL}'s CUDA tree{CALLS}", value, 1.0)


def match(run: Run) -> None:
    """Time batches of AMPER by search and by rejection, searches alone, and the device's limits."""
    run.case("limits", functools.partial(_limits, run))
    capacity = run.size(2**12, LARGE)
    problem = Problem(capacity)
    case = sampling_case(capacity, BATCH)
    for name in (*MATCHED, OURS["rows"], OURS["pallas"], UNIFORM):
        count = run.size(20, 500)
        make = functools.partial(sampling_loop, name, problem=problem, steps=count)
        _loop(run, case, name, BATCH, problem, make, count, BATCH_DRAWN)
    least = run.least(case, "accel_rl AMPER-fr, match", BATCH_DRAWN)
    run.target("AMPER-fr by match at 2^20: batches in 20 us", 20 / least if least else None, 1.0)
    for form in ("xla", "pallas"):
        run.case(f"search, {form}", functools.partial(_search, run, form, capacity))


def _search(run: Run, form: str, capacity: int) -> None:
    keys = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, capacity, dtype=np.uint32))
    queries, count = keys[:20], run.size(20, 500)

    @jax.jit
    def search(keys: jax.Array) -> Any:
        def step(shift: jax.Array, _: None) -> Any:
            radii = jnp.full(20, 2**24, jnp.uint32)
            words, found = am.search_packed(keys, queries + shift, radii=radii, form=form)
            return shift + found.astype(jnp.uint32) % 7, words[0]

        return jax.lax.scan(step, jnp.uint32(0), None, count)

    case = f"search of 20 radii in a scan, {capacity:,} keys"
    run.time(case, f"accel_rl, {form}", "search", count, lambda: search(keys))


def _limits(run: Run) -> None:
    """Record what the device copies and multiplies in a second, the bounds of all else."""
    size = run.size(2**20, 2**28)
    values = jnp.arange(size, dtype=jnp.float32)
    copy = jax.jit(lambda x: x + 1)
    least = run.time("limits", COPY, "copy", 1, lambda: copy(values))
    run.report.add("limits", COPY, "bytes read and written", "GB/s", [8e-3 * size / least])
    width = run.size(256, 4096)
    left = jax.random.normal(jax.random.key(0), (width, width))
    for precision in ("highest", "default"):
        product = jax.jit(lambda x, precision=precision: jnp.matmul(x, x, precision=precision))
        name = f"{PRODUCT} {precision}"
        least = run.time("limits", name, "product", 1, lambda product=product: product(left))
        run.report.add("limits", name, "operations", "TFLOP/s", [2e-6 * width**3 / least])


def add_shares(report: Report) -> None:
    """Record the shares of the device's limits that trainings and tables reach.

    The limits were measured by another process than these, so the whole report is needed.
    """
    # Trainings multiply in JAX's default precision.
    for unit, limit, share in (
        ("TFLOP/s", f"{PRODUCT} default", "share of the rate of matrix products"),
        ("GB/s", COPY, "share of the rate of copies"),
    ):
        found = {each.place[:2]: each.value for each in report.records if each.unit == unit}
        peak = found.get(("limits", limit))
        for (case, system), value in found.items():
            if peak is not None and case != "limits":
                report.add(case, system, share, "", [value / peak])


def tabular(run: Run) -> None:
    """Time passes of Q-learning with all chunks at once, for one step size and for several."""
    for chunks, alphas in ((2_560, 1), (run.size(64, 20_480), 1), (2_560, run.size(4, STEP_SIZES))):
        run.case(f"tabular, {chunks}", functools.partial(_tabular, run, chunks, alphas))


def _tabular(run: Run, chunks: int, alphas: int) -> None:
    from tabular_systems import JaxPass, Log
    from tabular_systems import Problem as Rows

    from accel_rl import datasets

    mdp = envs.make_mdp("FrozenLake-v1")
    rows = run.size(20_000, 2_000_000)
    log = Log("FrozenLake-v1", mdp, datasets.collect(mdp, "random", rows).transitions)
    for numerics in NUMERICS:
        problem = Rows(log, rows, chunks, numerics, 4)
        swept = JaxPass(problem, "batched", np.linspace(0.05, 0.5, alphas).astype(np.float32))
        case = f"Q-learning, {rows:,} rows, {chunks:,} DPUs, {alphas} step sizes, {numerics}"
        least = run.time(case, "accel_rl, batched", "pass", 1, swept)
        run.report.add(case, "accel_rl, batched", "updates", "G/s", [rows * alphas / least / 1000])
        # A row of 16 B, A values of the next state, and a value read and written.
        moved = rows * (16 + alphas * 4 * (mdp.num_actions + 2))
        run.report.add(case, "accel_rl, batched", "bytes moved", "GB/s", [moved / least / 1000])


def compose(run: Run) -> None:
    """Plan a training over CPU and accelerator, and run every mapping beside its prediction."""
    run.case("compose", functools.partial(_compose, run))


def _compose(run: Run) -> None:
    from accel_rl import compose as composer
    from accel_rl import experiment

    platform = jax.devices()[0].platform
    names = ("cpu:0",) if platform == "cpu" else ("cpu:0", f"{platform}:0")
    sizes = {"replay.batch_size": 256, "replay.capacity": 16_384, "schedule.num_envs": 32}
    given = {"compose.devices": names, **sizes}
    wanted = experiment.load(None, given, agent="dqn", environment="CartPole-v1", command="compose")
    plan = composer.plan(wanted, seconds=0.05)
    best = plan.best.mapping
    schedule, case = wanted.program.schedule, "composed DQN on CartPole-v1, batch 256"
    taken = {}
    for each in plan.estimates:
        period = max(2, int(0.1 / each.seconds)) * schedule.steps
        steps = schedule.warmup * schedule.steps + 4 * period
        ran = composer.run(wanted, each.mapping, jax.random.key(0), steps, period=period)
        taken[each.mapping] = ran.seconds
        for metric, seconds in (("predicted", each.seconds), ("measured", ran.seconds)):
            run.report.add(
                case, str(each.mapping), f"{metric} time of an iteration", "us", [seconds * 1e6]
            )
        run.keep()
    over = taken[best] / min(taken.values())
    run.report.add(case, "chosen mapping", "time over that of the fastest", "", [over])
