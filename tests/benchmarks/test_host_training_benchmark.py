"""Training in MuJoCo beside SB3: what is recorded where SB3 is not there, and how rates compare."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import host_training as benchmark
from common import Report, System

CASE = "TD3, Hopper-v5"


@pytest.mark.long
def test_without_a_rival_the_claim_is_null(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mujoco")
    monkeypatch.setattr(benchmark, "ROUNDS", 1)
    benchmark.main(["--quick", "--json", str(tmp_path / "r.json")])
    report = json.loads((tmp_path / "r.json").read_text())
    (record,) = report["records"]
    assert (record["case"], record["system"]) == (CASE, "accel_rl")
    assert record["value"] > 0
    assert [claim["holds"] for claim in report["claims"]] == [None]
    assert "claims are null: give --rivals" in capsys.readouterr().err


def test_the_rival_is_the_faster_number_of_threads(monkeypatch):
    def takes(seconds):
        return System(lambda: None, 10, lambda repeats: (seconds, seconds))

    monkeypatch.setattr(benchmark, "ours", lambda *asked: takes(1))
    monkeypatch.setattr(benchmark, "sb3", lambda *asked: takes({1: 4, 2: 2}[asked[3]]))
    monkeypatch.setattr(benchmark.os, "sched_getaffinity", lambda process: {0, 1})
    report = Report((), "host_training")
    benchmark.measure(report, "td3", "Hopper-v5", object(), 10)
    (claim,) = report.claims
    assert (claim.value, claim.holds) == (2, True)
    assert claim.rival == (CASE, "SB3, torch threads: 2", benchmark.RATE)
