"""A server among clients of all kinds that come and go, for a while."""

import pytest
from soak import MIB, check, soak

pytestmark = pytest.mark.usefixtures("built")


@pytest.mark.long
def test_clients_of_all_kinds_come_and_go():
    """Slow: 20 seconds, after which a leak of a connection's or a request's memory would show."""
    found = soak(20.0, least=100)
    check(found)
    assert found.grown_bytes < 16 * MIB
