"""What a call of a native kernel costs inside a compiled loop, beside its work."""

import jax
import jax.numpy as jnp
import numpy as np
from common import Report, System, interleave
from tabular_systems import Log, Problem

from accel_rl.tabular.passes import native
from accel_rl.tabular.rule import Coefficients

CALLS = 20_000
CASE = "call in a compiled loop, 1 DPU, 1 row"


def calls(report: Report, log: Log, rounds: int) -> None:
    """Record nanoseconds for each call of a launch that updates one entry of a small table."""
    problem = Problem(log, 1, 1, "fp32", 1)
    program = problem.program
    dpus = jnp.zeros(1, jnp.uint32)
    rows = native.examine(program, problem.words, jnp.asarray(problem.lengths), dpus)
    rates = problem.rates(np.float32(0.1))

    @jax.jit
    def loop(rows: native.NativeRows, table: jax.Array, rates: Coefficients) -> jax.Array:
        def call(k: jax.Array, table: jax.Array) -> jax.Array:
            return native.launch(program, rows, table, rates, 0, 0, 1)[0]

        return jax.lax.fori_loop(np.int32(0), np.int32(CALLS), call, table)

    table = jnp.asarray(problem.tables(1)[0, 0])
    run = System(lambda: loop(rows, table, rates).block_until_ready(), CALLS)
    timings = interleave({"accel_rl cpu kernel": run}, rounds)
    timing = timings["accel_rl cpu kernel"]
    report.add(CASE, "accel_rl cpu kernel", "wall time per call", "ns", timing.wall * 1e9)
