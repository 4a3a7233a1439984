"""Environments of rivals: pinned whole, found only where they are whole and of these pins."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import rivals
from suites import BENCHMARKS


def test_every_requirement_is_one_version():
    files = {path.stem: path.read_text() for path in rivals.REQUIREMENTS.glob("*.txt")}
    assert set(files) == set(rivals.OPTIONS.values())
    assert {option for options in BENCHMARKS.values() for option in options} == set(rivals.OPTIONS)
    for name, text in files.items():
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert all(re.fullmatch(r"[\w.-]+==[\w.!+]+", line) for line in lines), name
        names = [re.sub(r"[_.]", "-", line.partition("==")[0].lower()) for line in lines]
        assert len(set(names)) == len(names)
    assert "stable_baselines3==2.9.2" in files["torch"]
    assert "dm-reverb==0.14.0" in files["reverb"]


def test_an_environment_counts_once_it_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(rivals, "BUILD", tmp_path / "build")
    monkeypatch.setattr(rivals, "REQUIREMENTS", tmp_path)
    pins = tmp_path / "ray.txt"
    pins.write_text("# Nothing is needed.\n")
    assert rivals.interpreter("--ray") is None
    calls = []

    def refuse(command, **_):
        calls.append(command)
        raise subprocess.CalledProcessError(1, command)

    with monkeypatch.context() as patch:
        patch.setattr(rivals.subprocess, "run", refuse)
        patch.setattr(rivals.venv, "create", lambda folder, **_: folder.mkdir(parents=True))
        with pytest.raises(subprocess.CalledProcessError):
            rivals.make("ray")
        assert rivals.interpreter("--ray") is None
        patch.setattr(rivals.subprocess, "run", lambda command, **_: calls.append(command))
        patch.setattr(rivals.venv, "create", lambda *_, **__: None)
        rivals.make("ray")
    assert calls[1][-2:] == ["--requirement", str(pins)]
    found = rivals.interpreter("--ray")
    assert found == str(tmp_path / "build" / "rivals-ray" / "bin" / "python")
    pins.write_text("six==1.17.0\n")
    assert rivals.interpreter("--ray") is None
