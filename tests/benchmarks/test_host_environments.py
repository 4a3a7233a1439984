"""Host environments beside SB3's and EnvPool's: what is recorded where none of these is there."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import host_environments as benchmark
from common import Report


def test_without_rivals_claims_are_null(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "ROUNDS", 2)
    benchmark.main(["--quick", "--json", str(tmp_path / "r.json")])
    report = json.loads((tmp_path / "r.json").read_text())
    assert {r["system"] for r in report["records"]} == {
        "accel_rl, in sequence", "accel_rl, processes",
    }  # fmt: skip
    assert all(record["value"] > 0 for record in report["records"])
    assert [claim["holds"] for claim in report["claims"]] == [None, None]
    assert "claims are null: give --rivals" in capsys.readouterr().err


def test_rates_are_compared_in_pairs():
    report = Report((), "host_environments")
    for name, rate in (("accel_rl", [30, 30]), ("SB3", [20, 20])):
        report.add("walk", f"{name}, in sequence", benchmark.RATE, "steps/s", rate)
    report.add("walk", "accel_rl, processes", benchmark.RATE, "steps/s", [5])
    benchmark.claim(report, "walk")
    assert [(claim.value, claim.holds) for claim in report.claims] == [(1.5, True), (None, None)]
