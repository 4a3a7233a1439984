"""Learners in several processes that are one: against one learner, and when one of them dies."""

import contextlib
import os
import pathlib
import signal
import subprocess

import numpy as np
import pytest
import replica_worker
from apex_settings import TINY, tiny
from processes import LIMIT, start

from accel_rl import remote, train
from accel_rl.remote.apex import LocalActors, replicas, run_learners

WORKER = pathlib.Path(replica_worker.__file__)


@pytest.mark.long
def test_two_processes_learn_what_one_does(tmp_path):
    """Slow: processes import JAX and compile.

    Both end with the same bits, and with those of the joined batch but for the order of sums.
    Float32 sums of 16 items in another order differ by about 1e-7 of their size; 46 updates of Adam
    may pass that on, to 1e-5 of parameters of about 1.
    """
    address = f"127.0.0.1:{replicas.free_port()}"
    files = [tmp_path / f"{number}.npz" for number in range(2)]
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(start(WORKER, number, 2, address, file, env=environment))
            for number, file in enumerate(files)
        ]
        parameters, priorities, losses = replica_worker.learned(0, 1)
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
    one, other = (np.load(file) for file in files)
    assert len(priorities) == 46
    for number, expected in enumerate(parameters):
        found = one[f"arr_{number}"]
        np.testing.assert_array_equal(found, other[f"arr_{number}"])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one["losses"], losses, rtol=1e-4)
    np.testing.assert_array_equal(one["losses"], other["losses"])
    together = np.concatenate([one["priorities"], other["priorities"]], axis=1)
    np.testing.assert_allclose(together, priorities, rtol=1e-3, atol=1e-5)


@pytest.mark.long
def test_learners_train_and_share_their_fate(serve):
    """Slow: five processes. One training ends; of another, a learner is killed."""
    server = serve()
    with LocalActors(TINY, server.address) as actors:
        rows = []
        done = run_learners(TINY, server.address, 1_008, 2, ended=actors.gone, on_row=rows.append)
    assert rows == done.rows
    assert rows[-1]["steps"] == 1_008
    assert isinstance(done.state, train.TrainState)
    updates = 2 * (1_008 - 112) // 16
    assert int(done.state.agent.updates) == sum(row["updates"] for row in rows) == updates
    counts = server.stats()["tables"][TINY.run]
    assert counts["samples"] >= updates * TINY.batch_size
    again = tiny(run="again")
    with LocalActors(again, server.address) as actors:
        killed = []

        def kill(_):
            if not killed:
                killed.append(_learner(1))
                os.kill(killed[0], signal.SIGKILL)

        with pytest.raises(RuntimeError, match=r"learner 1 ended with exit code -9.* share their"):
            run_learners(
                again, server.address, 500_000, 2, period=200, ended=actors.gone, on_row=kill
            )
    assert not _learners()


def _learners():
    """Processes of learners that this one has started, by the order in which it did."""
    found = []
    for task in pathlib.Path(f"/proc/{os.getpid()}/task").iterdir():
        for child in (task / "children").read_text().split():
            words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if b"learner" in words:
                found.append(int(child))
    return sorted(found)


def _learner(number):
    return _learners()[number]


def listening(port):
    """Hex addresses of this machine on which somebody listens at that port."""
    found = set()
    for name in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            address, number = local.split(":")
            if state == "0A" and int(number, 16) == port:
                found.add(address)
    return found


@pytest.mark.long  # starts processes that import JAX
@pytest.mark.parametrize("named", [False, True])
def test_the_coordinator_listens_on_its_own_address_only(named):
    """Who reaches it could join: it asks for no secret."""
    port = replicas.free_port()
    script = (
        "import sys; from accel_rl.remote.apex import replicas;"
        "replicas.join(sys.argv[1], 0, 1, bind=sys.argv[2] or None);"
        "print('joined', flush=True); sys.stdin.read()"
    )
    address = f"127.0.0.1:{port}"
    words = [f"localhost:{port}", address] if named else [address, ""]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with start("-c", script, *words, **pipes) as process:
        assert process.stdout.readline() == "joined\n"
        found = listening(port)
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1, also as IPv6


def test_what_is_wrong_is_refused(serve):
    server = serve()
    address = server.address
    for steps, period, message in (
        (100, None, "steps must be more than learning_starts"),
        (1_000, 0, "period must be at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            run_learners(TINY, address, steps, 2, period=period)
    with pytest.raises(TypeError, match="ReplayServer is not JSON serializable"):
        run_learners(TINY, server, 1_000, 2)
    with remote.ReplayClient(address) as client:
        client.publish("again/policy", 0, b"")
    with pytest.raises(ValueError, match="a training named 'again' on this server already"):
        run_learners(tiny(run="again"), address, 1_000, 2)
    for learners, message in (
        (0, "learners must be at least 1, got 0"),
        (3, "batch_size must be a multiple of the learners, 3, got 8"),
    ):
        with pytest.raises(ValueError, match=message):
            run_learners(TINY, address, 1_000, learners)


@pytest.mark.long
def test_without_others_a_learner_ends():
    """Slow: it waits for a heartbeat. No process watches these: JAX itself must end them."""
    address = f"127.0.0.1:{replicas.free_port()}"
    script = (
        "import sys, time; from accel_rl.remote.apex import replicas;"
        "replicas.join(sys.argv[1], int(sys.argv[2]), 2); print('joined', flush=True);"
        f"time.sleep({2 * LIMIT})"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with (
        start("-c", script, address, 0, **pipes) as left,
        start("-c", script, address, 1, **pipes) as killed,
    ):
        assert [each.stdout.readline() for each in (left, killed)] == ["joined\n"] * 2
        killed.kill()
        assert left.wait(LIMIT) != 0
