"""The benchmark of a place on the path: claims of each round, null where nothing could run."""

import sys
from pathlib import Path

import pytest
from optional import require

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import common
import in_network as benchmark

require("replay server")


def test_claims_are_parts_of_the_same_round():
    taken = {}
    for name in benchmark.SPARED:
        taken[name, benchmark.PATH], taken[name, benchmark.FURTHER] = [8.0, 79.0], [10.0, 100.0]
    report = common.Report(["numpy"])
    benchmark.claims(report, taken)
    assert [claim.value for claim in report.claims] == [pytest.approx(0.205)] * 3
    assert all(claim.holds for claim in report.claims)


def test_without_a_run_claims_are_null():
    report = common.Report(["numpy"])
    benchmark.claims(report, {})
    assert [(claim.value, claim.holds) for claim in report.claims] == [(None, None)] * 3


@pytest.mark.long  # measures
def test_two_places_are_measured():
    if why := benchmark.why_not():
        pytest.skip(f"NOT TESTED in network namespaces: {why}")
    report = common.Report(["numpy"])
    benchmark.measure(report, 1, 10)
    assert len(report.records) == 3 * 3 * 2  # requests, clients, places
    assert all(record.value > 0 for record in report.records)
