"""The benchmark of the replay server's core checks what it times, and claims from its records."""

import sys
from pathlib import Path

import numpy as np
import pytest
from optional import require

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import common
import replay_core as benchmark

require("replay server")


def test_all_cases_are_timed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(common, "SAMPLE_SECONDS", 0.0)
    problem = benchmark.make_problem(2000)
    systems = {
        benchmark.CORE: benchmark.core(problem),
        benchmark.WEIGHTED: benchmark.core(problem, weighted=True),
    }
    for name, memory in systems.items():
        benchmark.check(name, memory, problem)
    report = common.Report(["numpy"])
    benchmark.measure(report, systems, 2)
    cases = {record.case for record in report.records}
    assert cases == {"sample 64", "sample 512", "update 64", "update 512", "push 50"}
    benchmark.claims(report)
    # There was no rival.
    assert [claim.holds for claim in report.claims] == [None, None]


def test_another_distribution_is_noticed():
    problem = benchmark.make_problem(2000)
    other = problem._replace(priorities=np.ones(2000, np.float32))
    with pytest.raises(AssertionError, match="another distribution"):
        benchmark.check("core", benchmark.core(other), problem)
