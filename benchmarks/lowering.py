"""Programs of the library lowered for GPUs, on a machine without one.

    python benchmarks/lowering.py [--quick] [--json PATH]

`jax.export` lowers each program for CUDA, and Pallas's kernels down to Triton's intermediate
representation, so that what a GPU cannot take is found without one. Recorded of each: the time of
tracing and lowering, the size of the StableHLO module, the custom calls in it, and how many leaves
of the donated state the module may write in place (those that it reads at all). Nothing is compiled
for a GPU, and nothing is run. C kernels are switched off, as a GPU has none. The programs are those
of `accelerator.py`, at one size each, with the forms that a GPU runs: "auto" would be resolved for
the CPU. Left out is brax, which is not installed beside the rest.
"""

import argparse
import functools
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

os.environ["ACCEL_RL_KERNELS"] = ""

import accelerator_correct as correct
import accelerator_fast as fast
import jax
import jax.numpy as jnp
import numpy as np
import training_ours
from common import Claim, Report
from jax import export
from rich.console import Console
from tabular_systems import JaxPass, Log, Problem
from training_settings import SETTINGS

from accel_rl import am, datasets, envs, experiment, pim, replay, tabular, train
from accel_rl.types import PyTree, TabularTransition, Transition
from pim_emu import dpu_map, dpu_mesh

PACKAGES = ("jax", "jaxlib", "accel-rl")
CAPACITY, BATCH, SEEDS = fast.LARGE, fast.BATCH, 16
DPUS, ROWS = 2_560, 100  # rows of each
PLATFORM = "cuda"
LOWERED = f"lowered for {PLATFORM}"
LEAST_SHARE = 0.9
TRITON = "__gpu$xla.gpu.triton"
KEY = jax.eval_shape(lambda: jax.random.key(0))
SAMPLERS = {
    **correct.EXACT,
    **correct.ESTIMATED,
    "AMPER-fr, rejection": replay.amper_fr(form="rejection"),  # timed beside the search
}
QUICK = (
    "replay, PER, wide",
    "associative memory, radii, uint32, pallas",
    "dqn on CartPole-v1, 16 seeds",
)
WIDE, MATCH = "replay.form=wide", "replay.form=match"
TRAININGS = (
    ("dqn", "CartPole-v1", ()),
    ("dqn", "CartPole-v1", ("replay.sampler=per", WIDE)),
    ("dqn", "CartPole-v1", ("replay.sampler=amper_fr", MATCH)),
    ("dqn", "CartPole-v1", ("replay.sampler=amper_k", MATCH)),
    ("dqn", "Breakout-MinAtar", ()),
    ("rainbow", "CartPole-v1", (WIDE,)),
    ("ddpg", "Pendulum-v1", ()),
    ("td3", "Pendulum-v1", ()),
    ("sac", "Pendulum-v1", ()),
)


class Case(NamedTuple):
    """A program: a function, what it is called with, abstractly, and whether it changes a state."""

    name: str
    function: Callable[..., PyTree]
    arguments: tuple[PyTree, ...]
    donates: bool  # its first argument


class Lowered(NamedTuple):
    """Result of lowering a program."""

    seconds: float
    text: str  # StableHLO

    @property
    def calls(self) -> list[str]:
        """Names of custom calls."""
        return sorted(set(re.findall(r"stablehlo\.custom_call @\"?([\w.$]+)", self.text)))

    @property
    def in_place(self) -> int:
        """Number of arguments that a result may take the place of."""
        return len(re.findall(r"tf\.aliasing_output|jax\.buffer_donor", self.text))


def replay_cases() -> list[Case]:
    """Add an item, sample a batch and write back priorities."""
    found = [replay_case(name) for name in SAMPLERS]
    for form in fast.FORMS:
        found += [replay_case(f"PER, {form}", batch_size=fast.LARGE_BATCH)]
        found += [replay_case(f"PER, {form}", seeds=SEEDS)]
    return [*found, fill_case()]


