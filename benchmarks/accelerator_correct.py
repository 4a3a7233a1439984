"""The parts of `accelerator.py` that compare an accelerator with the CPU, NumPy and counts."""

import functools
import itertools
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import training_ours
from accelerator_run import Run, cpu, difference
from training_settings import SETTINGS

from accel_rl import am, pim, replay, tabular, train
from accel_rl.io import Checkpoints
from accel_rl.replay.form_choice import fastest
from accel_rl.replay.prioritised import ON_ACCELERATORS
from accel_rl.replay.rank_based import rank_edges
from accel_rl.testing import assert_inplace
from accel_rl.types import TabularTransition
from pim_emu import dpu_map, dpu_mesh

PROPORTIONAL = ("wide", "rows", "pallas", "tree")
# Samplers whose probabilities are known before the draws, and those that estimate them.
EXACT: dict[str, replay.MakeSampler] = {
    "uniform": replay.uniform(),
    **{f"PER, {form}": replay.prioritised(form) for form in PROPORTIONAL},
    "rank-based": replay.rank_based(),
}
ESTIMATED = {
    "AMPER-fr, match": replay.amper_fr(form="match"),
    "AMPER-k, match": replay.amper_k(form="match"),
}
COPIED_ON_CPU = ("PER, wide", "PER, pallas")  # by XLA, and by Pallas's interpreter
SORT_BYTES = 40  # an item, of temporary memory while rank-based replay sorts
BATCH, CALLS = 4096, 8192  # 32 draws of each of 2^20 items
FEW = 64  # in a batch whose arrays are smaller than those of the buffer
CLASSES = 256  # of slots of alike mass, for chi-square
LARGEST = 5.2  # of a standard normal: a right sampler fails in 2 of 10^7 runs
PARTS = 16  # of all items, for draws by estimated probabilities
NEAR = 0.02  # relative error of estimated probabilities over a part, beyond noise
CLOSE = 1e-3  # of a training that computes in float32 elsewhere
RULES = tuple(tabular.RULES)
ORDERS, NUMERICS = ("SEQ", "STR", "RAN"), ("int32_scaled", "int32_pow2", "fp32")
QUERIES = 20
SEARCHES = tuple(
    itertools.product(("uint32", "uint16", "uint8"), ("radii", "dont_cares"), ("xla", "pallas"))
)


def samplers(run: Run) -> None:
    """Draws of each sampler: by chi-square, with exact probabilities, in place."""
    capacity = run.size(2**14, 2**20)
    for name in EXACT:
        # The tree reads 20 levels, one after the other; Pallas's interpreter is slow.
        full, small = (1024 if "tree" in name else CALLS), (16 if "pallas" in name else 128)
        draws = functools.partial(_draws, run, name, capacity, run.size(small, full))
        run.case(f"draws by {name}", draws)
    for name, sampler in {**EXACT, **ESTIMATED}.items():
        if name not in COPIED_ON_CPU or cpu() != jax.devices()[0]:
            few = replay.make(np.int32(0), run.size(2**16, capacity), FEW, sampler)
            run.case(f"{name} in place", functools.partial(_in_place, run, name, few))
    for name in ESTIMATED:
        shares = functools.partial(_shares, run, name, capacity, run.size(1024, CALLS))
        run.case(f"draws by {name}", shares)
    run.case("form of PER by auto", functools.partial(_chosen, run, capacity))
    for name in ("rank-based", *ESTIMATED):
        run.case(f"{name} on the CPU", functools.partial(_as_on_cpu, run, name, capacity))


def _filled(memory: replay.Replay, priorities: Any, **hyper: float) -> Any:
    state = memory.init(**hyper)
    return memory.add(state, jnp.arange(len(priorities), dtype=jnp.int32), priorities)


def _heavy_tailed(capacity: int) -> np.ndarray:
    return np.random.default_rng(1).lognormal(sigma=1.5, size=capacity).astype(np.float32)


def _permuted(capacity: int) -> np.ndarray:
    """Return 0, 1, ... shuffled: priorities whose ranks do not depend on a sort of equals."""
    return np.random.default_rng(1).permutation(capacity)


