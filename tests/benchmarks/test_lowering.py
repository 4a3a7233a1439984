"""Programs lowered for CUDA on a machine without a GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "lowering.py"


@pytest.mark.long
def test_programs_are_lowered_for_a_gpu(tmp_path):
    """Slow: a training is traced. In a process of its own, as it is without C kernels."""
    path = tmp_path / "r.json"
    subprocess.run([sys.executable, SCRIPT, "--quick", "--json", path], check=True)
    report = json.loads(path.read_text())
    assert [claim["holds"] for claim in report["claims"]] == [True, True]
    found = {(each["case"], each["metric"]): each["value"] for each in report["records"]}
    assert found["associative memory, radii, uint32, pallas", "kernels of Triton"] == 1
    assert found["replay, PER, wide", "kernels of Triton"] == 0
    assert found["replay, PER, wide", "leaves in place"] >= 10
    assert found["dqn on CartPole-v1, 16 seeds", "StableHLO"] > 100