def fill_case() -> Case:
    """Return an addition of as many items as the buffer holds; sums are then made anew."""
    memory = replay.make(np.int32(0), CAPACITY, BATCH, SAMPLERS["PER, rows"])
    items = jax.ShapeDtypeStruct((CAPACITY,), np.int32)
    priorities = jax.ShapeDtypeStruct((CAPACITY,), np.float32)
    arguments = jax.eval_shape(memory.init), items, priorities
    return Case("replay, PER, rows, filled", memory.add, arguments, donates=False)


def replay_case(name: str, batch_size: int = BATCH, seeds: int | None = None) -> Case:
    """Return a step of one buffer, or of several through `vmap`."""
    item = Transition(
        jnp.zeros(4), jnp.int32(0), jnp.float32(0), jnp.float32(1), None, jnp.zeros(4)
    )
    memory = replay.make(item, CAPACITY, batch_size, SAMPLERS[name])

    def step(state: PyTree, item: PyTree, key: jax.Array, priorities: jax.Array) -> PyTree:
        state = memory.add(state, item)
        sample = memory.sample(state, key, gamma=0.99)
        return memory.update(state, sample, priorities), sample

    arguments = (
        jax.eval_shape(memory.init),
        item,
        KEY,
        jax.ShapeDtypeStruct((batch_size,), jnp.float32),
    )
    name = f"replay, {name}" + (f", batch {batch_size:,}" if batch_size != BATCH else "")
    if seeds is None:
        return Case(name, step, arguments, donates=True)
    arguments = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((seeds, *leaf.shape), leaf.dtype), arguments
    )
    return Case(f"{name}, {seeds} seeds", jax.vmap(step), arguments, donates=True)


def search_cases() -> list[Case]:
    """Search associative memory, by XLA and by the Pallas kernel."""
    found = []
    for dtype, kind, form in correct.SEARCHES:
        keys, pair = (jax.ShapeDtypeStruct((n,), dtype) for n in (CAPACITY, correct.QUERIES))
        search = functools.partial(_search, kind, form)
        name = f"associative memory, {kind}, {dtype}, {form}"
        found.append(Case(name, search, (keys, pair, pair), donates=False))
    return found


def _search(
    name: str, form: str, keys: jax.Array, queries: jax.Array, seconds: jax.Array
) -> PyTree:
    return am.search_packed(keys, queries, form=form, **{name: seconds})


def training_cases() -> list[Case]:
    """Train fused, over several seeds at once."""
    found = []
    for agent, environment, words in TRAININGS:
        program = experiment.load(agent=agent, environment=environment, words=words).program
        schedule = program.schedule
        steps = schedule.learning_starts + 4 * schedule.steps
        run = jax.vmap(train.fused(program, steps, period=steps))
        keys = jax.ShapeDtypeStruct((SEEDS,), KEY.dtype)
        name = ", ".join((f"{agent} on {environment}", *words, f"{SEEDS} seeds"))
        found.append(Case(name, run, (keys,), donates=False))
    return found


def tabular_cases() -> list[Case]:
    """Train tables on emulated DPUs, in the form for accelerators, by `dpu_map`."""
    log = TabularTransition(
        *(np.zeros(DPUS * ROWS, t) for t in "iififi")  # states, actions, rewards and so on
    )
    chunks = pim.partition(log, DPUS, 64, 4)
    backend = pim.jax_backend(dpu_mesh(), "batched")
    schedule, found = pim.MergeSchedule(passes=2), []
    for name, order, numerics in correct.tabular_cases(dry_run=False):
        rule = tabular.make_rule(name, tabular.make_numerics(numerics))
        run = functools.partial(
            pim.train, rule=rule, schedule=schedule, order=order, backend=backend
        )
        case = f"{name}, {order}, {numerics}, {DPUS:,} DPUs"
        found.append(Case(case, run, (chunks,), donates=False))
    mapped = dpu_map(correct.digest), (jax.ShapeDtypeStruct((DPUS, ROWS), np.int32),)
    return [*found, *(swept_case(each) for each in fast.NUMERICS), Case("dpu_map", *mapped, False)]


