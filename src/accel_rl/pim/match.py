"""Associative memory on UPMEM DPUs: keys stay in MRAM, and the DPUs search them in place.

with pim.match.KeyMemory(am.encode(priorities), dpus=64) as memory:
    memory.update(slots, am.encode(changed))
    found = memory.any_radius(queries, radii)
    slots = am.draw(key, found.words, 64)

Match lines are bit-identical to those of `accel_rl.am`, packed as by `am.pack`. All functions run
on the host, outside JAX: they take and return NumPy arrays, and cannot be traced.
"""

from typing import NamedTuple

import numpy as np

from accel_rl.arguments import whole
from accel_rl.pim.backends.upmem import DEFAULT_TASKLETS
from accel_rl.pim.queries import (
    as_integers,
    as_keys,
    as_valid,
    check_machine,
    columns,
    merged,
    ternary,
)
from accel_rl.pim.upmem import matcher
from accel_rl.pim.upmem.host import LaunchReport
from accel_rl.pim.upmem.toolkit import find_toolkit
from accel_rl.types import ArrayLike


class Matches(NamedTuple):
    """Result of a search; DPU d holds the slots from d * share on, see `KeyMemory.share`."""

    words: np.ndarray | None
    """Match lines packed as by `am.pack`, uint32 [..., ceil(N / 32)]; None if not requested."""

    counts: np.ndarray
    """Matches on each DPU, int32 [..., D]."""


