"""Servers and clients that tests share."""

import contextlib

import pytest
from optional import require

from accel_rl import remote
from accel_rl.remote.module import native


@pytest.fixture(scope="session")
def built():
    """The replay server's module; skips where it was not built."""
    require("replay server")
    return native()


@pytest.fixture
def serve(built):
    """serve(**arguments): a server, closed in the end."""
    with contextlib.ExitStack() as stack:
        yield lambda **arguments: stack.enter_context(remote.ReplayServer(**arguments))


@pytest.fixture
def connect():
    """connect(address, ...): a client, closed in the end."""
    with contextlib.ExitStack() as stack:
        yield lambda *arguments, **more: stack.enter_context(
            remote.ReplayClient(*arguments, **more)
        )


@pytest.fixture(params=["tcp", "udp", "unix", "shm", "embedded"])
def address(request, serve, tmp_path):
    """Where a server with default settings listens, or one in this process."""
    if request.param == "tcp":
        return serve().address
    if request.param == "udp":
        return serve(udp_port=0).addresses[1]
    if request.param == "embedded":
        return serve(host=None)
    return serve(host=None, **{f"{request.param}_path": tmp_path / "socket"}).address
