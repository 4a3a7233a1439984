"""Every backend and every form of a pass keeps the contract."""

from unittest import mock

import jax
import numpy as np
import pytest
from backend_conformance import check_backend
from kernels_present import needs_kernels

from accel_rl import pim
from pim_emu import dpu_mesh


@pytest.mark.parametrize(
    ("path", "numerics", "rule", "order"),
    [
        ("flat", "fp32", "q_learning", "SEQ"),
        pytest.param(*("flat", "int32_scaled", "double_q_learning", "RAN"), marks=pytest.mark.slow),
        pytest.param(
            *("batched", "int32_scaled", "double_q_learning", "RAN"), marks=pytest.mark.slow
        ),
        pytest.param(*("reference", "int32_scaled", "q_learning", "SEQ"), marks=pytest.mark.long),
    ],
)
def test_jax_backend(path, numerics, rule, order):
    backend = pim.jax_backend(dpu_mesh(jax.devices()[:2]), path)
    check_backend(backend, numerics, rule, order)


@needs_kernels
@pytest.mark.parametrize(
    ("devices", "numerics", "rule", "order"),
    [
        (1, "fp32", "q_learning", "SEQ"),
        pytest.param(*(2, "int32_pow2", "expected_sarsa", "STR"), marks=pytest.mark.long),
        pytest.param(
            *(8, "int32_scaled", "double_q_learning", "RAN_REPLACEMENT"), marks=pytest.mark.slow
        ),
        pytest.param(*(2, "int32_scaled", "sarsa_epsilon_greedy", "RAN"), marks=pytest.mark.slow),
    ],
)
def test_cpu_backend(devices, numerics, rule, order):
    backend = pim.cpu_backend(dpu_mesh(jax.devices()[:devices]))
    check_backend(backend, numerics, rule, order)


@needs_kernels
def test_the_cpu_backend_wants_cpu_devices():
    class Gpu:
        platform = "gpu"

    mesh = mock.Mock(spec=jax.sharding.Mesh, devices=np.asarray([Gpu()]), size=1)
    with pytest.raises(ValueError, match="platform of the mesh must be one of cpu, got 'gpu'"):
        pim.cpu_backend(mesh)
