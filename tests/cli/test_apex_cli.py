"""`accel-rl apex` and `accel-rl replay-server`."""

import importlib.util
import json
import os
import signal
import stat
import subprocess
import sys

import numpy as np
import processes
import pytest
from commands import as_json, invoke
from optional import needs

from accel_rl import remote
from accel_rl.cli import apex_run
from accel_rl.io import Checkpoints
from accel_rl.remote.apex import LocalServers

needs_server = needs("replay server")
TINY = (
    "schedule.rollout=4", "schedule.updates=2", "schedule.num_envs=4",
    "schedule.learning_starts=100", "replay.batch_size=8", "agent.hidden=[16]",
)  # fmt: skip


@needs_server
@pytest.mark.long  # an actor in a process of its own
def test_a_training_ends_with_what_it_did(tmp_path):
    out = tmp_path / "run"
    found = as_json("apex", "CartPole-v1", *TINY, "--actors", 1, "--steps", 800, "--out", out)
    assert found == json.loads((out / "results.json").read_text())
    assert found["steps"] == 800
    assert found["updates"] == 2 * (800 - 112) // 16
    assert len(found["evaluation_returns"]) == 20
    assert found["evaluation"] == pytest.approx(np.mean(found["evaluation_returns"]))
    config = json.loads((out / "config.json").read_text())
    assert (config["apex"]["num_actors"], config["training"]["steps"]) == (1, 800)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["steps"] == 800
    assert Checkpoints(out / "checkpoints").newest().about["training"]["steps"] == 800
    result = invoke("apex", "CartPole-v1", "--out", out)
    assert result.exit_code == 2  # there is a run


