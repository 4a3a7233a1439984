"""Links to a replay server: transports of whole frames, whatever their content."""

from accel_rl.remote.links.address import Address, lane, parse_address
from accel_rl.remote.links.link import Link, Parts, Served
from accel_rl.remote.links.opening import open_link

__all__ = ["Address", "Link", "Parts", "Served", "lane", "open_link", "parse_address"]