def _law(name: str, capacity: int) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Return priorities, probabilities up to a factor, and hyper-parameters."""
    heavy = _heavy_tailed(capacity)
    if name == "uniform":
        return heavy, np.ones(capacity), {}
    if name != "rank-based":
        return heavy, heavy.astype(float), {"alpha": 1.0}
    ranks, edges = _permuted(capacity), rank_edges(capacity)
    density = np.repeat(((edges[1:] + edges[:-1] + 1) / 2) ** -0.7, np.diff(edges))
    return np.float32(capacity - ranks), density[ranks], {"alpha": 0.7}


def _draws(run: Run, name: str, capacity: int, calls: int) -> None:
    memory = replay.make(np.int32(0), capacity, BATCH, EXACT[name], stratified=False)
    priorities, law, hyper = _law(name, capacity)
    exact = law / law.sum()

    @jax.jit
    def draw(priorities: jax.Array, exact: jax.Array) -> Any:
        state = _filled(memory, priorities, **hyper)

        def step(carry: Any, key: jax.Array) -> Any:
            counts, error = carry
            drawn = memory.sample(state, key)
            errors = jnp.abs(drawn.probabilities / exact[drawn.indices] - 1)
            return (counts.at[drawn.indices].add(1), jnp.maximum(error, errors.max())), None

        carry = jnp.zeros(capacity, jnp.int32), jnp.float32(0)
        return jax.lax.scan(step, carry, jax.random.split(jax.random.key(2), calls))[0]

    drawn, error = map(np.asarray, draw(priorities, exact.astype(np.float32)))
    run.expect(f"{name}: probabilities against float64, relative", float(error), 1e-4)
    number = calls * BATCH
    ends = np.cumsum(exact)
    classes = np.minimum((ends - exact / 2) * CLASSES, CLASSES - 1).astype(int)
    expected = np.bincount(classes, exact, CLASSES) * number
    counts = np.bincount(classes, drawn, CLASSES)
    some = expected > 0  # one heavy item may take the place of several classes
    degrees = some.sum() - 1
    per_degree = ((counts - expected)[some] ** 2 / expected[some]).sum() / degrees
    run.report.add(
        f"draws by {name}", "accelerator", "chi^2 per degree of freedom", "", [per_degree]
    )
    # Wilson and Hilferty: the cube root of a chi-square over its degrees is about normal.
    spread = 2 / (9 * degrees)
    normal = (per_degree ** (1 / 3) - (1 - spread)) / np.sqrt(spread)
    run.expect(f"{name}: chi^2 of {number:,} draws, as a normal deviate", abs(normal), LARGEST)
    missed = int(((exact * number > 30) & (drawn == 0)).sum())
    run.expect(f"{name}: items expected 30 times or more that were not drawn", missed)


def _shares(run: Run, name: str, capacity: int, calls: int) -> None:
    """Compare weighted shares of draws with shares of items, part by part."""
    # No chi-square: the draws of a call share a candidate set, and probabilities are estimates,
    # whose errors 2^25 draws would show. But a draw weighted by 1 / (N P) counts 1 / N for each
    # item on average. Calls are independent, so their spread is the noise of that average. Coverage
    # is that of parts, because an item may be in no set for hundreds of calls.
    memory = replay.make(np.int32(0), capacity, BATCH, ESTIMATED[name])
    slots, values = np.arange(capacity), _permuted(capacity)
    # By place, by bit of the packed lines that a search returns, and by priority.
    parts = np.int32([slots * PARTS // capacity, slots % PARTS, values * PARTS // capacity])

    @jax.jit
    def draw(priorities: jax.Array, parts: jax.Array) -> jax.Array:
        state = _filled(memory, priorities)

        def step(carry: None, key: jax.Array) -> Any:
            drawn = memory.sample(state, key)
            weights = PARTS / (BATCH * capacity) / drawn.probabilities
            sums = jax.vmap(lambda part: jnp.zeros(PARTS).at[part].add(weights))
            return carry, sums(parts[:, drawn.indices])

        return jax.lax.scan(step, None, jax.random.split(jax.random.key(2), calls))[1]

    found = np.asarray(draw(np.float32(values + 1), parts), float)  # [calls, 3, PARTS], of mean 1
    error, noise = found.mean(axis=0) - 1, found.std(axis=0) / np.sqrt(calls)
    for kind, each, spread in zip(("place", "bit", "priority"), error, noise, strict=True):
        what = f"relative error of shares by {kind}"
        run.report.add(f"draws by {name}", "accelerator", what, "", [np.abs(each).max()])
        beyond = np.max(np.abs(each) - LARGEST * spread).clip(0)
        run.expect(f"{name}: {what}, beyond {LARGEST} deviations of noise", beyond, NEAR)


def _chosen(run: Run, capacity: int) -> None:
    """Choose the form of PER as "auto" does; in a dry run without the slow interpreter."""
    ring = replay.Ring(capacity)
    forms = ON_ACCELERATORS[: run.size(2, 3)]
    makers = {form: functools.partial(replay.prioritised(form), ring, False) for form in forms}
    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always")
        chosen = fastest(makers, ring)
    run.report.add("form of PER by auto", chosen, f"chosen of {', '.join(forms)}", "", [1.0])
    run.expect("forms of PER that auto leaves out", len(left_out))


def _in_place(run: Run, name: str, memory: replay.Replay) -> None:
    def step(state: Any, item: jax.Array, key: jax.Array, priorities: jax.Array) -> Any:
        state = memory.add(state, item)
        drawn = memory.sample(state, key)
        return memory.update(state, drawn, priorities + drawn.probabilities)

    arguments = jnp.int32(0), jax.random.key(0), jnp.ones(FEW)
    sorts = SORT_BYTES * memory.parts[1].ring.capacity if name == "rank-based" else None
    try:
        assert_inplace(step, memory.init(), *arguments, least_bytes=2**18, temporary_bytes=sorts)
        copied = 0
    except AssertionError:
        copied = 1
    run.expect(f"{name}: whole arrays are copied or rewritten in a step", copied)


def _as_on_cpu(run: Run, name: str, capacity: int) -> None:
    """Compare slots for one key: powers and sums may round otherwise, and move a few."""
    sampler = {**EXACT, **ESTIMATED}[name]
    memory, priorities = replay.make(np.int32(0), capacity, BATCH, sampler), _heavy_tailed(capacity)

    def draw(priorities: jax.Array) -> jax.Array:
        return memory.sample(_filled(memory, priorities), jax.random.key(3)).indices

    found = jax.jit(draw)(priorities)
    with jax.default_device(cpu()):
        wanted = jax.jit(draw)(priorities)
    differing = np.mean(np.asarray(found) != np.asarray(wanted))
    run.expect(f"{name}: share of draws that are not the CPU's", differing, 0.01)


def searches(run: Run) -> None:
    """Search associative memory by both forms, and compare with NumPy."""
    for dtype, kind, form in SEARCHES:
        name = f"search by {kind}, {dtype}, {form}"
        run.case(name, functools.partial(_search, run, name, dtype, kind, form))


def _search(run: Run, name: str, dtype: Any, kind: str, form: str) -> None:
    rng, top = np.random.default_rng(4), int(np.iinfo(dtype).max)
    keys = rng.integers(0, top, run.size(5_000, 2**20 - 5), dtype=dtype, endpoint=True)
    queries = rng.integers(0, top, QUERIES, dtype=dtype, endpoint=True)
    seconds = (np.array(top >> 6) >> (np.arange(QUERIES) % 8)).astype(dtype)
    truth = np.zeros(keys.size, bool)
    for query, second in zip(queries, seconds, strict=True):
        if kind == "radii":
            truth |= np.abs(keys.astype(np.int64) - int(query)) <= int(second)
        else:
            truth |= ((keys ^ query) & ~second) == 0
    search = jax.jit(functools.partial(am.search_packed, form=form))
    words, count = search(keys, queries, **{kind: seconds})
    wrong = int((np.asarray(am.unpack(words, keys.size)) != truth).sum())
    run.expect(f"{name}: wrong lines", wrong + abs(int(count) - int(truth.sum())))


def tabular_cases(dry_run: bool) -> Iterator[tuple[str, str, str]]:
    """Yield rules, orders and numerics: first what covers each of them, then the rest."""
    first = [(rule, "SEQ", NUMERICS[0]) for rule in RULES]
    first += [(RULES[0], order, number) for order in ORDERS for number in NUMERICS]
    rest = [] if dry_run else itertools.product(RULES, ORDERS, NUMERICS)
    yield from dict.fromkeys([*first, *rest])


def tabular_training(run: Run) -> None:
    """Compare tables with the CPU's, bit for bit in fixed point; and `dpu_map`."""
    run.case("dpu_map", functools.partial(_dpu_map, run))
    for rule, order, numerics in tabular_cases(run.dry_run):
        name = f"{rule}, {order}, {numerics}"
        run.case(name, functools.partial(_tabular, run, name, rule, order, numerics))


