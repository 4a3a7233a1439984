"""Every backend and every form of a pass keeps the contract."""

import jax
import pytest
from backend_conformance import check_backend

from accel_rl import pim
from accel_rl.tabular import PATHS
from pim_emu import dpu_mesh


@pytest.mark.parametrize(
    ("path", "numerics"), [("flat", "fp32"), *((path, "int32_scaled") for path in PATHS)]
)
def test_jax_backend(path, numerics):
    check_backend(pim.jax_backend(dpu_mesh(jax.devices()[:2]), path), numerics)
