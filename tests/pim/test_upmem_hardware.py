"""With UPMEM's own SDK: its compiler builds every program, and its DPUs train as the contract says.

Where that SDK is not there, these tests are skipped, and nothing has been run on hardware. Its part
in the library is then tested with a folder that passes for it.
"""

import os

import optional
import pytest
from backend_conformance import check_backend
from fake_upmem import make_working_sdk
from sdk_present import needs
from upmem_runs import (
    DPUS,
    HALTED,
    break_programs,
    caught,
    check_right,
    contents,
    run,
    train,
)

from accel_rl import pim, tabular
from accel_rl.pim.upmem import build
from accel_rl.pim.upmem.sdk import find_sdk
from accel_rl.tabular.orders import NAMES as ORDERS

NUMERICS = ("fp32", "int32_scaled", "int32_pow2")
CONTRACTS = (
    ("fp32", "q_learning", "SEQ"),
    ("int32_pow2", "expected_sarsa", "STR"),
    ("int32_scaled", "double_q_learning", "RAN_REPLACEMENT"),
    ("int32_scaled", "sarsa_epsilon_greedy", "RAN"),
)


def build_programs(orders):
    """Every rule in every numerics."""
    toolkit = pim.upmem.find_toolkit("vendor")
    for rule in tabular.RULES:
        for numerics in NUMERICS:
            for order in orders:
                options = {"RULE": rule, "NUMERICS": numerics, "ORDER": order}
                assert build.dpu_program(toolkit, options).exists()


def keep_the_contract(*settings):
    check_backend(pim.upmem_backend(sdk="vendor"), *settings)


# --- The real one ---


@pytest.fixture(scope="module")
def sdk(tmp_path_factory):
    """Variables of processes that use UPMEM's SDK."""
    if not find_sdk().found:
        optional.require("real DPUs")
    own = {name: os.environ[name] for name in os.environ if name.startswith("UPMEM_")}
    return own | {"ACCEL_RL_UPMEM": "vendor", "ACCEL_RL_CACHE": tmp_path_factory.mktemp("cache")}


@pytest.fixture
def ranks(sdk):
    optional.require("real DPUs")
    return sdk


@pytest.mark.upmem_sdk
def test_the_sdk_builds_every_program(sdk):
    run(build_programs, ORDERS, **sdk)


@pytest.mark.upmem_sdk
@pytest.mark.parametrize(("numerics", "rule", "order"), CONTRACTS)
def test_real_dpus_keep_the_contract(ranks, numerics, rule, order):
    run(keep_the_contract, numerics, rule, order, **ranks)


@pytest.mark.upmem_sdk
def test_real_dpus_train_as_the_other_backends(ranks):
    run(check_right, **ranks)


# --- A folder that passes for it ---


def work_with_the_sdk():
    assert find_sdk().found
    assert pim.upmem.which_toolkit() == pim.upmem.find_toolkit().name == "vendor"
    assert pim.upmem.why_absent() is None
    for backend in ("upmem", pim.upmem_backend(asynchronous=False, sdk="vendor")):
        check_right(backend=backend)
        error = caught(pim.upmem.DpuFault, train, HALTED, backend=backend)
        assert (str(error), error.dpu) == ("DPU 3 is in fault", 3)  # UPMEM's SDK knows no more
        assert f"80 rows, seed {HALTED}" in error.log
    check_right(machine=None)
    with pim.upmem.recording() as recorded:
        check_right(seed=5)
    assert recorded.report.dpus == DPUS
    error = caught(pim.upmem.UpmemError, pim.upmem_backend, sdk="emulator")
    assert "this process runs DPUs with" in str(error)


@pytest.fixture(scope="module")
def passing(tmp_path_factory):
    """Variables of processes that take the emulator for UPMEM's SDK."""
    folder = tmp_path_factory.mktemp("vendor")
    return {
        "UPMEM_HOME": make_working_sdk(folder / "sdk"),
        "ACCEL_RL_CACHE": folder / "cache",
        "ACCEL_RL_KERNEL_SOURCES": break_programs(folder / "kernels"),
    }


@pytest.mark.slow  # builds with a made-up SDK
@needs("gcc", "g++")
def test_the_sdk_is_found_and_builds_and_runs(passing):
    run(work_with_the_sdk, **passing)
    made = contents(passing["ACCEL_RL_CACHE"])
    assert [path.name for path in made if path.suffix] == ["host.so"]
    run(check_right, **passing)
    assert contents(passing["ACCEL_RL_CACHE"]) == made, "a second process builds nothing"


@pytest.mark.slow
@needs("gcc", "g++")
def test_the_tests_of_the_real_one(passing):
    run(build_programs, ORDERS[:1], **passing)
    for settings in CONTRACTS:
        run(keep_the_contract, *settings, **passing)
