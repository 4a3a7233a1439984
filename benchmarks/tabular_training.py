"""End to end: collecting experience, and training on all DPUs with merges."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import PER_CORE, Report, System, interleave, one_core, warn
from tabular_systems import Log

from accel_rl import datasets, native, pim, tabular
from accel_rl.pim import merge_native
from pim_emu import dpu_mesh

COLLECTED = 5_000_000
GYMNASIUM_STEPS = 50_000
NUM_DPUS = 2_000
COLLECT, GYMNASIUM = "accel_rl collect", "Gymnasium loop"
MERGE = "accel_rl merge, visits"


def collection_case(environment: str) -> str:
    """Return the case's name in records."""
    return f"{environment}, random policy, {COLLECTED:,} transitions"


def collection(report: Report, log: Log, rounds: int) -> None:
    """Transitions collected, against a Python loop around the Gymnasium environment."""
    systems = {
        COLLECT: System(
            lambda: jax.block_until_ready(datasets.collect(log.mdp, "random", COLLECTED)),
            COLLECTED,
        )
    }
    loop = _gymnasium_loop(log.environment)
    if loop is not None:
        systems[GYMNASIUM] = System(loop, GYMNASIUM_STEPS)
    with one_core():
        timings = interleave(systems, rounds)
    case = collection_case(log.environment)
    report.add_rates(case, timings, "transitions", wall=True)
    for clock in ("per core-second", "per second"):
        report.add_ratio(case, COLLECT, GYMNASIUM, timings, f"transitions {clock}")


def _gymnasium_loop(environment: str) -> Callable[[], Any] | None:
    try:
        import gymnasium
    except ImportError:
        warn("Gymnasium is not installed: collection has no rival")
        return None
    env: Any = gymnasium.make(environment, disable_env_checker=True)
    actions = np.random.default_rng(0).integers(env.action_space.n, size=GYMNASIUM_STEPS).tolist()

    def loop() -> list[tuple[Any, ...]]:
        rows = []
        state, _ = env.reset(seed=0)
        for action in actions:
            next_state, reward, terminated, truncated, _ = env.step(action)
            rows.append((state, action, reward, next_state, terminated))
            state = env.reset()[0] if terminated or truncated else next_state
        return rows

    return loop


def training(report: Report, log: Log, numerics: str, passes: int, rounds: int) -> None:
    """`pim.train` with a merge after each pass, on one and on two devices; and a merge by itself.

    Loading the rows into the emulated memories is part of training, compilation is not.
    """
    num_rows = log.transitions.state.shape[0]
    chunks = pim.partition(log.transitions, NUM_DPUS, log.mdp.num_states, log.mdp.num_actions)
    rule = tabular.q_learning(tabular.make_numerics(numerics))

    def train(num_devices: int) -> System:
        backend = pim.jax_backend(dpu_mesh(jax.local_devices()[:num_devices]))

        def run() -> None:
            schedule = pim.MergeSchedule(passes=passes)
            result = pim.train(chunks, rule=rule, schedule=schedule, backend=backend)
            jax.block_until_ready(result.tables)

        return System(run, num_rows * passes)

    one, two = "accel_rl train, 1 device", "accel_rl train, 2 devices"
    systems = {one: train(1), MERGE: _merge(log, rule, num_rows)}
    if len(jax.local_devices()) > 1:
        systems[two] = train(2)
    else:
        warn("there is one CPU device only: no training on two")
    timings = interleave(systems, rounds)
    merge = timings.pop(MERGE)
    case = f"{log.environment}, {NUM_DPUS} DPUs, {numerics}, {passes} passes, {passes} merges"
    report.add_rates(case, timings, wall=True)
    for name, timing in timings.items():
        report.add(case, name, "passes per second", "1/s", 1 / (timing.wall * num_rows))
    for metric in (PER_CORE, "updates per second"):
        report.add_ratio(case, two, one, timings, metric)
    report.add(case, MERGE, "CPU time of one", "ms", merge.cpu * 1e3)
    share = merge.cpu / (timings[one].cpu * num_rows)
    report.add(case, MERGE, "share of training's CPU time", "%", share * 100)


def _merge(log: Log, rule: tabular.TabularRule, num_rows: int) -> System:
    """One visit-weighted merge of tables that differ, on one device, as training does it."""
    entries = log.mdp.num_states * log.mdp.num_actions
    draw = np.random.default_rng(0)
    dtype = rule.numerics.dtype
    tables = jnp.asarray(draw.normal(scale=1000, size=(NUM_DPUS, entries)).astype(dtype))
    visits = jnp.asarray(draw.integers(3, size=tables.shape), jnp.uint32)
    base, alpha = jnp.zeros(entries, dtype), jnp.float32(0.1)
    form = merge_native if native.why_absent() is None else pim
    merge = jax.jit(form.merge_tables, static_argnums=(0, 5))

    def run() -> None:
        merge("visits", tables, base, visits, alpha, 2 * num_rows).block_until_ready()

    return System(run, 1)
