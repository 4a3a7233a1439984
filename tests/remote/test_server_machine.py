"""Random histories of tables behind a server against the model, on every transport."""

import tempfile
from pathlib import Path

import breaking
import pytest
from hypothesis import settings
from hypothesis.stateful import rule
from table_machine import COLUMNS, TableMachine
from table_model import Drawn, Refused

from accel_rl import remote
from accel_rl.remote.errors import STATUSES
from accel_rl.remote.module import native

pytestmark = pytest.mark.usefixtures("built")


def refusing(function, *arguments):
    try:
        return function(*arguments)
    except remote.RemoteError as error:
        raise Refused(STATUSES[error.status][0]) from error


class ServerMachine(TableMachine):
    def __init__(self):
        super().__init__()
        native()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name)
        self.server = remote.ReplayServer(**self.listening(path), snapshot_path=path / "snapshot")
        self.client = remote.ReplayClient(self.where())

    def where(self):
        return self.server.address

    def open(self, config):
        ratio, least, most = config.ratio or (None, 0.0, 0.0)
        self.table = self.client.table(
            remote.TableSpec(
                "table",
                config.capacity,
                [remote.Column(*column) for column in COLUMNS],
                config.sampler,
                config.exponent,
                remote.Limiter(config.min_size, ratio, least, most),
                config.groups,
                config.csp_ratio,
                config.max_priority,
            )
        )

    def push(self, columns, priorities):
        refusing(self.table.push, columns, priorities)

    def sample(self, seed, batch):
        drawn = refusing(self.table.sample, seed, batch)
        items = list(drawn.columns.values())
        return Drawn(
            drawn.slots, drawn.generations, drawn.probabilities, items, drawn.size, drawn.total
        )

    def update(self, slots, generations, priorities):
        return refusing(self.table.set_priorities, slots, generations, priorities)

    def stats(self):
        return self.table.stats()

    @rule()
    def lose_the_connection(self):
        breaking.cut(self.client)

    @rule()
    def restart_the_server(self):
        self.client.snapshot()
        self.server.close()
        path = Path(self.folder.name)
        self.server = remote.ReplayServer(**self.listening(path), snapshot_path=path / "snapshot")
        self.client.address = self.where()
        self.client.ping()

    def teardown(self):
        self.client.close()
        self.server.close()
        self.folder.cleanup()


class TcpMachine(ServerMachine):
    def listening(self, path):
        return {}


class UdpMachine(ServerMachine):
    def listening(self, path):
        return {"udp_port": 0}

    def where(self):
        return self.server.addresses[1]


class UnixMachine(ServerMachine):
    def listening(self, path):
        return {"host": None, "unix_path": path / "socket"}


class SharedMachine(ServerMachine):
    def listening(self, path):
        return {"host": None, "shm_path": path / "socket", "ring_bytes": 4096}


class EmbeddedMachine(ServerMachine):
    def listening(self, path):
        return {"host": None}

    def where(self):
        return self.server


TestTcp = pytest.mark.long(TcpMachine.TestCase)
TestUdp = pytest.mark.slow(UdpMachine.TestCase)
TestUnix = pytest.mark.slow(UnixMachine.TestCase)
TestShared = SharedMachine.TestCase
TestEmbedded = pytest.mark.slow(EmbeddedMachine.TestCase)
for each in (TestTcp, TestUdp, TestUnix, TestShared, TestEmbedded):
    each.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
del each  # or it would be collected
