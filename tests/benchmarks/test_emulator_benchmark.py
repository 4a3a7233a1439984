"""The emulator and plain C do the same work in the benchmark."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sdk_present import needs_sdk

import pim_emu

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import common
import emulator as benchmark
import emulator_cores
from emulator_kernels import HISTOGRAM, VECTOR_ADD, Emulated, Kernel, Plain

pytestmark = needs_sdk
ELEMENTS, DPUS = 512 * 23, 3  # blocks that tasklets share unequally


@pytest.mark.slow  # builds kernels
@pytest.mark.parametrize("kernel", [VECTOR_ADD, HISTOGRAM], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("system", benchmark.EMULATED)
def test_a_kernel_does_what_plain_c_does(kernel: Kernel, system: str, tmp_path: Path):
    values = np.random.default_rng(3).integers(2**32, size=(DPUS, ELEMENTS), dtype=np.uint32)
    emulated = Emulated(kernel, values, *benchmark.EMULATED[system])
    plain = Plain(kernel, values, tmp_path, benchmark.PLAIN[benchmark.SAME])
    for _ in range(3):
        emulated()
        plain()
    result = emulated.result()
    emulated.close()
    pim_emu.configure(checks=True)
    np.testing.assert_array_equal(result, plain.result())
    if kernel is VECTOR_ADD:
        np.testing.assert_array_equal(result, 3 * values)
    else:
        np.testing.assert_array_equal(result, 3 * np.bincount(values.ravel() % 256))


@pytest.mark.long  # builds kernels
def test_rates_and_claims_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(common, "SAMPLE_SECONDS", 0.0)
    report = common.Report(["numpy"])
    benchmark.streaming(report, VECTOR_ADD, tmp_path, ELEMENTS, DPUS, rounds=2)
    pim_emu.configure(checks=True)
    rates = {x.system: x.value for x in report.records if x.metric == benchmark.METRIC}
    assert set(rates) == {*benchmark.EMULATED, *benchmark.PLAIN, benchmark.COPIES}
    assert min(rates.values()) > 0
    assert [claim.bound for claim in report.claims] == [0.6, 0.6, 1.0, 0.4]
    assert all(claim.value > 0 for claim in report.claims)
    benchmark.launches(report, dpus=2, rounds=2)
    benchmark.memory(report)
    resident = next(x for x in report.records if x.metric == "resident memory")
    assert 0 < resident.value < 2048


@pytest.mark.long  # builds a kernel
def test_launches_in_a_process_of_their_own_compute():
    x = np.arange(1, 3, dtype=np.uint32)
    for _ in range(emulator_cores.STEPS):
        x ^= x << 13
        x ^= x >> 17
        x ^= x << 5
    with emulator_cores.Launches(dpus=3, tasklets=2, workers=1) as launches:
        launches()
        cpu, wall = launches.seconds(2)
        assert min(cpu, wall) > 0
        np.testing.assert_array_equal(launches.results(), np.tile(x, (3, 1)))
