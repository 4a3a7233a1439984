"""The benchmark of the DPU programs counts what it says, and claims from its own records."""

import sys
from pathlib import Path

import pytest
from sdk_present import needs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import common
import dpu_kernels as benchmark

pytestmark = needs("gcc", "g++")


@pytest.mark.slow  # builds a DPU program for each rule and numerics
def test_counts_are_of_an_update():
    chunks = benchmark.chunks_of("FrozenLake-v1", 512, 1)
    counted = benchmark.count(chunks, "q_learning", "int32_pow2", (1, 1))
    assert 30 < counted[benchmark.INSTRUCTIONS] < 90
    # A tasklet alone issues an instruction in eleven cycles.
    ratio = counted[benchmark.CYCLES] / counted[benchmark.INSTRUCTIONS]
    assert 10.9 < ratio < 12.5


def test_claims_come_from_records():
    report = common.Report(["jax"])
    case = "some case"
    benchmark.claim(report, case, "fp32", "int32_scaled", 5)
    assert (report.claims[0].value, report.claims[0].holds) == (None, None)
    for numerics, value in (("fp32", 600), ("int32_scaled", 100)):
        name = benchmark.name_of(numerics, (1, 1))
        report.add(case, name, benchmark.INSTRUCTIONS, "", [value])
    benchmark.claim(report, case, "fp32", "int32_scaled", 5)
    benchmark.claim(report, case, "fp32", "int32_scaled", 7)
    assert [claim.holds for claim in report.claims[1:]] == [True, False]


@pytest.mark.slow  # builds two DPU programs
def test_speed_is_compared_in_the_same_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(common, "SAMPLE_SECONDS", 0.0)
    report = common.Report(["jax"])
    benchmark.speed(report, rows=800, dpus=4, passes=2, rounds=2)
    ratios = [record for record in report.records if record.system == "upmem / cpu"]
    assert len(ratios) == len(benchmark.ENVIRONMENTS)
    assert all(record.value > 0 for record in ratios)
