"""The benchmark of growth: fits against closed forms, claims, and a case in its process."""

import json
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import growth
from common import Report
from growth_fit import SYSTEM, Case, Curve, bound, conclude, exponent, upper_half

SIZES = [10**n for n in range(3, 9)]


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_is_found(power):
    assert exponent(SIZES, [3.7 * n**power for n in SIZES]) == pytest.approx(power, abs=1e-12)


def test_the_lower_half_of_the_sizes_does_not_count():
    values = [1e9, 1e3, 5.0, *(2.0 * n for n in SIZES[3:])]
    assert exponent(SIZES, values) == pytest.approx(1.0)


def test_an_overhead_that_is_constant_hides_growth_until_it_is_passed():
    values = [100.0 + n / 1e6 for n in SIZES]
    assert 0 < exponent(SIZES, values) < 0.2
    assert exponent(SIZES, [1.0 + n for n in SIZES]) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_points_have_no_exponent(count):
    assert exponent(SIZES[:count], [1.0] * count) is None


@pytest.mark.parametrize(("count", "kept"), [(3, 3), (4, 3), (5, 3), (6, 3), (7, 4), (9, 5)])
def test_the_upper_half_has_the_middle_and_three_points_at_least(count, kept):
    assert list(upper_half(range(count))) == list(range(count - kept, count))


@pytest.mark.parametrize("order", ["O(1)", "O(log n)", "O(n)", "O(n^4)"])
def test_a_bound_is_the_exponent_of_the_order_at_the_same_sizes(order):
    most = bound(Curve("m", "s", order, 0.15), SIZES)
    logarithm = math.log(math.log(1e8) / math.log(1e6)) / math.log(100)
    expected = {"O(1)": 0.0, "O(log n)": logarithm, "O(n)": 1.0, "O(n^4)": 4.0}[order]
    assert most == pytest.approx(0.15 + expected, abs=1e-3)


def concluded(values, unreached=()):
    curves = (Curve("time", "s", "O(1)"),)
    case = Case("c", "C", "items", tuple(SIZES), (), lambda size: {}, curves, ("copied",))
    report = Report((), "growth")
    for size, value in zip(SIZES, values, strict=False):
        report.add(case.at(size), SYSTEM, "time", "s", [value])
        report.add(case.at(size), SYSTEM, "copied", "", [0.0])
    conclude(report, case, unreached, "time over: 1 s")
    return report


@pytest.mark.parametrize(("power", "holds"), [(0.0, True), (0.1, True), (0.2, False)])
def test_claims_hold_up_to_the_tolerance(power, holds):
    report = concluded([n**power for n in SIZES])
    assert [claim.holds for claim in report.claims] == [holds, True]
    assert report.claims[0].value == pytest.approx(power)
    assert report.find("C", SYSTEM, "largest size").value == SIZES[-1]


def test_sizes_that_were_not_reached_are_recorded_and_claims_of_too_few_are_null():
    report = concluded([1.0, 1.0], SIZES[2:])
    assert report.claims[0].holds is None
    assert report.find("C", "time over: 1 s", "sizes left out").value == 4


def test_a_case_runs_in_a_process_of_its_own(tmp_path):
    picture = tmp_path / "p.png"
    words = ["--quick", "--only", "vault", "--seconds", "300"]
    growth.main([*words, "--json", str(tmp_path / "r.json"), "--plot", str(picture)])
    report = json.loads((tmp_path / "r.json").read_text())
    case = growth.CASES["vault"]
    assert len(report["claims"]) == len(case.curves)
    # A peak of no MiB is none that can be fitted.
    timed = [claim for claim in report["claims"] if "peak" not in claim["claim"]]
    assert timed
    assert all(claim["value"] is not None for claim in timed)
    assert report["part"] == "vault"
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_a_process_that_ends_loses_only_its_own_case(tmp_path, monkeypatch):
    case = growth.CASES["vault"]
    monkeypatch.setattr(growth, "CASES", {"vault": case})
    monkeypatch.setattr(growth, "__file__", "absent.py")
    growth.main(["--quick", "--json", str(tmp_path / "r.json")])
    report = json.loads((tmp_path / "r.json").read_text())
    assert [claim["holds"] for claim in report["claims"]] == [None] * len(case.curves)
    (left,) = (x for x in report["records"] if x["metric"] == "sizes left out")
    assert left["system"] == "the process ended with 2"
