"""Passes by owner, whole launches of the native kernels, beside plain C by time."""

import functools
from collections.abc import Callable

import jax
import numpy as np
from common import Report, System, interleave, one_core
from tabular_baselines import Baselines
from tabular_systems import CPass, Log, Problem

from accel_rl import pim, tabular
from accel_rl.pim.partition import encode_chunks
from accel_rl.tabular.owners import find_runs

OWNER = "accel_rl cpu kernel, by owner"
DPUS = (125, 2000)


class OwnerPass:
    """One launch of one pass from a table of zeros, at each call."""

    def __init__(self, log: Log, num_rows: int, num_dpus: int, numerics: str, alpha: float) -> None:
        """Partition, examine and arrange the rows.

        Raises:
          RuntimeError: the kernels and JAX learned different values.
        """
        states, actions = log.mdp.num_states, log.mdp.num_actions
        rule = tabular.q_learning(tabular.make_numerics(numerics))
        rows = jax.tree.map(lambda column: column[:num_rows], log.transitions)
        chunks = pim.partition(rows, num_dpus, states, actions, "owner")
        order, sizes = tabular.make_order("SEQ"), (chunks.lanes, chunks.runs)
        program = tabular.PassProgram(rule, order, states, actions, 1, *sizes)
        words = encode_chunks(program, chunks)
        c = rule.coefficients(tabular.Hyperparameters(alpha=alpha))
        table = rule.init(states, actions).reshape(-1)

        def run_on(backend: pim.Backend) -> Callable[[], jax.Array]:
            load = jax.jit(functools.partial(backend.load, program))
            launch = jax.jit(functools.partial(backend.launch, program), static_argnums=5)
            return functools.partial(launch, load(words, chunks.lengths, c), table, c, 0, 0, 1)

        self._run = run_on(pim.cpu_backend())
        real = find_runs(program, words, chunks.lengths).rows > 0
        values, expected = (
            run()[:num_dpus][real] for run in (self._run, run_on(pim.jax_backend()))
        )
        if not np.allclose(values, expected, rtol=1e-4, atol=1e-5) or not np.any(expected):
            raise RuntimeError("the kernels by owner and JAX learned different values")

    def __call__(self) -> None:
        """One pass."""
        self._run().block_until_ready()


def owner_case(environment: str, numerics: str, num_dpus: int) -> str:
    """Return the name in records of a pass by owner."""
    return f"{environment}, by owner, {num_dpus} DPUs, {numerics}"


def owner_passes(
    report: Report,
    log: Log,
    num_rows: int,
    alpha: np.ndarray,
    loops: Callable[[Problem], dict[str, Baselines]],
    rival_of: Callable[[str], str],
    rounds: int,
) -> None:
    """Time passes by owner beside sequential C over the same rows as one log, block 1.

    They learn different values: C one table, from targets that change with it; lanes their runs,
    from one value table. `OwnerPass` compares its values with JAX's.

    Args:
      report: takes the records.
      log: at least `num_rows` rows.
      num_rows: rows of a pass.
      alpha: float32 [1], the step size.
      loops: the C loops for a problem, by suffix of their names.
      rival_of: the name of the C system to which a numerics is compared.
      rounds: samples of each system.
    """
    for numerics in ("fp32", "int32_scaled", "int32_pow2"):
        problem, rival = Problem(log, num_rows, 1, numerics, 1), rival_of(numerics)
        runs = {
            f"C sequential{suffix}": System(CPass(each, problem, "sequential", alpha), num_rows)
            for suffix, each in loops(problem).items()
        }
        for num_dpus in DPUS:
            run = OwnerPass(log, num_rows, num_dpus, numerics, float(alpha[0]))
            with one_core():
                timings = interleave(runs | {OWNER: System(run, num_rows)}, rounds)
            case = owner_case(log.environment, numerics, num_dpus)
            report.add_rates(case, timings, wall=True)
            report.add_ratio(case, OWNER, rival, timings)
