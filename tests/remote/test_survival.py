"""`accel-rl apex` whose server, learner and actors are killed at random moments."""

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import numpy as np
import processes
import pytest
import quick
from optional import needs
from processes import LIMIT, wait_until

pytestmark = [pytest.mark.long, needs("replay server")]  # many processes that import JAX

RUN = ("-m", "accel_rl", "apex", "CartPole-v1", "--actors", "2", "--out", "run")
ROLES = {"server": b"accel_rl.remote.process", "learner": b"learner", "actor": b"actor"}


def children(pid, role):
    """Processes of a role that a process has started, ascending."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
                if any(ROLES[role] in word for word in words[1:]):
                    found.append(int(child))
    return sorted(found)


def rows(folder):
    with contextlib.suppress(OSError):
        lines = (folder / "run" / "metrics.jsonl").read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]
    return []


def survive(folder, seed, *more, kills=10, steps=150_000):
    """Train, and kill a process of a random role `kills` times; return results and what died."""
    rng, died = random.Random(seed), []
    words = (*RUN, "--steps", str(steps), "--restarts", str(kills), "--json", *more)
    with processes.start(*words, cwd=folder, stdout=subprocess.PIPE) as command:
        wait_until(lambda: rows(folder))
        while len(died) < kills and command.poll() is None:
            time.sleep(rng.uniform(0.3, 4.0))
            role = rng.choice(list(ROLES))
            found = children(command.pid, role)
            if found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rng.choice(found), signal.SIGKILL)
                    died.append(role)
        printed, _ = command.communicate(timeout=10 * LIMIT)
    assert command.returncode == 0
    return json.loads(printed), died


@pytest.mark.parametrize("durability", quick.only(["log"], ["none", "log"]))
def test_ten_random_kills(tmp_path, durability):
    results, died = survive(tmp_path, 0, "--durability", durability)
    assert len(died) == 10
    assert set(died) == set(ROLES)
    assert results["evaluation"] > 60  # at random 22
    assert results["actor_restarts"] == died.count("actor")
    assert results["server_restarts"] == died.count("server")
    assert results["learner_restarts"] == died.count("learner")
    found = rows(tmp_path)
    steps = [row["steps"] for row in found]
    assert steps == sorted(set(steps))  # what a killed learner had not saved is undone
    assert steps[-1] == results["steps"]
    seconds = [row["seconds"] for row in found]
    assert np.all(np.diff(seconds) >= 0)


@pytest.mark.parametrize("number", quick.only([signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]))
def test_a_stopped_run_is_resumed(tmp_path, number):
    words = (*RUN, "--steps", "100000", "checkpoints.every=2_000")
    with processes.start(*words, cwd=tmp_path, stderr=subprocess.PIPE) as command:
        wait_until(lambda: rows(tmp_path)[-1:] and rows(tmp_path)[-1]["steps"] > 10_000)
        command.send_signal(number)
        _, said = command.communicate(timeout=LIMIT)
    assert command.returncode == 128 + number
    assert "accel-rl resume run goes on" in said
    before = rows(tmp_path)
    assert before[-1]["steps"] < 30_000  # soon, by the clock of the training: others may be busy
    resume = ("-m", "accel_rl", "resume", "run", "--steps", "20000", "--json")
    with processes.start(*resume, cwd=tmp_path, stdout=subprocess.PIPE) as command:
        printed, _ = command.communicate(timeout=10 * LIMIT)
    assert command.returncode == 0
    results, after = json.loads(printed), rows(tmp_path)
    assert results["steps"] == after[-1]["steps"] == 20_032
    saved = [row for row in before if row["steps"] <= before[-1]["steps"] // 2_000 * 2_000]
    assert after[: len(saved)] == saved
    assert len(saved) >= 5
