"""Opening of links by address."""

import ssl

from accel_rl.remote.links.address import parse_address
from accel_rl.remote.links.link import Link, Served
from accel_rl.remote.links.native import NativeLink, open_native
from accel_rl.remote.links.stream import StreamLink, TlsLink


def open_link(
    address: str | Served, timeout: float | None, tls: ssl.SSLContext | None = None
) -> Link:
    """Open a link to the server at `address`, or to a server in this process.

    Args:
      address: of the server; or a server in this process, or another object with `open_link`.
      timeout: seconds to wait for the connection, and for each reply; None: no limit.
      tls: trusted authorities for tls addresses; None: those of the system, or of the environment
        variable SSL_CERT_FILE.

    Raises:
      OSError: if no server answers.
      ValueError: if the address is malformed, or this build does not support the transport.
      ImportError: if the transport needs the native module, which was not built.
    """
    if not isinstance(address, str):
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
