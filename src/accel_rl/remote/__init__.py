"""Replay server: clients, and control of the server from Python.

The protocol is specified in `docs/replay-protocol.md`. Clients over sockets are pure Python. The
server and all other transports are C++; they raise ImportError if the native module was not built.
"""

from typing import Any

from accel_rl.remote.buffers import RemoteSample
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.errors import (
    AuthenticationFailed,
    ConnectionLost,
    LimitReached,
    NoSuchTable,
    OutcomeUnknown,
    ProtocolError,
    RemoteError,
    RequestRefused,
    SnapshotFailed,
    TableDiffers,
    TryAgain,
)
from accel_rl.remote.prefetch import Prefetcher
from accel_rl.remote.probe import probe
from accel_rl.remote.process import ReplayServerProcess
from accel_rl.remote.schema import Column, Limiter, TableSpec, TreeColumns
from accel_rl.remote.server import ReplayServer
from accel_rl.remote.sharded import ShardedTable
from accel_rl.remote.table import RemoteTable

__all__ = [
    "AuthenticationFailed",
    "Column",
    "ConnectionLost",
    "LimitReached",
    "Limiter",
    "NoSuchTable",
    "OutcomeUnknown",
    "Prefetcher",
    "ProtocolError",
    "RemoteError",
    "RemotePort",
    "RemoteSample",
    "RemoteTable",
    "ReplayClient",
    "ReplayServer",
    "ReplayServerProcess",
    "RequestRefused",
    "ShardedTable",
    "SnapshotFailed",
    "TableDiffers",
    "TableSpec",
    "TreeColumns",
    "TryAgain",
    "probe",
]


def __getattr__(name: str) -> Any:
    """Import RemotePort on first use: it needs jax, which a server process does not import."""
    if name == "RemotePort":
        from accel_rl.remote.port import RemotePort

        return RemotePort
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