def _tabular(run: Run, name: str, rule: str, order: str, numerics: str) -> None:
    rng, rows, states, actions = np.random.default_rng(5), 20_000, 64, 4
    log = TabularTransition(
        state=rng.integers(states, size=rows, dtype=np.int32),
        action=rng.integers(actions, size=rows, dtype=np.int32),
        reward=rng.integers(-1, 2, size=rows).astype(np.float32),
        next_state=rng.integers(states, size=rows, dtype=np.int32),
        discount=(rng.random(rows) < 0.9).astype(np.float32),
        next_action=rng.integers(actions, size=rows, dtype=np.int32),
    )
    chunks = pim.partition(log, 64, states, actions)
    options: dict[str, Any] = {
        "rule": tabular.make_rule(rule, tabular.make_numerics(numerics)),
        "schedule": pim.MergeSchedule(passes=2),
        "order": order,
    }
    tables = []
    for device, path in ((jax.devices()[0], "batched"), (cpu(), "reference")):
        with jax.default_device(device):
            backend = pim.jax_backend(dpu_mesh([device]), path)
            tables.append(np.asarray(pim.train(chunks, backend=backend, **options).tables))
    if numerics == "fp32":
        run.expect(f"{name}: tables against the CPU's", difference(*tables), 1e-5)
    else:
        run.expect(f"{name}: entries that are not the CPU's", int((tables[0] != tables[1]).sum()))


