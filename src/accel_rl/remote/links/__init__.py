"""Ways to a replay memory server. A link carries whole frames, and knows not what they say."""

from accel_rl.remote.links.address import Address, lane, parse_address
from accel_rl.remote.links.link import Link, Parts, Served
from accel_rl.remote.links.opening import open_link

__all__ = ["Address", "Link", "Parts", "Served", "lane", "open_link", "parse_address"]
