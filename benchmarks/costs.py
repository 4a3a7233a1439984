"""Costs of compiled programs by XLA's own count, against kept values: noise does not move them.

    python benchmarks/costs.py [--keep]

Each program is lowered and compiled on the CPU, and not run. Counted are the operations and the
bytes that XLA's analysis of the lowered program gives, and of the compiled one the instructions and
the temporary memory. A count may be 5 % more than that in `costs.json`, which `--keep` writes anew:
an increase that is meant goes there, with its reason in the commit. The values are those of one
version of jaxlib; under another nothing is compared. C kernels are switched off.
"""

import argparse
import functools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jaxlib
import kept_counts
import numpy as np
import training_ours
import training_settings
from replay_loops import step_loop
from replay_memories import AMPER_FR, AMPER_K, RANK, TREE, UNIFORM, Problem, make_memories
from tabular_systems import Log
from tabular_systems import Problem as Rows

from accel_rl import envs, tabular, train
from accel_rl.types import TabularTransition

KEPT = Path(__file__).resolve().parent / "costs.json"
CAPACITY, BATCH, STEPS = 4096, 64, 8
ROWS, DPUS = 4096, 8


class Cost(NamedTuple):
    """Counts of one program."""

    operations: int
    bytes: int
    instructions: int
    temporary: int  # bytes

    @classmethod
    def of(cls, lowered: Any) -> "Cost":
        """Count a lowered program."""
        analysis, compiled = lowered.cost_analysis(), lowered.compile()
        instructions = len(re.findall(r"^\s+(?:ROOT )?%\S+ = ", compiled.as_text(), re.M))
        temporary = compiled.memory_analysis().temp_size_in_bytes
        counted = (int(analysis[name]) for name in ("flops", "bytes accessed"))
        return cls(*counted, instructions, temporary)


def lowered_programs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield names, and functions that lower the programs."""
    for name in (UNIFORM, TREE, RANK, AMPER_FR, AMPER_K):
        yield f"replay step in a scan, {name}", functools.partial(_replay, name)
    for seeds in (1, 4):
        yield f"fused DQN, seeds: {seeds}", functools.partial(_training, seeds)
    for numerics in ("fp32", "int32_scaled"):
        yield f"pass of Q-learning, {numerics}", functools.partial(_pass, numerics)


def _replay(name: str) -> Any:
    problem = Problem(CAPACITY)
    memory = make_memories([name], problem, BATCH)[name]
    return step_loop(name, memory, problem, BATCH, STEPS).lowered


def _training(seeds: int) -> Any:
    setting = training_settings.SETTINGS["S"]
    run = train.fused(training_ours.make_program(setting), 2 * training_settings.LEARNING_STARTS)
    keys = jax.random.split(jax.random.key(0), seeds)
    return jax.jit(run).lower(keys[0]) if seeds == 1 else jax.jit(jax.vmap(run)).lower(keys)


def _pass(numerics: str) -> Any:
    columns = (np.arange(ROWS) % n for n in (16, 4, 2, 16, 2, 4))
    log = TabularTransition(
        *(column.astype(t) for column, t in zip(columns, "iififi", strict=True))
    )
    problem = Rows(Log("none", envs.make_mdp("FrozenLake-v1"), log), ROWS, DPUS, numerics, 4)
    path = tabular.select_path("flat")
    arranged = path.arrange(problem.program, jnp.asarray(problem.words))
    rates = problem.program.rule.coefficients(tabular.Hyperparameters())
    sweep = jax.jit(functools.partial(path.sweep, problem.program))
    return sweep.lower(jnp.asarray(problem.tables(1)[0]), arranged, rates)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="write the counts to costs.json")
    keep = parser.parse_args().keep
    os.environ["ACCEL_RL_KERNELS"] = ""
    found = {name: Cost.of(lower())._asdict() for name, lower in lowered_programs()}
    kept_counts.check(KEPT, f"jaxlib {jaxlib.__version__}", found, keep)


if __name__ == "__main__":
    main()
