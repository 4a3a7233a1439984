"""Every backend and every form of a pass keeps the contract."""

import jax
import pytest
from backend_conformance import check_backend

from accel_rl import pim
from pim_emu import dpu_mesh


@pytest.mark.parametrize(
    ("path", "numerics", "rule", "order"),
    [
        ("flat", "fp32", "q_learning", "SEQ"),
        ("flat", "int32_scaled", "double_q_learning", "RAN"),
        ("batched", "int32_scaled", "double_q_learning", "RAN"),
        ("reference", "int32_scaled", "q_learning", "SEQ"),
    ],
)
def test_jax_backend(path, numerics, rule, order):
    backend = pim.jax_backend(dpu_mesh(jax.devices()[:2]), path)
    check_backend(backend, numerics, rule, order)
