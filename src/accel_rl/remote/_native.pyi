"""Types of the module that kernels/replay_server/bindings makes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

STATUSES: dict[str, int]

class Error(RuntimeError):
    """What was asked for was refused: args are (message, status)."""

class Table:
    """A table of items in this process. Not for several threads at once."""

    def __init__(
        self,
        name: str,
        capacity: int,
        columns: Sequence[tuple[str, str, Sequence[int]]],
        sampler: str = "prioritised",
        priority_exponent: float = 0.6,
        min_size: int = 1,
        ratio: tuple[float, float, float] | None = None,
        groups: int = 20,
        csp_ratio: float = 0.15,
    ) -> None: ...
    def push(
        self, columns: Sequence[NDArray[Any]], priorities: NDArray[np.float32] | None = None
    ) -> None: ...
    def sample(self, seed: int, batch: Batch) -> None: ...
    def update(
        self,
        slots: NDArray[np.uint32],
        generations: NDArray[np.uint32],
        priorities: NDArray[np.float32],
    ) -> tuple[int, int]: ...
    def can_push(self, count: int) -> bool: ...
    def can_sample(self, batch: int) -> bool: ...
    def stats(self) -> dict[str, int]: ...
    @property
    def name(self) -> str: ...
    @property
    def capacity(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def total(self) -> float: ...

class Batch:
    """Arrays that samples are written to, made once, or the caller's for the columns."""

    def __init__(
        self, table: Table, batch: int, columns: Sequence[NDArray[Any]] | None = None
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def slots(self) -> NDArray[np.uint32]: ...
    @property
    def generations(self) -> NDArray[np.uint32]: ...
    @property
    def probabilities(self) -> NDArray[np.float64]: ...
    @property
    def columns(self) -> dict[str, NDArray[Any]]: ...
    @property
    def size(self) -> int: ...
    @property
    def total(self) -> float: ...

class Mailbox:
    """Named messages of which the newest version counts."""

    def __init__(self, most_bytes: int, most_names: int) -> None: ...
    def publish(self, name: str, version: int, data: bytes) -> None: ...
    def fetch(self, name: str, newer_than: int | None = None) -> tuple[int, bytes] | None: ...

class Snapshot:
    """Writes tables and a mailbox to a file, in slices."""

    def __init__(
        self, path: str, tables: Sequence[Table], mailbox: Mailbox | None = None
    ) -> None: ...
    def step(self, bytes: int) -> bool: ...
    def finish(self) -> None: ...
    def abandon(self) -> None: ...

def restore(path: str, most_bytes: int, mailbox: Mailbox | None = None) -> list[Table]: ...

class Link:
    """Connection to a server, for one thread at a time."""

    def exchange(
        self,
        parts: Sequence[bytes | bytearray | memoryview],
        into: bytearray | memoryview,
        timeout_us: int,
    ) -> int | bytes: ...
    def probe(self, frame: bytes | bytearray, rounds: int, timeout_us: int) -> bytes: ...
    def set_frame_bytes(self, bytes: int) -> None: ...
    def close(self) -> None: ...

def open_shm(path: str, busy: int = 0, timeout_us: int = 0) -> Link: ...
def why_no_shm() -> str: ...
def open_tcp(host: str, port: int, busy: int = 0, timeout_us: int = 0) -> Link: ...
def open_unix(path: str, busy: int = 0, timeout_us: int = 0) -> Link: ...

class ServerSettings:
    """What a server allows."""

    frame_bytes: int
    batch: int
    table_bytes: int
    tables: int
    mailbox_bytes: int
    mailbox_names: int
    sessions: int
    session_timeout_ms: int
    waiting: int
    waiting_bytes: int
    snapshot_path: str
    unused_ms: int
    slow_us: int
    snapshots: int
    log: bool
    log_ms: int
    log_bytes: int
    idle: str
    ring_bytes: int
    sleep_us: int
    linger_us: int
    connections: int
    handshakes: int
    handshake_ms: int
    frame_ms: int
    write_ms: int
    idle_ms: int
    buffer_bytes: int
    reply_bytes: int
    unread_bytes: int

    def __init__(self) -> None: ...

def why_no_crypto() -> str:
    """Why there are neither secrets nor TLS; empty: there are."""

class Server:
    """A replay server, in a thread of its own."""

    def __init__(
        self,
        settings: ServerSettings,
        secret: bytes | None,
    ) -> None: ...
    def listen_tcp(self, host: str, port: int, certificate: str = "", key: str = "") -> int: ...
    def listen_udp(self, host: str, port: int) -> int: ...
    def listen_unix(self, path: str) -> None: ...
    def listen_dpdk(
        self, arguments: list[str], address: str, port: int, in_network: bool
    ) -> list[str]: ...
    def listen_shared(self, path: str) -> None: ...
    def open_link(self) -> Link: ...
    def recover(self) -> list[str]: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def slow_requests(self) -> list[tuple[int, int, int, int, int, int]]: ...
    def snapshot(self) -> None: ...
