"""What a benchmark's JSON must hold; and the committed records and their page."""

import copy
import json
import sys
from pathlib import Path

import pytest

from accel_rl.report import results

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

RECORD = {
    "case": "a",
    "system": "ours",
    "metric": "steps",
    "unit": "1/s",
    "value": 4,
    "spread": [3.5, 4.5],
    "basis": "measured",
}
CLAIM = {
    "claim": "a: times as fast",
    "value": 2.0,
    "bound": 1.5,
    "holds": True,
    "sense": ">=",
    "basis": "measured",
    "ours": ["a", "ours", "steps"],
    "rival": None,
}
WHOLE = {
    "schema": results.SCHEMA,
    "benchmark": "some",
    "part": None,
    "date": "2026-11-22T10:00:00+00:00",
    "commit": None,
    "quick": True,
    "seeds": None,
    "machine": {"cpu": "x", "cores": 2},
    "versions": {"python": "3.11", "jax": None},
    "load": {"before": [0.5, 0.5, 0.5]},
    "records": [RECORD],
    "claims": [CLAIM],
}


def test_a_whole_file_is_read(tmp_path):
    path = tmp_path / "some.json"
    path.write_text(json.dumps(WHOLE))
    found = results.read(path)
    assert (found.benchmark, found.quick, found.source) == ("some", True, "some.json")
    record = found.find(found.claims[0].ours)
    assert (record.value, record.spread) == (4.0, (3.5, 4.5))
    assert found.find(None) is None


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("schema",), "other/1", "schema must be 'accel_rl.benchmark/1', got \"other/1\""),
        (("benchmark",), "", "benchmark String should have at least 1 character"),
        (("date",), "yesterday", "date Invalid isoformat string: 'yesterday'"),
        (("quick",), "yes", "quick must be a valid boolean"),
        (("versions", "jax"), 1, "versions.jax must be a valid string"),
        (("load", "before"), 1.0, "load.before must be a valid array"),
        (("records",), {}, "records must be a valid array"),
        (("records", 0), [], "records.0 must be an object"),
        (("records", 0, "value"), "4", "records.0.value must be a valid number"),
        (("records", 0, "value"), True, "records.0.value must be a valid number"),
        (("records", 0, "value"), float("nan"), "records.0.value must be a finite number"),
        (("records", 0, "spread"), [1.0], "records.0.spread.1 is missing"),
        (("records", 0, "basis"), "guessed", "records.0.basis must be 'measured' or 'modelled'"),
        (("claims", 0, "sense"), ">", "claims.0.sense must be '>=', '<=' or '=='"),
        (("claims", 0, "holds"), 1, "claims.0.holds must be a valid boolean"),
        (("claims", 0, "value"), None, "claims.0 holds must be null without a value"),
        (("claims", 0, "ours"), ["a", "b", "c"], "claims.0.ours names no record"),
        (("claims", 0, "rival"), ["a"], "claims.0.rival.1 is missing"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, place, value, message):
    broken = copy.deepcopy(WHOLE)
    inside = broken
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken))
    with pytest.raises(ValueError, match=f"broken.json holds no benchmark results: {message}"):
        results.read(path)


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_nothing_may_be_missing(name):
    with pytest.raises(ValueError, match=f"{name}"):
        results.parse("x", {key: value for key, value in WHOLE.items() if key != name})


@pytest.mark.parametrize("kind", ["records", "claims"])
def test_a_figure_without_basis_is_not_taken_for_measured(kind):
    broken = copy.deepcopy(WHOLE)
    del broken[kind][0]["basis"]
    with pytest.raises(ValueError, match=f"{kind}.0.basis is missing"):
        results.parse("x", broken)


def test_what_is_no_table_is_named(tmp_path):
    for number, (text, message) in enumerate((('{"schema": ', "Expecting"), ("[]", "a table"))):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        with pytest.raises(ValueError, match=f"{number}.json holds .* results: .*{message}"):
            results.read(path)


def test_the_newest_of_each_part_is_kept(tmp_path):
    for name, changes in (
        ("old", {}),
        ("new", {"date": "2026-11-23"}),
        ("part", {"part": "half", "date": "2026-11-01"}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps({**WHOLE, **changes}))
    assert [each.source for each in results.newest(tmp_path)] == ["new.json", "part.json"]


def test_verdicts_of_committed_records_follow_from_their_values():
    found = results.newest(ROOT / "benchmarks" / "results")
    assert len(found) > 5
    tests = {">=": float.__ge__, "<=": float.__le__, "==": lambda a, b: abs(a - b) < 1e-9}
    for each in found:
        for claim in each.claims:
            # Beyond the bound a choice may also hold by quartiles that overlap.
            if claim.holds is not None and "quartiles overlap" not in claim.claim:
                assert claim.holds is tests[claim.sense](claim.value, claim.bound), claim


def test_the_committed_page_is_what_the_records_give():
    import render

    found = results.newest(render.RESULTS)
    assert render.PAGE.read_text(encoding="utf-8") == render.markdown(found)
    # By hand, from the record: AMPER-k in setting B.
    told = "setting B by replay, 1 seed: rate with amper_k over that with uniform, 1 / 1.3"
    (line,) = (x for x in render.markdown(found).splitlines() if told in x)
    assert line.endswith("| 0.658 | >= 0.7692 | **missed** | measured |")


def test_a_report_is_valid_and_calls_modelled_what_is(tmp_path):
    from common import Claim, Report

    report = Report([], "some", quick=True)
    report.add("case", "DPUs", "modelled cycles", "", [2.0])
    report.add("case", "host", "time", "s", [1.0, 2.0])
    place = report.place("case", "DPUs", "modelled cycles")
    report.claims.append(Claim("fewer cycles", 2.0, 3.0, True, "<=", ours=place))
    report.load["after"] = [0.0]
    report.write(tmp_path / "some.json")
    found = results.read(tmp_path / "some.json")
    assert [record.basis for record in found.records] == ["modelled", "measured"]
    assert found.claims[0].basis == "modelled"
    assert found.machine["cores"] >= 1
