"""What all benchmarks share: a record is written whatever programs this user cannot start."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import common


@pytest.mark.parametrize("present", [False, True])
def test_programs_that_cannot_be_started_are_absent(tmp_path, monkeypatch, present):
    if present:  # PermissionError, not FileNotFoundError
        for name in ("git", "gcc"):
            (tmp_path / name).touch(0o600)
    monkeypatch.setenv("PATH", str(tmp_path))
    report = common.Report([])
    assert report.head["commit"] == "unknown"
    assert report.versions["gcc"] is None
    with pytest.raises(FileNotFoundError, match="gcc cannot be started"):
        common.compile_c(tmp_path / "source.c", tmp_path)
