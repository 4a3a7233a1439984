"""What `tabular.py` times: one pass over the same rows by JAX and by C, from tables of zeros."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from tabular_baselines import LANES, Baselines

from accel_rl import pim, tabular
from accel_rl.pim.partition import encode_chunks
from accel_rl.tabular.passes import PATHS
from accel_rl.tabular.passes import native as kernels
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import MDP, TabularTransition


@dataclasses.dataclass(frozen=True)
class Log:
    """Experience of one environment."""

    environment: str
    mdp: MDP
    transitions: TabularTransition  # columns [N]


class Problem:
    """The first rows of a log, cut into chunks and encoded for Q-learning in some numerics."""

    def __init__(
        self, log: Log, num_rows: int, num_chunks: int, numerics: str, target_block: int
    ) -> None:
        """Encode."""
        states, actions = log.mdp.num_states, log.mdp.num_actions
        rule = tabular.q_learning(tabular.make_numerics(numerics))
        order = tabular.make_order("SEQ")
        self.program = tabular.PassProgram(rule, order, states, actions, target_block)
        rows = jax.tree.map(lambda column: column[:num_rows], log.transitions)
        chunks = pim.partition(rows, num_chunks, states, actions)
        self.words = encode_chunks(self.program, chunks)  # [D, T, 4]
        self.lengths = np.asarray(chunks.lengths)  # [D]
        self.num_rows = num_rows

    def rates(self, alphas: np.ndarray) -> Coefficients:
        """Coefficients whose alpha has the axis [R]."""
        return self.program.rule.coefficients(tabular.Hyperparameters(alpha=alphas))

    def tables(self, num_alphas: int) -> np.ndarray:
        """Zeros [R, D, E]."""
        shape = (num_alphas, len(self.lengths), self.program.entries)
        return np.zeros(shape, self.program.rule.numerics.dtype)


class Pass(Protocol):
    """One pass over the rows for each step size, at each call; tables go on from call to call."""

    def __call__(self) -> None:
        """One pass."""

    @property
    def tables(self) -> np.ndarray:
        """[R, D, E]."""


class JaxPass:
    """By a path of the library: one step size swept directly, several through `vmap`."""

    def __init__(self, problem: Problem, path: str, alphas: np.ndarray) -> None:
        """Arranges the rows."""
        program, form = problem.program, PATHS[path]
        self._rows = jax.jit(functools.partial(form.arrange, program))(problem.words)
        self._rates = problem.rates(alphas)
        self._tables = jnp.asarray(problem.tables(len(alphas)))

        def sweep(tables: jax.Array, rows: jax.Array, rates: Coefficients) -> jax.Array:
            if len(alphas) == 1:
                rate = dataclasses.replace(rates, alpha=rates.alpha[0])
                return form.sweep(program, tables[0], rows, rate)[None]

            def replica(tables: jax.Array, alpha: jax.Array) -> jax.Array:
                rate = dataclasses.replace(rates, alpha=alpha)
                return form.sweep(program, tables, rows, rate)

            return jax.vmap(replica)(tables, rates.alpha)

        self.sweep = jax.jit(sweep)

    def __call__(self) -> None:
        """One pass."""
        self._tables = self.sweep(*self.arguments).block_until_ready()

    @property
    def arguments(self) -> tuple[jax.Array, jax.Array, Coefficients]:
        """Arguments of the next pass."""
        return self._tables, self._rows, self._rates

    @property
    def tables(self) -> np.ndarray:
        """[R, D, E]."""
        return np.asarray(self._tables)


class KernelPass:
    """By the native kernels: one launch from tables of zeros, through `vmap` for several sizes."""

    def __init__(self, problem: Problem, alphas: np.ndarray) -> None:
        """Examine the rows."""
        program = problem.program
        lengths = jnp.asarray(problem.lengths)
        dpus = jnp.arange(lengths.size, dtype=jnp.uint32)
        rows = kernels.examine(program, problem.words, lengths, dpus)
        self._rates = problem.rates(alphas)
        self._tables = jnp.asarray(problem.tables(len(alphas)))

        def launch(rows: kernels.NativeRows, table: jax.Array, rates: Coefficients) -> jax.Array:
            def replica(alpha: jax.Array) -> jax.Array:
                rate = dataclasses.replace(rates, alpha=alpha)
                return kernels.launch(program, rows, table, rate, 0, 0, 1)

            if len(alphas) == 1:
                return replica(rates.alpha[0])[None]
            return jax.vmap(replica)(rates.alpha)

        self._launch = functools.partial(jax.jit(launch), rows, self._tables[0, 0])

    def __call__(self) -> None:
        """One pass."""
        self._tables = self._launch(self._rates).block_until_ready()

    @property
    def tables(self) -> np.ndarray:
        """[R, D, E]."""
        return np.asarray(self._tables)


class CPass:
    """By one of the C loops: "sequential", "prefetching" (sequential as well) or "lanes"."""

    def __init__(self, loops: Baselines, problem: Problem, kind: str, alphas: np.ndarray) -> None:
        """Lays out the tables as the loop wants them."""
        rates = problem.rates(alphas)
        tables = problem.tables(len(alphas))
        self._lanes = kind == "lanes"
        if self._lanes:
            tables = tables.reshape(-1, *tables.shape[1:], LANES)
        self._tables = tables
        runs: dict[str, Callable[..., None]] = {
            "sequential": loops.sequential,
            "prefetching": functools.partial(loops.sequential, prefetch=True),
            "lanes": loops.lanes,
        }
        data = np.asarray(problem.words), problem.lengths, tables, np.asarray(rates.alpha)
        self._run = functools.partial(runs[kind], *data, np.asarray(rates.gamma)[()])

    def __call__(self) -> None:
        """One pass."""
        self._run()

    @property
    def tables(self) -> np.ndarray:
        """[R, D, E]."""
        if not self._lanes:
            return self._tables
        _, chunks, entries, _ = self._tables.shape
        return np.moveaxis(self._tables, 3, 1).reshape(-1, chunks, entries)


def check_agreement(passes: Mapping[str, Pass]) -> None:
    """Run one pass of each, and see that all have learned the same, which is not nothing.

    Raises:
      RuntimeError: they have not; nothing may be claimed of systems that compute different things.
    """
    tables = {}
    for name, run in passes.items():
        run()
        tables[name] = run.tables.copy()
    first, *others = tables
    expected = tables[first]
    exact = expected.dtype != np.float32
    for name in others:
        same = (
            np.array_equal(tables[name], expected)
            if exact
            else np.allclose(tables[name], expected, rtol=1e-4, atol=1e-5)
        )
        if not same:
            raise RuntimeError(f"{name} and {first} learned different tables")
    if not expected.any():
        raise RuntimeError("a pass left the tables as they were")
