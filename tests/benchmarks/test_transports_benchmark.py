"""The benchmark of transports: all that is there is asked, and claims come from what ran."""

import sys
from pathlib import Path

import pytest
from optional import require

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import common
import transports as benchmark

require("replay server")


def test_every_transport_is_asked_for_everything(monkeypatch):
    monkeypatch.setattr(benchmark, "CAPACITY", 600)
    monkeypatch.setattr(benchmark.cores, "wait", lambda seconds: None)
    report = common.Report(["numpy"])
    benchmark.measure(report, 1, 10)
    systems = {record.system for record in report.records}
    assert {benchmark.TCP, benchmark.UNIX, benchmark.UDP, benchmark.SHARED} <= systems
    assert {(r.case, r.system) for r in report.records} == {
        (case, system) for case in benchmark.REQUESTS for system in systems
    }
    assert all(record.value > 0 for record in report.records)
    with_memif = benchmark.MEMIF in systems
    assert [claim.holds is None for claim in report.claims] == [False, *[not with_memif] * 3]


def test_claims_are_ratios_of_the_same_round():
    taken = {("ping 64 B", benchmark.TCP): [20.0, 2.0], ("ping 64 B", benchmark.SHARED): [1.0, 0.1]}
    for case, udp, memif in (("ping 64 B", 10.0, 3.0), ("sample 64", 10.0, 3.0)):
        taken[case, benchmark.UDP], taken[case, benchmark.MEMIF] = [udp] * 2, [memif] * 2
    report = common.Report(["numpy"])
    benchmark.claims(report, taken)
    spared = pytest.approx(0.7)
    assert [claim.value for claim in report.claims] == [20.0, spared, spared, None]
    assert [claim.holds for claim in report.claims] == [True, False, True, None]
