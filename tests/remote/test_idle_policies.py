"""What the serving thread does when there is nothing to do changes no answer."""

import numpy as np
import pytest

from accel_rl.remote import Column, TableSpec

SPEC = TableSpec("t", 64, (Column("x", "i4"),))


@pytest.mark.parametrize("idle", ["block", "spin", "yield", "sleep"])
def test_each_policy_serves(serve, connect, tmp_path, idle):
    server = serve(unix_path=tmp_path / "socket", shm_path=tmp_path / "shared", idle=idle)
    shared = server.addresses[2] + "?busy=1"
    clients = [connect(where) for where in [*server.addresses, shared, server]]
    clients[0].table(SPEC).push([np.arange(8, dtype=np.int32)])
    drawn = [client.table(SPEC).sample(3, 16).slots for client in clients]
    for each in drawn[1:]:
        np.testing.assert_array_equal(each, drawn[0])
    assert server.stats()["sessions"] == len(clients)


def test_a_policy_that_there_is_not(serve):
    with pytest.raises(ValueError, match=r'idle must be "block", "spin", .* got "busy"'):
        serve(idle="busy")
