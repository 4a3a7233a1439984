"""The command for accelerators, tried on the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "accelerator.py"


@pytest.mark.long
def test_dry_run(tmp_path):
    """Slow: each part is a process that compiles. Away from the repository, as on a new machine."""
    command = [sys.executable, SCRIPT, "--dry-run", "--out", tmp_path / "found"]
    # flashbax and the plain loop promote types as JAX does by default. Most of it is compilation.
    usual = {k: v for k, v in os.environ.items() if not k.startswith("JAX_NUMPY")}
    # One device, as most machines have.
    usual["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    subprocess.run(command, check=True, cwd=tmp_path, env=usual)
    report = json.loads((tmp_path / "found" / "accelerator.json").read_text())
    failed = [claim["claim"] for claim in report["claims"] if claim["holds"] is not True]
    assert failed == []
    assert len(report["claims"]) > 50
    assert report["machine"]["accelerator"] == "cpu (cpu)"
    found = {(each["case"].split(",")[0], each["system"]) for each in report["records"]}
    assert {("PER step in a scan", f"accel_rl PER, {form}") for form in ("wide", "pallas")} <= found
    assert ("DQN on CartPole-v1", "plain loop") in found
    for name in ("accelerator.png", "report.html"):
        assert (tmp_path / "found" / name).stat().st_size > 10_000
    assert not list((tmp_path / "found").glob("*.part"))


def test_a_part_that_fails_leaves_what_was_measured_and_says_so(tmp_path):
    """A part of no time at all measures nothing; the report is written all the same."""
    command = [sys.executable, SCRIPT, "--dry-run", "--only", "searches", "--seconds", "0"]
    subprocess.run([*command, "--out", tmp_path], check=True)
    report = json.loads((tmp_path / "accelerator.json").read_text())
    assert [(claim["claim"], claim["holds"]) for claim in report["claims"]] == [
        ("searches: no time was left", None)
    ]
