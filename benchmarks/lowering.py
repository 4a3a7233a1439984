"""Programs of the library lowered for GPUs, on a machine without one.

    python benchmarks/lowering.py [--quick] [--json PATH]

`jax.export` lowers each program for CUDA, and Pallas's kernels down to Triton's intermediate
representation, so that what a GPU cannot take is found without one. Recorded of each: the time of
tracing and lowering, the size of the StableHLO module, the custom calls in it, and how many leaves
of the donated state the module may write in place (those that it reads at all). Nothing is compiled
for a GPU, and nothing is run. C kernels are switched off, as a GPU has none.
"""

import argparse
import functools
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ["ACCEL_RL_KERNELS"] = ""

import jax
import jax.numpy as jnp
import numpy as np
from common import Claim, Report
from jax import export
from rich.console import Console

from accel_rl import am, experiment, pim, replay, tabular, train
from accel_rl.types import PyTree, TabularTransition, Transition
from pim_emu import dpu_mesh

PACKAGES = ("jax", "jaxlib", "accel-rl")
CAPACITY, BATCH, SEEDS = 1 << 20, 256, 16
DPUS, ROWS = 2_560, 100  # rows of each
PLATFORM = "cuda"
LOWERED = f"lowered for {PLATFORM}"
LEAST_SHARE = 0.9
TRITON = "__gpu$xla.gpu.triton"
SAMPLERS: dict[str, Any] = {
    **{name: name for name in ("uniform", "per", "rank_based", "amper_fr", "amper_k")},
    **{f"per, {form}": replay.prioritised(form) for form in ("wide", "rows", "pallas")},
}
QUICK = ("replay, per", "associative memory, radius, pallas", "dqn on CartPole-v1, 16 seeds")
TRAININGS = (
    ("dqn", "CartPole-v1", ()),
    ("dqn", "CartPole-v1", ("replay.sampler=per",)),
    ("dqn", "CartPole-v1", ("replay.sampler=amper_fr",)),
    ("dqn", "Breakout-MinAtar", ()),
    ("rainbow", "CartPole-v1", ()),
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
    item = Transition(
        jnp.zeros(4), jnp.int32(0), jnp.float32(0), jnp.float32(1), None, jnp.zeros(4)
    )
    found = []
    for name, sampler in SAMPLERS.items():
        memory = replay.make(item, CAPACITY, BATCH, sampler)

        def step(
            state: PyTree, item: PyTree, key: jax.Array, priorities: jax.Array, memory=memory
        ) -> PyTree:
            state = memory.add(state, item)
            sample = memory.sample(state, key, gamma=0.99)
            return memory.update(state, sample, priorities), sample

        arguments = (
            jax.eval_shape(memory.init),
            item,
            jax.eval_shape(lambda: jax.random.key(0)),
            jax.ShapeDtypeStruct((BATCH,), jnp.float32),
        )
        found.append(Case(f"replay, {name}", step, arguments, donates=True))
    return found


def search_cases() -> list[Case]:
    """Search associative memory, by XLA and by the Pallas kernel."""
    keys, pair = (jax.ShapeDtypeStruct((n,), jnp.uint32) for n in (CAPACITY, 20))
    return [
        Case(
            f"associative memory, {kind}, {form}",
            functools.partial(_search, name, form),
            (keys, pair, pair),
            donates=False,
        )
        for kind, name in (("radius", "radii"), ("ternary", "dont_cares"))
        for form in ("xla", "pallas")
    ]


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
        keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), SEEDS))
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
    found = []
    for numerics in ("fp32", "int32_scaled"):
        rule = tabular.q_learning(tabular.make_numerics(numerics))
        schedule = pim.MergeSchedule(passes=2)
        run = functools.partial(pim.train, rule=rule, schedule=schedule, backend=backend)
        found.append(Case(f"Q-learning, {DPUS:,} DPUs, {numerics}", run, (chunks,), donates=False))
    return found


def cases() -> list[Case]:
    """Return all programs."""
    return [*replay_cases(), *search_cases(), *tabular_cases(), *training_cases()]


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
    text = "least share of a buffer's leaves that may be written in place"
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
