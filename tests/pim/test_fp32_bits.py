"""FP32 bit for bit: without FMA instructions, JAX, NumPy and the native kernels agree exactly.

XLA contracts a product and a sum to one FMA where the processor has it, so the comparison runs in a
process of its own that is limited to AVX, which has none.
"""

import os
import pathlib
import platform
import subprocess
import sys

import pytest

from accel_rl import native

PROGRAM = """
import jax, numpy as np, oracle
from transitions import synthetic
from accel_rl import native, pim, tabular

backends = ["jax"] if native.why_absent() else ["jax", "cpu"]
rows = synthetic(6, 3, 500)
cases = [(rule, "SEQ", 1, "visits") for rule in tabular.RULES]
cases += [("q_learning", "RAN", 16, "mean"), ("q_learning", "STR", 99, "damped")]
for rule, order, block, merging in cases:
    setting = dict(rule=rule, numerics="fp32", order=order, block=block, passes=4, period=2)
    truth = oracle.train(rows, 6, 3, 3, merging=merging, **setting)
    for backend in backends:
        result = pim.train(
            pim.partition(rows, 3, 6, 3), rule=tabular.make_rule(rule), backend=backend,
            schedule=pim.MergeSchedule(4, 2, merging), order=order, target_block=block,
        )
        what = f"{backend} {rule} {order}"
        np.testing.assert_array_equal(np.asarray(result.tables), truth, what)
        print("equal", what)
"""


@pytest.mark.long  # compiles all again, without FMA
@pytest.mark.skipif(platform.machine() != "x86_64", reason="AVX without FMA exists on x86-64 only")
def test_jax_equals_numpy_bit_for_bit_without_fma():
    tests = pathlib.Path(__file__).resolve().parent.parent
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX --xla_force_host_platform_device_count=2",
        "PYTHONPATH": str(tests),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("equal jax") == 7
    assert done.stdout.count("equal cpu") == (7 if native.why_absent() is None else 0)