@needs_server
@pytest.mark.slow
def test_shards_and_learners(tmp_path):
    """Slow: four processes."""
    out = tmp_path / "run"
    words = ("--actors", 1, "--shards", 2, "--learners", 2, "--steps", 800, "--out", out)
    found = as_json("apex", "CartPole-v1", *TINY, *words)
    assert (found["steps"], found["updates"]) == (800, 2 * (800 - 112) // 16)
    assert len(found["evaluation_returns"]) == 20
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["shards_lost"] == 0
    assert Checkpoints(out / "checkpoints").newest().about["training"]["steps"] == 800


@needs_server
@pytest.mark.long
def test_servers_begin_with_their_own_runs_logs(tmp_path):
    """Slow: two trainings, the second over the first, whose servers' files are not its own."""
    words = ("apex", "CartPole-v1", *TINY, "--steps", 400, "--durability", "log", "--json")
    for again in ((), ("--overwrite",)):
        result = invoke(*words, *again, "--out", tmp_path / "run")
        assert result.exit_code == 0, result.output
        kept = {path.name for path in (tmp_path / "run" / "replay").iterdir()}
        assert kept == {"0.snapshot.log.0"}
    with remote.ReplayServer(
        None, snapshot_path=tmp_path / "run" / "replay" / "0.snapshot", durability="log"
    ) as server:
        (table,) = server.stats()["tables"].values()
    assert 400 <= table["inserts"] < 800
    result = invoke("apex", "CartPole-v1", "--durability", "log", "--server", "unix:x")
    assert result.exit_code == 2


@needs_server
@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is here")
def test_without_ray_it_says_which_extra(tmp_path):
    words = ("--launcher", "ray", "--steps", 800, "--out", tmp_path / "run")
    result = invoke("apex", "CartPole-v1", *TINY, *words)
    assert result.exit_code == 1
    assert "pip install 'accel-rl[ray]'" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nonsense=1",), "no setting is named 'nonsense'"),
        (("replay.batch_size=many",), 'batch_size must be a valid integer, got "many"'),
        (("replay.batch_size=0",), "batch_size must be at least 1, got 0"),
        (("num_actors=3",), "did you mean apex.num_actors?"),
        (("--server", "nowhere"), "nowhere"),
        (("--server", "nowhere", "--shards", "2"), "--shards is for servers that are started here"),
        (("--ray-address", "auto"), "--ray-address is for --launcher ray"),
        (("--actors", "3"), "schedule.num_envs must be a multiple of apex.num_actors, 3, got 8"),
        (("--learners", "3"), "batch_size must be a multiple of the learners, 3, got 64"),
        (("--launcher", "slurm"), "'slurm' is not one of"),
        (("--server", "tcp://127.0.0.1:1") * 2, "--server must name each server once"),
        (("--server", "tcp://127.0.0.1:1", "--server", "tcp:bad"), "address must be"),
    ],
)
def test_bad_settings_are_refused(tmp_path, words, message):
    result = invoke("apex", "CartPole-v1", *words, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@needs_server
def test_what_cannot_begin_deletes_nothing(tmp_path, monkeypatch):
    """Neither bad input nor actors that do not start take an earlier run's results away."""
    out, short = tmp_path / "run", tmp_path / "secret"
    short.write_bytes(b"short\n")
    files = [out / "metrics.jsonl", out / "results.json", out / "checkpoints" / "one"]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("kept")
    again = ("apex", "CartPole-v1", "--overwrite", "--out", out)
    result = invoke(*again, "--secret-file", short)
    assert result.exit_code == 2
    message = "--secret-file must hold 16 bytes or more, got 5"
    assert message in " ".join(result.output.replace("│", " ").split())

    def fail(*_, **__):
        raise RuntimeError("no actors today")

    monkeypatch.setattr("accel_rl.cli.apex_run.LocalActors", fail)
    result = invoke(*again)
    assert (result.exit_code, "no actors today" in result.output) == (1, True)
    assert [file.read_text() for file in files] == ["kept"] * 3
    for words in (("--secret-file", short), ()):
        assert invoke("apex", "CartPole-v1", *words, "--out", tmp_path / "new").exit_code != 0
    assert not (tmp_path / "new").exists()


def test_rows_are_kept_of_a_training_that_failed(tmp_path):
    path, seen = tmp_path / "metrics.jsonl", []

    def training():
        with apex_run._kept(path, seen.append) as (begin, keep):
            begin([{"steps": 20, "loss": 1.0}])
            begin([])  # of a learner that was started again without a checkpoint
            for steps in (40, 80):
                keep({"steps": steps, "loss": float("nan")})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training()
    assert [row["steps"] for row in seen] == [40, 80]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows == [{"steps": 40, "loss": None}, {"steps": 80, "loss": None}]


@pytest.mark.parametrize(
    "words",
    [("replay-server",), ("apex", "CartPole-v1", "--out", "run")],
    ids=["replay-server", "apex"],
)
def test_without_the_server_it_says_what_to_install(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr(remote, "_native", raising=False)
    monkeypatch.setitem(sys.modules, "accel_rl.remote._native", None)
    result = invoke(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("accel-rl: the replay server was not built: install g++ and")


@needs_server
def test_servers_of_a_training_are_closed_to_other_users(tmp_path):
    with LocalServers(tmp_path, 2) as servers:
        for address in servers.addresses:
            assert stat.S_IMODE(os.stat(address.removeprefix("unix:")).st_mode) == 0o600
        with remote.ReplayClient(servers.addresses[1]) as client:
            assert client.stats()
    with LocalServers(tmp_path, 1, secret=bytes(16)) as servers:
        [address] = servers.addresses
        with pytest.raises(remote.AuthenticationFailed):
            remote.ReplayClient(address)


@needs_server
def test_a_server_says_who_can_reach_it(tmp_path):
    open_file, closed_file = tmp_path / "open", tmp_path / "closed"
    for path, mode in ((open_file, 0o644), (closed_file, 0o600)):
        path.write_bytes(bytes(16))
        path.chmod(mode)
    for words, expected in (
        ((), "every user of this machine can read and change what is served"),
        (("--secret-file", open_file), f"other users can read {open_file}: chmod 600"),
        (("--host", "none", "--unix", tmp_path / "socket", "--secret-file", closed_file), ""),
    ):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with processes.start("-m", "accel_rl", "replay-server", *words, **pipes) as process:
            assert process.stdout.readline().startswith("serving on")
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=processes.LIMIT)
        assert said.replace("ended; without --snapshot nothing is kept\n", "").startswith(expected)
        assert len(said.splitlines()) == 1 + bool(expected)


@needs_server
def test_limits_of_words_and_of_a_file(tmp_path, monkeypatch):
    file, given = tmp_path / "limits.toml", {}
    file.write_text("connections = 9\nidle_ms = 5_000\n")

    def server(*arguments, **settings):
        given.update(settings)
        raise ValueError("enough")

    monkeypatch.setattr(remote, "ReplayServer", server)
    words = ("--limits", file, "--limit", "connections=7", "--limit", "tables=2")
    assert invoke("replay-server", *words).exit_code == 2
    assert (given["connections"], given["idle_ms"], given["tables"]) == (7, 5_000, 2)
    result = invoke("replay-server", "--limit", "connections=many")
    assert result.exit_code == 2
    assert "--limit must be NAME=NUMBER, got 'connections=many'" in " ".join(
        result.output.replace("│", " ").split()
    )
    file.write_text("connections = ")
    assert invoke("replay-server", "--limits", file).exit_code == 2


@needs_server
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_serves_until_it_is_interrupted(tmp_path, number):
    snapshot = tmp_path / "snapshot"
    words = ["replay-server", "--json", "--snapshot", snapshot]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with processes.start("-m", "accel_rl", *words, **pipes) as process:
        lines = [process.stdout.readline() for _ in range(5)]
        (address,) = json.loads("".join(lines))["addresses"]
        spec = remote.TableSpec("t", 8, (remote.Column("x", "i4"),))
        with remote.ReplayClient(address) as client:
            client.table(spec).push([np.arange(5, dtype=np.int32)])
        result = invoke(*words)
        assert result.exit_code == 2
        said = " ".join(result.output.replace("│", " ").split())
        assert "another server has the snapshot" in said
        process.send_signal(number)
        _, said = process.communicate(timeout=processes.LIMIT)
        assert process.returncode == 0
        assert f"snapshot of 5 items written to {snapshot}" in said
    with remote.ReplayServer(snapshot_path=snapshot) as server:
        assert server.stats()["tables"]["t"]["size"] == 5


@needs_server
def test_the_last_snapshot_has_what_was_acknowledged(tmp_path):
    """A client pushes until the server is gone; more signals come while the snapshot is written."""
    snapshot, path = tmp_path / "snapshot", tmp_path / "socket"
    words = ("replay-server", "--host", "none", "--unix", path, "--snapshot", snapshot)
    rows = np.zeros((1_000, 500), np.uint8)
    spec = remote.TableSpec("t", 50_000, (remote.Column("x", "u1", (500,)),))
    acknowledged = 0
    with processes.start("-m", "accel_rl", *words, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith("serving on")
        with remote.ReplayClient(f"unix:{path}", reconnect=0) as client:
            table = client.table(spec)
            try:
                while acknowledged < 10_000_000:
                    table.push([rows])
                    acknowledged += len(rows)
                    if acknowledged in (5_000, 6_000, 7_000, 8_000):
                        process.send_signal(signal.SIGTERM)
            except remote.RemoteError:
                pass
        process.communicate(timeout=processes.LIMIT)
    assert process.returncode == 0
    with remote.ReplayServer(snapshot_path=snapshot) as server:
        stats = server.stats()["tables"]["t"]
    # A push may have been inserted whose acknowledgement did not arrive any more.
    assert acknowledged <= stats["inserts"] <= acknowledged + len(rows)


def test_no_signal_is_lost(tmp_path):
    """Each of fifty comes at another moment of a loop of waits that are short."""
    script = (
        "import os, signal, threading, time\n"
        "from accel_rl.cli.stopping import stop_requests\n"
        "for number in range(50):\n"
        "    with stop_requests() as wait:\n"
        "        assert not wait(0)\n"
        "        send = lambda: os.kill(os.getpid(), signal.SIGTERM)\n"
        "        threading.Timer(number * 2e-4, send).start()\n"
        "        began = time.monotonic()\n"
        "        while not wait(5e-4):\n"
        "            pass\n"
        "        assert wait(None) and time.monotonic() < began + 5\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
    )
    with processes.start("-c", script) as process:
        assert process.wait(processes.LIMIT) == 0


@needs_server
def test_a_server_refuses_what_is_not_safe(tmp_path):
    result = invoke("replay-server", "--host", "0.0.0.0")
    assert result.exit_code == 2
    assert "secret" in result.output
    result = invoke("replay-server", "--host", "none")
    assert result.exit_code == 2
    assert "--shm PATH" in result.output
    result = invoke("replay-server", "--every", 5)
    assert result.exit_code == 2
    assert "--snapshot" in result.output
    result = invoke("replay-server", "--secret-file", tmp_path / "absent")
    assert result.exit_code == 2
