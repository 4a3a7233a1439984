"""The guard of what compiled programs cost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "costs.py"


@pytest.mark.long
def test_programs_cost_what_they_did():
    """Slow: nine programs are compiled, as they are by default."""
    usual = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS" and "JAX_NUMPY" not in k}
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, env=usual)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_grew_by_more_than_the_slack_is_told(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    import kept_counts

    kept = {"a": {"bytes": 100, "operations": 0}, "gone": {"bytes": 1}}
    found = {"a": {"bytes": 105, "operations": 0}, "new": {"bytes": 1}}
    told = kept_counts.compare(kept, found)
    assert [text.split(":")[0] for text in told] == ["gone", "new"]
    found["a"] = {"bytes": 106, "operations": 1}
    assert [text.split(", ")[0] for text in kept_counts.compare(kept, found)[2:]] == [
        "a: bytes: 106",
        "a: operations: 1",
    ]
