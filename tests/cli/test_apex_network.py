"""`accel-rl apex --network`: a training through namespaces of its own, of which nothing stays."""

import os
import signal
import subprocess
from pathlib import Path

import processes
import pytest
import quick
from commands import as_json, invoke
from optional import needs

from accel_rl.cli import optional

TINY = (
    "schedule.rollout=4", "schedule.updates=2", "schedule.num_envs=4",
    "schedule.learning_starts=100", "replay.batch_size=8", "agent.hidden=[16]", "--actors", 1,
)  # fmt: skip
EXIT_CODES = {signal.SIGTERM: 143, signal.SIGKILL: -9, signal.SIGINT: 130}
in_namespaces = needs("network namespaces")
with_dpdk = needs("DPDK")


def namespaces():
    """Network namespaces of all processes, by process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found[int(path.parts[2])] = os.readlink(path)
        except OSError:  # ended meanwhile
            continue
    return found


def devices():
    """Names of the network devices here."""
    return {line.split(":")[1] for line in subprocess.getoutput("ip -o link").splitlines()}


@in_namespaces
@pytest.mark.long  # trains with processes
@pytest.mark.parametrize(
    "placement",
    [
        pytest.param("in-path", marks=with_dpdk),
        pytest.param("beyond", marks=with_dpdk),
        "sockets",
    ],
)
def test_a_training_ends_with_what_it_did(tmp_path, placement):
    here, before = os.readlink("/proc/thread-self/ns/net"), devices()
    words = ("--network", placement, "--steps", 800, "--out", tmp_path / "run")
    found = as_json("apex", "CartPole-v1", *TINY, *words)
    assert (found["network"], found["steps"]) == (placement, 800)
    assert found["updates"] == 2 * (800 - 112) // 16
    assert found["acted_steps"] > 0
    assert 1 <= found["evaluation"] <= 500
    assert os.readlink("/proc/thread-self/ns/net") == here
    assert devices() == before


@in_namespaces
@with_dpdk
@pytest.mark.long
@pytest.mark.parametrize("number", quick.only([signal.SIGINT, signal.SIGKILL], EXIT_CODES))
def test_nothing_stays_of_a_training_that_was_ended(tmp_path, number):
    """Neither processes nor namespaces, whose devices go with them."""
    before, runtime = devices(), Path("/var/run/dpdk")
    folders = set(runtime.glob("*"))
    rows = tmp_path / "run" / "metrics.jsonl"
    words = ("--in-network", "--steps", 10_000_000, "--out", tmp_path / "run")
    known = set(namespaces().values())
    settings = (*TINY, "training.period=400")
    with processes.start("-m", "accel_rl", "apex", "CartPole-v1", *settings, *words) as process:
        processes.wait_until(lambda: rows.exists() and len(rows.read_text().splitlines()) > 1)
        made = {each for each in namespaces().values() if each not in known}
        # The learner's side has the main thread of the command, actors and server are processes.
        assert len(made) == 3
        process.send_signal(number)
        assert process.wait(processes.LIMIT) == EXIT_CODES[number]
    processes.wait_until(lambda: not made & set(namespaces().values()))
    assert devices() == before
    if number != signal.SIGKILL:
        assert set(runtime.glob("*")) == folders


@pytest.mark.parametrize(
    ("placement", "missing"),
    [("in-path", {"network namespaces", "DPDK"}), ("sockets", {"network namespaces"})],
)
def test_one_error_names_all_that_is_missing(tmp_path, monkeypatch, placement, missing):
    for name, part in optional.PARTS.items():
        monkeypatch.setitem(optional.PARTS, name, part._replace(why_absent=lambda: "gone"))
    result = invoke("apex", "CartPole-v1", "--network", placement, "--out", tmp_path / "run")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert {each for each in ("network namespaces", "DPDK") if f"{each}: absent" in line} == missing
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--in-network", "--network", "sockets"), "--in-network is --network in-path, got"),
        (("--in-network", "--shards", 2), "--network takes one server and actors"),
        (("--in-network", "--server", "tcp://127.0.0.1:1"), "--network takes one server"),
        (("--in-network", "--launcher", "ray"), "--network takes one server and actors"),
    ],
)
def test_bad_options_are_refused(tmp_path, words, message):
    result = invoke("apex", "CartPole-v1", *words, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