def digest(row: jax.Array) -> jax.Array:
    """Return a sum of integers that wraps, as a DPU's program does."""
    return (row ^ (row >> 3)).sum(dtype=jnp.int32)


def _dpu_map(run: Run) -> None:
    rows = np.random.default_rng(6).integers(0, 2**31, (1000, 77), dtype=np.int32)
    mapped = jax.jit(dpu_map(digest))(rows)
    with np.errstate(over="ignore"):
        wanted = (rows ^ (rows >> 3)).sum(axis=1, dtype=np.int32)
    run.expect(
        "dpu_map: DPUs whose sums are not NumPy's", int((np.asarray(mapped) != wanted).sum())
    )


def training(run: Run) -> None:
    """Train fused as on the CPU, and go on from a checkpoint as if nothing had been."""
    run.case("fused", functools.partial(_fused, run))
    run.case("resume", functools.partial(_resume, run))


def _hyper() -> dict[str, Any]:
    """Act at random, so that rounding changes no action, and what follows stays comparable."""
    hyper = training_ours.hyperparameters(SETTINGS["A"], 10_000)
    return {**hyper, "agent": {**hyper["agent"], "epsilon_end": 1.0}}


def _program() -> train.Program:
    return training_ours.make_program(SETTINGS["A"])


def _fused(run: Run) -> None:
    steps = 2_000  # of ten environments: 100 updates after the first 1,000
    found = []
    for device in (jax.devices()[0], cpu()):
        with jax.default_device(device), jax.default_matmul_precision("highest"):
            trained = jax.jit(train.fused(_program(), steps, period=500))
            found.append(jax.device_get(trained(jax.random.key(7), **_hyper()).state))
    run.expect("fused, 100 updates: parameters", difference(*(x.agent for x in found)), CLOSE)
    run.expect("fused, 2,000 steps: replay buffer", difference(*(x.replay for x in found)), CLOSE)


def _resume(run: Run) -> None:
    options: dict[str, Any] = {"period": 500, "hyper": _hyper()}
    whole = train.run(_program(), jax.random.key(8), 2_000, **options).state
    with tempfile.TemporaryDirectory() as folder:
        kept = Checkpoints(Path(folder) / "checkpoints", every=500)
        stop = train.stop_at("steps", 1_000)
        train.run(_program(), jax.random.key(8), 2_000, checkpoints=kept, stop=stop, **options)
        again = train.run(
            _program(), jax.random.key(8), 2_000, checkpoints=kept, resume=True, **options
        ).state
    run.expect("resumed: difference from the uninterrupted training", difference(whole, again))


def pipelined(run: Run) -> None:
    """Train with acting and replay on the CPU and learning on the accelerator, as fused does."""
    run.case("pipelined", functools.partial(_pipelined, run))


def _pipelined(run: Run) -> None:
    steps, key = 2_000, jax.random.key(9)
    with jax.default_matmul_precision("highest"):
        fused = jax.jit(train.fused(_program(), steps, period=500))(key, **_hyper()).state
        for name, where in {
            "replay on the CPU": train.Placement(act=cpu(), replay=cpu(), learn=jax.devices()[0]),
            "replay on the accelerator": train.Placement(
                act=cpu(), replay=jax.devices()[0], learn=jax.devices()[0]
            ),
        }.items():
            made = train.pipelined(
                _program(), key, steps, placement=where, hyper=_hyper(), period=500, warn=False
            )
            gap = difference(fused.agent, made.state.agent)
            run.expect(f"pipelined, {name}: parameters against the fused", gap, CLOSE)
