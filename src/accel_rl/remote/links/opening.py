"""From an address to a link."""

import ssl

from accel_rl.remote.links.address import parse_address
from accel_rl.remote.links.link import Link, Served
from accel_rl.remote.links.native import NativeLink, open_native
from accel_rl.remote.links.stream import StreamLink
from accel_rl.remote.links.tls import TlsLink


def require_served(address: object) -> None:
    """Raises TypeError unless it is a server of this process."""
    if not hasattr(address, "open_link"):
        raise TypeError(f"address must be text, or a server of this process, got {address!r}")


def open_link(
    address: str | Served, timeout: float | None, tls: ssl.SSLContext | None = None
) -> Link:
    """A link to the server at `address`, or to a server in this process, or one that it makes.

    Args:
      address: of the server, or the server, or what makes links of one's own to it.
      timeout: seconds that the server may take to be reached, and then each reply; None: any time.
      tls: of tls, which authorities are trusted; None: those of the system, or of the environment
        variable SSL_CERT_FILE.

    Raises:
      TypeError: if it is neither text nor a server.
      OSError: if nobody answers there.
      ValueError: if the address is none, or this build has no such transport.
      ImportError: if it takes the native module, and that was not built.
    """
    if not isinstance(address, str):
        require_served(address)
        made = address.open_link()
        link: Link = made if hasattr(made, "set_timeout") else NativeLink(made)
        link.set_timeout(timeout)
        return link
    parsed = parse_address(address)
    if parsed.kind in ("tcp", "unix"):
        return StreamLink(parsed, timeout)
    if parsed.kind == "tls":
        return TlsLink(parsed, timeout, tls)
    return open_native(parsed, timeout)
