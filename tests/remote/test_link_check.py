"""`testing.check_link` passes every transport, and finds what is broken in a link."""

import pytest

from accel_rl import testing
from accel_rl.remote import wire
from accel_rl.remote.links import open_link


def test_every_transport_passes(address):
    testing.check_link(address)


class Broken:
    """Links to a server, of which one thing is wrong."""

    def __init__(self, server, **wrong):
        self._server, self._wrong = server, wrong

    def open_link(self):
        link = open_link(self._server, 10.0)
        return type("BrokenLink", (_Passing,), self._wrong)(link)


class _Passing:
    def __init__(self, link):
        self.link = link

    def set_timeout(self, seconds):
        self.link.set_timeout(seconds)

    def exchange(self, parts, into, most):
        return self.link.exchange(parts, into, most)

    def close(self):
        self.link.close()


def elsewhere(self, parts, into, most):
    return self.link.exchange(parts, None, most)


def changed(self, parts, into, most):
    header, reply = self.link.exchange(parts, into, most)
    if len(reply) > 4096:
        reply[wire.BODY + 4000] ^= 1
    return header, reply


def gives_up(self, parts, into, most):
    try:
        return self.link.exchange(parts, into, most)
    except TimeoutError as error:
        raise ValueError("late") from error


@pytest.mark.parametrize(
    ("exchange", "found"),
    [(elsewhere, "must lie there"), (changed, "must come back"), (gives_up, "must be a timeout")],
)
def test_broken_links_are_found(serve, exchange, found):
    server = serve(host=None)
    testing.check_link(Broken(server))
    with pytest.raises(AssertionError, match=found):
        testing.check_link(Broken(server, exchange=exchange))
