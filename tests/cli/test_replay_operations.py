"""An operator's requests to a replay server."""

import json
import re
import subprocess

import numpy as np
import processes
import pytest
from commands import invoke
from optional import needs

from accel_rl import remote

pytestmark = needs("replay server")
SPEC = remote.TableSpec("steps", 100, (remote.Column("x", "f4", (3,)),))


@pytest.fixture
def server():
    with remote.ReplayServer() as made, remote.ReplayClient(made.address) as client:
        client.table(SPEC).push([np.zeros((5, 3), np.float32)])
        client.publish("policy", 2**64 - 1, b"bytes")
        yield made


def test_health_and_counts(server):
    found = json.loads(invoke("replay-server", "health", server.address, "--json").stdout)
    assert 0 < found["milliseconds"] < 5_000
    assert "answered in" in invoke("replay-server", "health", server.address).stdout
    counts = json.loads(invoke("replay-server", "stats", server.address, "--json").stdout)
    assert counts["open"] == 2
    assert re.search(r"^open +2$", invoke("replay-server", "stats", server.address).stdout, re.M)


def test_tables(server):
    found = json.loads(invoke("replay-server", "tables", server.address, "--json").stdout)
    assert found["steps"]["size"] == found["steps"]["inserts"] == 5
    assert found["steps"]["item_bytes"] == 12
    text = invoke("replay-server", "tables", server.address).stdout
    assert text == "steps: 5 of 100 items of 12 B, prioritised; 5 pushed, 0 sampled\n"


def test_deleting(server):
    assert invoke("replay-server", "delete", server.address, "steps").exit_code == 0
    assert invoke("replay-server", "tables", server.address).stdout == "no tables\n"
    again = invoke("replay-server", "delete", server.address, "steps")
    assert again.exit_code == 1
    assert "delete table 'steps': no_such_table" in again.stderr
    words = ("replay-server", "delete", server.address, "policy", "--message")
    assert [invoke(*words).exit_code for _ in range(2)] == [0, 1]


def test_servers_that_are_not_there(tmp_path):
    found = invoke("replay-server", "health", f"unix:{tmp_path}/socket")
    assert found.exit_code == 1
    assert "no replay server at" in found.stderr
    assert invoke("replay-server", "health", "nowhere").exit_code == 2
    secret = tmp_path / "absent"
    found = invoke("replay-server", "stats", "tcp://127.0.0.1:1", "--secret-file", secret)
    assert found.exit_code == 2


def test_a_drained_server_ends_with_its_snapshot(tmp_path):
    path = tmp_path / "snapshot"
    words = ("-m", "accel_rl", "replay-server", "--snapshot", path)
    with processes.start(*words, stdout=subprocess.PIPE) as process:
        address = process.stdout.readline().split()[2].rstrip(";")
        with remote.ReplayClient(address) as client:
            table = client.table(SPEC)
            table.push([np.zeros((5, 3), np.float32)])
            assert invoke("replay-server", "drain", address).exit_code == 0
            with pytest.raises(remote.RemoteError, match="the server is drained"):
                remote.ReplayClient(address, reconnect=0)
        assert process.wait(processes.LIMIT) == 0
    with remote.ReplayServer(snapshot_path=path) as again:
        assert again.stats()["tables"]["steps"]["size"] == 5


def test_lines_of_json_and_slow_requests(tmp_path):
    words = ("replay-server", "--host", "none", "--unix", tmp_path / "socket", "--slow", "0.001")
    words = ("-m", "accel_rl", *words, "--log-format", "json")
    with processes.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert "serving on" in server.stdout.readline()
        with remote.ReplayClient(f"unix:{tmp_path}/socket") as client:
            client.table(SPEC).push([np.zeros((5, 3), np.float32)])
            session = client.session
            line = {}
            while line.get("operation") != "push":
                line = json.loads(server.stderr.readline())
                assert line["event"] in ("serving", "slow_request")
        server.terminate()
        rest = [json.loads(each) for each in server.stderr.read().splitlines()]
        assert server.wait(processes.LIMIT) == 0
    assert line["event"] == "slow_request"
    assert (line["table"], line["session"]) == (0, session)
    assert 64 <= line["bytes"] < 1_000
    assert 1e-6 <= line["seconds"] < processes.LIMIT
    assert rest[-1]["event"] == "ended"


def test_a_wait_for_the_limiter_is_not_slow():
    with remote.ReplayServer(slow_us=100_000) as made, remote.ReplayClient(made.address) as client:
        table = client.table(SPEC)
        with pytest.raises(remote.TryAgain):
            table.sample(0, 2, wait=0.2)
        assert made.slow_requests() == []
