"""Associative memory: ternary-CAM searches over stored keys, and draws from the matches.

Pure functions of arrays, for jit, vmap and scan: `encode` numbers as keys, search them for match
lines, then `count`, `pack` and `draw` from the lines. `draw_by_rejection` draws without a search of
all keys.
"""

from accel_rl.am.keys import decode, encode
from accel_rl.am.lines import count, count_packed, draw, nth, pack, unpack
from accel_rl.am.operands import key_dtype
from accel_rl.am.pallas import search_packed
from accel_rl.am.ranked import best_match, nearest
from accel_rl.am.rejection import draw_by_rejection
from accel_rl.am.search import any_match, any_radius, exact, low_mask, match, prefix, radius

__all__ = [
    "any_match",
    "any_radius",
    "best_match",
    "count",
    "count_packed",
    "decode",
    "draw",
    "draw_by_rejection",
    "encode",
    "exact",
    "key_dtype",
    "low_mask",
    "match",
    "nearest",
    "nth",
    "pack",
    "prefix",
    "radius",
    "search_packed",
    "unpack",
]
