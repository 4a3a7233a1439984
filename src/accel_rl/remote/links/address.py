"""Where a server is, as text."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

from accel_rl.arguments import instance

_FORMS = (
    '"tcp://host:port", "tls://host:port", "unix:/path", "shm:/path", "udp://host:port" or '
    '"memif:/path?id=number"'
)
# The most that each may be.
_OPTIONS = {"shm": {"busy": 1}, "udp": {"busy": 1}, "memif": {"id": 252}}


class Address(NamedTuple):
    """An address in its parts.

    Attributes:
      kind: "tcp", "tls", "unix", "shm", "udp" or "memif".
      host: of tcp, tls and udp.
      port: of the same.
      path: of the others.
      options: what stands behind the path's "?": busy, 0 or 1, of shm and udp; id of memif.
    """

    kind: str
    host: str = ""
    port: int = 0
    path: str = ""
    options: Mapping[str, int] = {}


def parse_address(address: str) -> Address:
    """The parts of an address.

    Raises:
      TypeError: if it is no text.
      ValueError: if it is none, or an option is unknown or out of its range.
    """
    instance("address", address, str)
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
    """The address for connection `number` of several that one program has to a server at once.

    It is the same one, but over memif, where an interface has one client: there they take the
    interfaces from the address's own `id` on.

    Raises:
      ValueError: if it is no address, or there is no interface of that id.
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
        most = _OPTIONS[kind].get(name)
        if most is None:
            known = ", ".join(_OPTIONS[kind])
            raise ValueError(f"address {address!r} has option {name!r}; {kind} knows {known}")
        if not value.isdigit() or int(value) > most:
            raise ValueError(f"{name} must be from 0 to {most}, got {value!r} in {address!r}")
        found[name] = int(value)
    return found