def swept_case(numerics: str) -> Case:
    """Return a pass of Q-learning with several step sizes at once."""
    mdp = envs.make_mdp("FrozenLake-v1")
    log = Log("FrozenLake-v1", mdp, datasets.collect(mdp, "random", DPUS).transitions)
    alphas = np.linspace(0.05, 0.5, fast.STEP_SIZES).astype(np.float32)
    swept = JaxPass(Problem(log, DPUS, DPUS, numerics, 4), "batched", alphas)
    name = f"q_learning, {numerics}, {DPUS:,} DPUs, {fast.STEP_SIZES} step sizes"
    return Case(name, swept.sweep, swept.arguments, donates=False)


def pipelined_cases() -> list[Case]:
    """Learn from a batch, as pipelined executors do, and run a segment, as the composer does."""
    program = training_ours.make_program(SETTINGS["A"])
    memory = program.require_replay()
    state = jax.eval_shape(program.init, KEY)
    drawn = jax.eval_shape(lambda key: memory.sample(memory.init(), key, 1.0, 1.0), KEY)

    def segment(state: PyTree, iterations: jax.Array) -> PyTree:
        return program.segment(state, iterations, True)

    learned = state.agent, drawn.batch, drawn.weights, KEY
    iterations = jax.ShapeDtypeStruct((), jnp.int32)
    return [
        Case("dqn on CartPole-v1, learner", program.agent.learn, learned, donates=True),
        Case("dqn on CartPole-v1, segment", segment, (state, iterations), donates=True),
    ]


def cases() -> list[Case]:
    """Return all programs."""
    buffers = [*replay_cases(), *search_cases()]
    return [*buffers, *tabular_cases(), *training_cases(), *pipelined_cases()]


def lower(case: Case) -> Lowered:
    """Lower a program for CUDA."""
    compiled = jax.jit(case.function, donate_argnums=(0,) if case.donates else ())
    allowed = [export.DisabledSafetyCheck.custom_call(TRITON)]
    began = time.perf_counter()
    exported = export.export(compiled, platforms=[PLATFORM], disabled_checks=allowed)
    text = exported(*case.arguments).mlir_module()
    return Lowered(time.perf_counter() - began, text)


def measure(report: Report, chosen: Sequence[Case]) -> None:
    """Lower programs and record them; a program that cannot be lowered is an error."""
    foreign, shares = 0, []
    for case in chosen:
        lowered = lower(case)
        report.add(case.name, LOWERED, "time", "s", [lowered.seconds])
        report.add(case.name, LOWERED, "StableHLO", "KiB", [len(lowered.text) / 1024])
        report.add(case.name, LOWERED, "kernels of Triton", "", [lowered.calls.count(TRITON)])
        if "pallas" in case.name:
            foreign += len(lowered.calls) != 1 or TRITON not in lowered.calls
        if case.donates:
            leaves = len(jax.tree.leaves(case.arguments[0]))
            report.add(case.name, LOWERED, "leaves of the state", "", [leaves])
            report.add(case.name, LOWERED, "leaves in place", "", [lowered.in_place])
            shares.append(lowered.in_place / leaves)
    text = f"all {len(chosen)} programs are lowered; Pallas's kernels that are not Triton's alone"
    report.claims.append(Claim(text, float(foreign), 0.0, foreign == 0, sense="<="))
    text = "least share of a state's leaves that may be written in place"
    report.claims.append(Claim(text, min(shares), LEAST_SHARE, min(shares) >= LEAST_SHARE))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three of the programs")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    options = parser.parse_args(arguments)
    chosen = [case for case in cases() if not options.quick or case.name in QUICK]
    report = Report(PACKAGES, "lowering", quick=options.quick)
    measure(report, chosen)
    report.finish(options.json, Console())


if __name__ == "__main__":
    main()
