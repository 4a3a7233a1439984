"""What every PIM backend must do; see docs/pim-backend.md. Call `check_backend` on a new one."""

import jax
import numpy as np
import oracle
from transitions import synthetic

from accel_rl import pim, tabular

S, A, DPUS = 5, 3, 3
ROWS = synthetic(S, A, 401, seed=2)


def check_backend(backend, numerics="int32_scaled", rule="double_q_learning", order="RAN"):
    """Assert the contract for one backend, exactly where the numerics are INT32."""
    made = tabular.make_rule(rule, tabular.make_numerics(numerics))
    chunks = pim.partition(ROWS, DPUS, S, A)

    def run(seed, passes=4, **more):
        return pim.train(
            chunks, seed=seed, rule=made, schedule=pim.MergeSchedule(passes, 2), order=order,
            target_block=16, backend=backend, **more,
        ).tables  # fmt: skip

    tables = run(7)
    truth = oracle.train(
        ROWS, S, A, DPUS, rule=rule, numerics=numerics, order=order, block=16,
        passes=4, period=2, seed=7,
    )  # fmt: skip
    if numerics == "fp32":
        np.testing.assert_allclose(tables, truth, rtol=2e-5, atol=2e-5)
    else:
        np.testing.assert_array_equal(tables, truth)
    np.testing.assert_array_equal(run(7), tables, "launch must be a function of its arguments")
    np.testing.assert_array_equal(jax.jit(run)(7), tables, "and so under jit")
    rest = run(7, passes=2, initial=run(7, passes=2), first_pass=2)
    np.testing.assert_array_equal(rest, tables, "first_pass must place the passes")
    seeds = np.asarray([7, 8], np.uint32)
    np.testing.assert_array_equal(jax.vmap(run)(seeds)[0], tables, "and so under vmap")
