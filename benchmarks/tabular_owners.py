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
from pim_emu import dpu_mesh

OWNER, JAX_OWNER = "accel_rl cpu kernel, by owner", "accel_rl jax, by owner"
DPUS = (125, 2000)


def passes_of(
    log: Log, num_rows: int, num_dpus: int, numerics: str, alpha: float
) -> dict[str, Callable[[], object]]:
    """Return a launch of one pass from a table of zeros, in C and in JAX, by system.

    Raises:
      RuntimeError: the two learned different values.
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
        launch = functools.partial(launch, load(words, chunks.lengths, c), table, c, 0, 0, 1)
        return lambda: launch().block_until_ready()

    mesh = dpu_mesh(jax.local_devices()[:1])  # C has one core, too
    runs = {OWNER: run_on(pim.cpu_backend(mesh)), JAX_OWNER: run_on(pim.jax_backend(mesh))}
    real = find_runs(program, words, chunks.lengths).rows > 0
    values, expected = (run()[:num_dpus][real] for run in runs.values())
    if not np.allclose(values, expected, rtol=1e-4, atol=1e-5) or not np.any(expected):
        raise RuntimeError("the kernels by owner and JAX learned different values")
    return runs


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
    from one value table. `passes_of` compares those of C and JAX.

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
            ours = {
                name: System(run, num_rows)
                for name, run in passes_of(
                    log, num_rows, num_dpus, numerics, float(alpha[0])
                ).items()
            }
            with one_core():
                timings = interleave(runs | ours, rounds)
            case = owner_case(log.environment, numerics, num_dpus)
            report.add_rates(case, timings, wall=True)
            for name in ours:
                report.add_ratio(case, name, rival, timings)
