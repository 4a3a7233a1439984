"""The README's commands run as they stand; its Python is run by test_docs.py."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
    if line
]
OURS = [line for line in COMMANDS if line.startswith("accel-rl ")]


def test_every_command_is_known():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    install, *others = [line for line in COMMANDS if line not in OURS]
    assert install.startswith("sudo apt-get install python3 ")
    assert others == [f"make {each}" for each in ("demo", "test")]
    assert set(re.findall(r"`make ([a-z-]+)`", README)) <= targets
    for script in re.findall(r"`python (\S+\.py)`", README):
        assert (ROOT / script).is_file(), script


@pytest.mark.long  # trains, with actors in processes of their own
def test_commands(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    assert len(OURS) >= 4
    for line in OURS:
        command = [sys.executable, "-m", "accel_rl", *line.split()[1:]]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    assert "<html" in (tmp_path / "runs" / "cartpole" / "report.html").read_text()
