"""Server addresses as text."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

_FORMS = (
    '"tcp://host:port", "tls://host:port", "unix:/path", "shm:/path", "udp://host:port" or '
    '"memif:/path?id=number"'
)
# Maximum value of each option.
_OPTIONS = {"shm": {"busy": 1}, "udp": {"busy": 1}, "memif": {"id": 252}}


class Address(NamedTuple):
    """Parsed address.

    Attributes:
      kind: "tcp", "tls", "unix", "shm", "udp" or "memif".
      host: for tcp, tls and udp.
      port: for tcp, tls and udp.
      path: for unix, shm and memif.
      options: the part after "?": busy, 0 or 1, for shm and udp; id for memif.
    """

    kind: str
    host: str = ""
    port: int = 0
    path: str = ""
    options: Mapping[str, int] = {}


def parse_address(address: str) -> Address:
    """Parse an address."""
    kind, _, rest = address.partition(":")
    if kind in ("tcp", "tls", "udp") and rest.startswith("//"):
        where, _, query = rest.removeprefix("//").partition("?")
        host, _, port = where.rpartition(":")
        if host and port.isdigit() and int(port) < 1 << 16 and (kind == "udp" or not query):
            options = _options(address, kind, query) if query else {}
            return Address(kind, host.strip("[]"), int(port), options=options)
    elif kind == "unix" and rest.removeprefix("//"):
        return Address(kind, path=rest.removeprefix("//"))
    elif kind in _OPTIONS:
        path, _, query = rest.removeprefix("//").partition("?")
        if path:
            return Address(kind, path=path, options=_options(address, kind, query))
    raise ValueError(f"address must be {_FORMS}, got {address!r}")


def lane(address: str, number: int) -> str:
    """Return the address for one of several simultaneous connections of a program to a server.

    All addresses are the same, except over memif, where an interface has one client: connection
    `number` uses the interface with the address's `id` + number.
    """
    found = parse_address(address)
    if found.kind != "memif":
        return address
    number += found.options.get("id", 0)
    if number > _OPTIONS["memif"]["id"]:
        raise ValueError(
            f"id must be low enough for each connection to have an interface, of {number} here, "
            f"and {_OPTIONS['memif']['id']} is the last: got {address!r}"
        )
    return f"memif:{found.path}?id={number}"


def _options(address: str, kind: str, query: str) -> dict[str, int]:
    found = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if not value.isdigit() or int(value) > _OPTIONS[kind].get(name, -1):
            known = ", ".join(f"{each} from 0 to {most}" for each, most in _OPTIONS[kind].items())
            raise ValueError(f"{kind} knows {known}, got {name}={value} in {address!r}")
        found[name] = int(value)
    return found
