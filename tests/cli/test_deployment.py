"""The examples of docs/deployment: what they run, and that their formats' checkers take them."""

import contextlib
import json
import pathlib
import re
import shlex
import shutil
import socket
import stat
import subprocess
import sys

import numpy as np
import processes
import pytest
from commands import invoke
from optional import needs

from accel_rl import remote

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "deployment"
SPEC = remote.TableSpec("t", 100, (remote.Column("n", "i4"),))


def unit_command():
    """Words of the unit's ExecStart, without the program."""
    text = (FOLDER / "accel-rl-replay.service").read_text()
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.M)
    return shlex.split(line)[1:]


def listed(text):
    """Lists of words, as JSON, in a YAML file."""
    return [json.loads(each) for each in re.findall(r'\["[^\]]*"\]', text)]


def commands():
    """Words of each accel-rl command in the examples."""
    found = [unit_command()]
    for name in ("compose.yaml", "kubernetes.yaml"):
        for words in listed((FOLDER / name).read_text()):
            if words[0] in ("replay-server", "apex"):
                found.append(words)
            elif "accel-rl" in words:
                found.append(words[words.index("accel-rl") + 1 :])
    script = (FOLDER / "apex.sbatch").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^accel-rl (.*) >", script, re.M)
    return [*found, shlex.split(line)]


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words[:2]))
def test_commands_have_options_that_there_are(words):
    result = invoke(*words, "--help")
    assert result.exit_code == 0, result.output


@needs("replay server")
def test_the_unit_comes_back_with_what_it_logged(tmp_path):
    """The same command is started, killed and started again."""
    (tmp_path / "secret").write_text("a secret of the unit\n")
    values = {"${CREDENTIALS_DIRECTORY}": str(tmp_path), "${STATE_DIRECTORY}": str(tmp_path)}
    words = unit_command()
    for name, value in values.items():
        words = [each.replace(name, value) for each in words]
    words[words.index("--host") + 1] = "none"
    words += ["--unix", str(tmp_path / "socket")]
    segment = tmp_path / "replay.snapshot.log.0"
    address, secret = f"unix:{tmp_path}/socket", b"a secret of the unit"
    with contextlib.ExitStack() as stack:
        for number in range(2):
            server = stack.enter_context(
                processes.start("-m", "accel_rl", *words, stdout=subprocess.PIPE)
            )
            assert "serving on" in server.stdout.readline()
            if number == 0:
                client = remote.ReplayClient(address, secret, reconnect=processes.LIMIT)
                table = stack.enter_context(client).table(SPEC)
                table.push([np.arange(90, dtype=np.int32)])
                processes.wait_until(lambda: segment.exists() and segment.stat().st_size > 500)
                server.kill()
            else:
                assert table.stats()["size"] == 90


def test_the_unit_is_one(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze")
    text = (FOLDER / "accel-rl-replay.service").read_text()
    path = tmp_path / "accel-rl-replay.service"
    path.write_text(text.replace("/opt/accel-rl/bin/accel-rl", "/bin/true"))
    done = subprocess.run([program, "verify", "--man=no", path], capture_output=True, text=True)
    assert path.name not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


def test_kubernetes_takes_the_manifest():
    yaml = pytest.importorskip("yaml")
    checker = pytest.importorskip("kubernetes_validate")
    documents = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))
    assert len(documents) == 5
    for document in documents:
        checker.validate(document, "1.31", strict=True)


def test_compose_takes_the_file():
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("no docker-compose")
    command = [program, "-f", FOLDER / "compose.yaml", "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


SRUN = """#!/bin/bash
while [ "$1" != bash ]; do shift; done
for number in $(seq 0 $((SLURM_NTASKS - 1))); do SLURM_PROCID=$number "$@" & done
wait
"""


@pytest.mark.long
@needs("replay server")
def test_the_batch_script_trains(tmp_path):
    """Slow: four processes. srun is one that starts all tasks here."""
    (tmp_path / "secret").write_text("a secret of the job\n")
    (tmp_path / "srun").write_text(SRUN)
    for name, words in (("accel-rl", " -m accel_rl"), ("python", "")):
        (tmp_path / name).write_text(f'#!/bin/bash\nexec {sys.executable}{words} "$@"\n')
    for name in ("srun", "accel-rl", "python"):
        (tmp_path / name).chmod(stat.S_IRWXU)
    script = (FOLDER / "apex.sbatch").read_text()
    (tmp_path / "apex.sbatch").write_text(script.replace("7077", str(free_port())))
    environment = {
        "PATH": f"{tmp_path}:{pathlib.Path(sys.executable).parent}:/usr/bin:/bin",
        "TRAIN": str(FOLDER / "train.py"),
        "SLURM_NTASKS": "2",
        "SLURMD_NODENAME": "127.0.0.1",
        "STEPS": "1500",
    }
    command = ["bash", "apex.sbatch"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[-1]["steps"] >= 1500
    assert rows[-1]["actors_heard"] == 2
    assert list((tmp_path / "runs" / "apex" / "checkpoints").iterdir())


def free_port():
    """A port that nobody listens at now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
