"""Servers and learners that are killed with SIGKILL, under load."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import numpy as np
import processes
import pytest
from apex_settings import TINY
from processes import LIMIT, wait_until
from table_model import Config, TableModel

from accel_rl import remote
from accel_rl.remote import Column, OutcomeUnknown, TableSpec
from accel_rl.remote.apex import LocalActors, run_learner

CONFIG = Config(300, "prioritised")
SPEC = TableSpec("t", 300, (Column("n", "i4"), Column("wide", "f8", (500,))))


def operation(number, model, table=None):
    """Does the operation of that number, to the model and, if given, to the server's table first.

    What it is follows from the number and from what the model holds.
    """
    rng = np.random.default_rng(number)
    if number % 3 == 2:
        slots = rng.integers(0, model.size, 8).astype(np.uint32)
        priorities = rng.uniform(0, 9, 8).astype(np.float32)
        generations = model.generations[slots]
        if table is not None:
            table.set_priorities(slots, generations, priorities)
        model.update(slots, generations, priorities)
    else:
        items = number * 100 + np.arange(rng.integers(1, 20), dtype=np.int32)
        priorities = rng.uniform(0, 9, len(items)).astype(np.float32) if number % 5 else None
        if table is not None:
            table.push([items, np.repeat(items[:, None], 500, 1).astype(np.float64)], priorities)
        model.push(items, priorities)


class Worker(threading.Thread):
    """Does something over and over until told to stop, or an error comes."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.going, self.error, self.times = work, True, None, 0
        self.start()

    def run(self):
        try:
            while self.going:
                self.work()
                self.times += 1
        except Exception as error:
            self.error = error

    def end(self):
        self.going = False
        self.join(LIMIT)
        assert not self.is_alive()


class Load:
    """Operations on a table in a row, and snapshots in between."""

    def __init__(self, table, client):
        self.table, self.client = table, client
        self.model, self.done = TableModel(CONFIG), 0
        self.sure = 0  # operations that were answered before the last snapshot was asked for

    def change(self):
        operation(self.done, self.model, self.table)
        self.done += 1

    def snapshot(self):
        before = self.done
        self.client.snapshot()
        self.sure = before

    def begin_with(self, counts):
        """Goes back to the operation after which a table has these counts."""
        self.model, most, self.done = TableModel(CONFIG), self.done + 1, 0
        while any(self.model.stats[name] != counts[name] for name in ("inserts", "updates")):
            operation(self.done, self.model)
            self.done += 1
            assert self.done <= most


@pytest.mark.parametrize("durability", ["snapshot", "log"])
def test_a_killed_server_begins_with_what_it_has_kept(built, connect, tmp_path, durability):
    """What it holds then is what the model holds after as many of the operations, bit for bit."""
    where = {"host": None, "unix_path": tmp_path / "socket", "snapshot_path": tmp_path / "snapshot"}
    where |= {"durability": durability, "log_ms": 10}
    rng = np.random.default_rng(0)
    server = remote.ReplayServerProcess(**where)
    sampling, asking = (connect(server.address) for _ in range(2))
    pushing = connect(server.address, reconnect=0)  # each kill is to end its changes
    load, seen = Load(pushing.table(SPEC), asking), sampling.table(SPEC)

    def look():
        drawn = seen.sample(7, 16)
        np.testing.assert_array_equal(drawn.columns["wide"][:, 9], drawn.columns["n"])

    try:
        for _ in range(3):
            enough, load.sure = load.done + 20, 0
            changes = Worker(load.change)
            wait_until(lambda enough=enough: load.done >= enough)
            looks, snapshots = Worker(look), Worker(load.snapshot)
            wait_until(lambda snapshots=snapshots: snapshots.times >= 2)
            time.sleep(0.05 * rng.random())  # in the middle of the next one, or of another
            sure = load.sure  # one that is under way will be asked for again, of the next server
            server.process.kill()
            snapshots.going = False
            server.close()
            time.sleep(0.1)
            server = remote.ReplayServerProcess(**where)
            changes.join(LIMIT)
            # Of the change that was under way nobody can tell; a sample may be asked for again.
            assert isinstance(changes.error, OutcomeUnknown)
            snapshots.join(LIMIT)
            looks.end()
            assert looks.error is None
            load.begin_with(load.table.stats())
            assert load.done >= sure > 0
            for seed in range(5):
                found, wanted = load.table.sample(seed, 64), load.model.sample(seed, 64)
                np.testing.assert_array_equal(found.columns["n"], wanted.items)
                np.testing.assert_array_equal(found.slots, wanted.slots)
                np.testing.assert_array_equal(found.generations, wanted.generations)
                np.testing.assert_array_equal(found.probabilities, wanted.probabilities)
    finally:
        server.close()


LEARNER = """
import json, sys
from accel_rl.remote.apex import ApexTraining, run_learner
run_learner(ApexTraining.from_tables(json.loads(sys.argv[1])), sys.argv[2], 10**7, period=200,
            on_row=lambda row: print(row["steps"], flush=True))
"""


@pytest.mark.long
def test_actors_wait_for_a_learner_that_was_killed(serve):
    """Slow: four processes. Without a learner the limiter holds actors; the next one is refused."""
    server = serve()
    with LocalActors(TINY, server.address) as actors:
        settings = json.dumps(TINY.tables)
        words = ("-c", LEARNER, settings, server.address)
        with processes.start(*words, stdout=subprocess.PIPE) as learner:
            assert int(learner.stdout.readline()) > 0
        wait_until(lambda: server.stats()["waiting"] == TINY.num_actors)
        counts = server.stats()["tables"][TINY.run]
        # Two pushes of an actor wait at most; what is in was allowed by what was sampled.
        assert counts["inserts"] <= counts["samples"] + TINY.schedule.learning_starts + 4 * 16
        assert actors.alive == 2
        with pytest.raises(ValueError, match="a training named 'apex' on this server already"):
            run_learner(TINY, server.address, 2_000, ended=actors.gone)
    assert actors.restarted == 0


@pytest.mark.long
def test_a_killed_command_leaves_nobody_behind(tmp_path):
    """Slow: three processes. Server and learner go with it; actors end as their input does."""
    words = ["apex", "CartPole-v1", "--actors", "2", "--steps", "10000000", "--out", "run"]
    words += ["schedule.learning_starts=100", "agent.hidden=[16]"]
    with processes.start(
        "-m", "accel_rl", *words, cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as command:
        wait_until(lambda: len(children(command.pid)) == 2)
        actors = children(command.pid)
        time.sleep(3.0)  # they may be importing, or acting
    try:
        wait_until(lambda: not any(pathlib.Path(f"/proc/{actor}").exists() for actor in actors))
    finally:
        for actor in actors:
            with contextlib.suppress(ProcessLookupError):
                os.kill(actor, signal.SIGKILL)


def children(pid):
    """Actors that a process has started."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                state = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            if int(state[1]) == pid and b"actor" in words:
                found.append(int(entry))
    return found
