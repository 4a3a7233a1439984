"""Bad input to `remote`: what is refused before a server is asked; the rest: test_server_refusals.

Every call has an address at which nobody listens, so a row that passes met no server.
"""

import numpy as np
import pytest
from optional import needs
from refusals import NAN, check_refused, rows_of

from accel_rl import remote
from accel_rl.remote import apex, links
from accel_rl.types import Transition

NOWHERE = "unix:/no/such/server"
COLUMN = remote.Column("x", "f4")
SPEC = remote.TableSpec("t", 8, (COLUMN,))
STEP = Transition(
    np.zeros(2, np.float32), np.int32(0), np.float32(0), np.float32(1), np.bool_(False),
    np.zeros(2, np.float32),
)  # fmt: skip


def table(**fields):
    return remote.TableSpec(**{"name": "t", "capacity": 8, "columns": (COLUMN,), **fields})


def client(address=NOWHERE, **options):
    return remote.ReplayClient(address, **options)


def port(address=NOWHERE, example=STEP, capacity=64, batch_size=8, **options):
    return remote.RemotePort(address, example, capacity, batch_size, **{"num_envs": 2, **options})


SMALL = apex.load("CartPole-v1")
NO_ADDRESS = 'address must be "tcp://host:port", "tls://host:port", "unix:/path"'
TABLE = {
    "remote.Column": [
        (lambda: remote.Column("", "f4"), ValueError, "name must have 1 to 255 bytes, got ''"),
        (lambda: remote.Column("x", "O"), ValueError, "dtype must be one of b1, i1"),
        (lambda: remote.Column("x", "f4", (-1,)), ValueError, "each of shape must be at least 0"),
    ],
    "remote.Limiter": [
        (lambda: remote.Limiter(1.5), TypeError, "min_size must be an int, got 1.5"),
        (lambda: remote.Limiter(1, "x"), TypeError, "samples_per_insert must be a number, got 'x'"),
    ],
    "remote.TableSpec": [
        (lambda: table(capacity=1.5), TypeError, "capacity must be an int, got 1.5"),
        (lambda: table(capacity=0), ValueError, "capacity must be from 1 to 4294967295, got 0"),
        (lambda: table(columns=()), ValueError, "number of columns must be from 1 to 255, got 0"),
        (
            lambda: remote.TableSpec("t", 8, (remote.Column("x", "i4"), remote.Column("x", "f4"))),
            ValueError,
            "columns must have names of their own, got 'x' twice",
        ),
        (lambda: table(priority_exponent="x"), TypeError, "priority_exponent must be a number"),
        (lambda: table(sampler="x"), ValueError, "sampler must be one of uniform, priorit"),
    ],
    "remote.TreeColumns": [
        (lambda: remote.TreeColumns({"x": "text"}), ValueError, "dtype must be one of b1"),
        (lambda: remote.TreeColumns({"x": STEP.reward}).flatten({}), ValueError, "items must be"),
    ],
    "remote.ReplayClient": [
        (lambda: client("x"), ValueError, NO_ADDRESS),
        (lambda: client(timeout=-1), ValueError, "timeout must be finite and at least 0"),
        (lambda: client(reconnect=NAN), ValueError, "reconnect must be finite and at least 0"),
        (lambda: client(reconnect=0.0), remote.ConnectionLost, "no replay server at unix:"),
    ],
    "remote.RemotePort": [
        (lambda: port("x"), ValueError, NO_ADDRESS),
        (lambda: port(capacity=64.5), TypeError, "capacity must be an int, got 64.5"),
        (lambda: port(batch_size=0), ValueError, "batch_size must be at least 1, got 0"),
        (lambda: port(num_envs=1.5), TypeError, "num_envs must be an int, got 1.5"),
        (lambda: port(alpha=NAN), ValueError, "alpha must be finite and at least 0, got nan"),
        (lambda: port(sampler="x"), ValueError, "sampler must be one of uniform, priorit"),
    ],
    "remote.ShardedTable": [
        (lambda: remote.ShardedTable([], SPEC), ValueError, "addresses must be one or more, each"),
    ],
    "remote.Prefetcher": [
        (lambda: remote.Prefetcher(None, "t", [], 2, 0), ValueError, "depth must be at least 1"),
        (lambda: remote.Prefetcher(None, "t", [], 0), ValueError, "batch must be at least 1, got "),
    ],
    "remote.probe": [
        (lambda: remote.probe("x"), ValueError, NO_ADDRESS),
        (lambda: remote.probe(NOWHERE, rounds=0), ValueError, "rounds must be at least 1, got 0"),
        (lambda: remote.probe(NOWHERE, rounds=1.5), TypeError, "rounds must be an int, got 1.5"),
    ],
    "remote.links.parse_address": [
        (lambda: links.parse_address(""), ValueError, NO_ADDRESS),
        (lambda: links.parse_address("tcp://host:70000"), ValueError, NO_ADDRESS),
    ],
    "remote.links.open_link": [
        (lambda: links.open_link(NOWHERE, 1.0), FileNotFoundError, "No such file or directory"),
    ],
    "remote.apex.ApexTraining": [
        (lambda: SMALL.check_learners(1.5), TypeError, "learners must be an int, got 1.5"),
    ],
    "remote.apex.LocalActors": [
        (
            lambda: apex.LocalActors(SMALL, NOWHERE, restarts=1.5),
            *(TypeError, "restarts must be an int, got 1.5"),
        ),
    ],
    "remote.apex.run_actor": [
        (lambda: apex.run_actor(SMALL, NOWHERE, 9), ValueError, "number must be from 0 to 1"),
        (lambda: apex.run_actor(SMALL, NOWHERE, 0.5), TypeError, "number must be an int, got"),
    ],
    "remote.apex.run_learners": [
        (lambda: apex.run_learners(SMALL, NOWHERE, 10_000, 3), ValueError, "multiple of the"),
    ],
}  # fmt: skip
OF_SERVER = {
    "remote.ReplayServer": [
        (lambda: remote.ReplayServer(port=-1), ValueError, "port must be from 0 to 65535, got -1"),
        (lambda: remote.ReplayServer(port="x"), TypeError, "port must be an int, got 'x'"),
        (lambda: remote.ReplayServer(udp_port=70_000), ValueError, "udp_port must be from 0 to 65"),
        (lambda: remote.ReplayServer(secret=b""), ValueError, "secret must have 16 bytes or more"),
        (lambda: remote.ReplayServer(idle="x"), ValueError, 'idle must be "block", "spin"'),
        (lambda: remote.ReplayServer(nonsense=3), ValueError, "a limit must be one of batch, "),
        (lambda: remote.ReplayServer("0.0.0.0"), ValueError, "must have a secret"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), rows_of(TABLE))
def test_refuses(call, error, says):
    check_refused(call, error, says)


@needs("replay server")
@pytest.mark.parametrize(("call", "error", "says"), rows_of(OF_SERVER))
def test_a_server_refuses(call, error, says):
    check_refused(call, error, says)