class KeyMemory:
    """Associative memory of N keys over D DPUs.

    Each DPU holds `share` consecutive slots. `share` is a multiple of 64, so that match lines are
    whole words; the last DPUs hold fewer slots, or none.

    Args:
      keys: uint8, uint16 or uint32 [N], as from `am.encode`, N from 1 to 2^31 - 1.
      dpus: D, from 1 to the machine's number of DPUs.
      valid: bool [N], or one bool for all slots, the valid bits; invalid slots never match.
      tasklets: tasklets per DPU, from 1 to the machine's limit; results do not depend on it.
      machine: name of the machine whose limits apply, and which is emulated; the default machine
        if None.
      sdk: "vendor", "emulator" or "auto"; see `pim.upmem.find_toolkit`.
      asynchronous: some ranks move data while others compute.
      count_instructions: DPUs count instructions instead of cycles.

    Raises:
      ValueError: if an argument has the wrong dtype or shape or is out of range, or the keys exceed
        the MRAM; nothing has been built or launched then.
      pim.upmem.SdkMissing: if no toolkit can build programs; the message says what to install. Also
        a ValueError.
      pim.upmem.UpmemError: if the build or the DPUs fail, also in later calls; the DPUs are freed.
    """

    def __init__(
        self,
        keys: ArrayLike,
        dpus: int,
        *,
        valid: ArrayLike = True,
        tasklets: int = DEFAULT_TASKLETS,
        machine: str | None = None,
        sdk: str | None = None,
        asynchronous: bool = True,
        count_instructions: bool = False,
    ):
        stored = as_keys(keys)
        bits = 8 * stored.dtype.itemsize
        self._dtype, self._size, self._dpus = stored.dtype, len(stored), dpus
        groups = check_machine(self._size, bits, dpus, tasklets, machine)
        self._share = groups * matcher.GROUP
        padded = np.zeros(dpus * self._share, self._dtype)
        padded[: self._size] = stored
        bitmap = np.zeros(dpus * self._share, bool)
        bitmap[: self._size] = as_valid(valid, self._size)  # padding is never valid
        self._matcher = matcher.Matcher(
            find_toolkit(sdk),
            dpus,
            groups,
            bits=bits,
            tasklets=tasklets,
            machine=machine,
            asynchronous=asynchronous,
            count_instructions=count_instructions,
        )
        self._matcher.load(padded, np.packbits(bitmap, bitorder="little"))

    @property
    def share(self) -> int:
        """Slots per DPU; slot i is on DPU i // share."""
        return self._share

    def update(self, slots: ArrayLike, keys: ArrayLike, valid: ArrayLike = True) -> None:
        """Replace the keys of slots, with one launch for every 512 slots of a DPU.

        Args:
          slots: integer [K], from 0 to N - 1; the last key of a repeated slot wins.
          keys: integer [K], in the range of the stored dtype.
          valid: bool [K], or one bool for all slots, the new valid bits.
        """
        where = as_integers("slots", slots, self._size - 1)
        new = as_integers("keys", keys, self._top, len(where))
        flags = np.ascontiguousarray(as_valid(valid, len(where)), np.uint8)
        if len(where):
            self._matcher.update(where, new, flags)

    def match(self, queries: ArrayLike, dont_cares: ArrayLike, *, lines: bool = True) -> Matches:
        """Run ternary searches, one for each query, as `am.match`.

        With `am.low_mask` as `dont_cares` this is `am.prefix`.

        Args:
          queries: integer [M], in the range of the keys' dtype.
          dont_cares: integer [M], 1 in the bits that match anything.
          lines: fetch match lines; False fetches counts alone.

        Returns:
          words [M, ceil(N / 32)] and counts [M, D].
        """
        wanted, masks = self._pairs(queries, "dont_cares", dont_cares)
        return self._each(matcher.TERNARY, ternary(wanted, self._top & ~masks), lines)

    def radius(self, queries: ArrayLike, radii: ArrayLike, *, lines: bool = True) -> Matches:
        """Run radius searches, one for each query, as `am.radius`; see `match`.

        Args:
          queries: as for `match`.
          radii: integer [M], from 0 to the largest key.
          lines: as for `match`.
        """
        low, high = self._ball(*self._pairs(queries, "radii", radii))
        return self._each(matcher.RANGE, columns(low, high - low), lines)

    def any_match(
        self, queries: ArrayLike, dont_cares: ArrayLike, *, lines: bool = True
    ) -> Matches:
        """Search for the union of ternary queries, as a packed `am.any_match`.

        If every mask covers low bits only, as from `am.low_mask`, the queries are ranges and are
        searched together. Otherwise they are searched one after the other.

        Args:
          queries: as for `match`, M up to 256.
          dont_cares: as for `match`.
          lines: as for `match`.

        Returns:
          words [ceil(N / 32)] and counts [D].
        """
        wanted, masks = self._pairs(queries, "dont_cares", dont_cares, matcher.MOST_QUERIES)
        if not (masks & (masks + 1)).any():
            return self._ranges(wanted & ~masks, wanted | masks, lines)
        pairs = np.unique(ternary(wanted, self._top & ~masks), axis=0)
        return self._union(matcher.ANY_TERNARY, pairs, lines)

    def any_radius(self, queries: ArrayLike, radii: ArrayLike, *, lines: bool = True) -> Matches:
        """Search for the union of radius queries, as a packed `am.any_radius`; see `any_match`.

        Args:
          queries: as for `any_match`.
          radii: as for `radius`.
          lines: as for `match`.
        """
        pairs = self._pairs(queries, "radii", radii, matcher.MOST_QUERIES)
        return self._ranges(*self._ball(*pairs), lines)

    def report(self) -> LaunchReport:
        """Report DPU work since the keys were loaded, for `pim.modelled.parts_of_searches`.

        `scattered_bytes` counts keys and updates, `broadcast_bytes` queries, and `gathered_bytes`
        match lines and counts.
        """
        return self._matcher.report()

    def close(self) -> None:
        """Free the DPUs; nothing else may be called afterwards."""
        self._matcher.close()

    def __enter__(self) -> "KeyMemory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _top(self) -> int:
        return int(np.iinfo(self._dtype).max)

    def _pairs(
        self, queries: ArrayLike, name: str, seconds: ArrayLike, most: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return queries and their masks or radii as int64 [M], so that sums do not wrap around."""
        wanted = as_integers("queries", queries, self._top)
        whole("number of queries", len(wanted), 0, most)
        others = as_integers(name, seconds, self._top, len(wanted))
        return wanted.astype(np.int64), others.astype(np.int64)

    def _ball(self, wanted: np.ndarray, radii: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.maximum(wanted - radii, 0), np.minimum(wanted + radii, self._top)

    def _each(self, work: int, pairs: np.ndarray, lines: bool) -> Matches:
        counts, found = self._matcher.search(work, pairs, len(pairs), lines)
        return Matches(None if found is None else self._words(found), counts.astype(np.int32))

    def _union(self, work: int, pairs: np.ndarray, lines: bool) -> Matches:
        counts, found = self._matcher.search(work, pairs, 1, lines)
        return Matches(None if found is None else self._words(found)[0], counts[0].astype(np.int32))

    def _ranges(self, low: np.ndarray, high: np.ndarray, lines: bool) -> Matches:
        if not len(low):
            words = np.zeros(-(-self._size // 32), np.uint32) if lines else None
            return Matches(words, np.zeros(self._dpus, np.int32))
        low, high = merged(low, high)
        few = len(low) <= matcher.FEW
        # Repeat the last range up to the number that the program is compiled for.
        padding = (0, (matcher.FEW if few else matcher.MOST_QUERIES) - len(low))
        pairs = columns(np.pad(low, padding, "edge"), np.pad(high - low, padding, "edge"))
        return self._union(matcher.ANY_OF_FEW if few else matcher.ANY_OF_MANY, pairs, lines)

    def _words(self, found: np.ndarray) -> np.ndarray:
        """Return the match lines of all DPUs as 32-bit words, without padding words."""
        return found.astype("<u8", copy=False).view("<u4")[:, : -(-self._size // 32)]
