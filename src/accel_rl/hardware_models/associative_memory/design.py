"""Design of the modelled hardware: arrays, method and batch, and the searches that they need."""

import dataclasses
import math

from accel_rl.arguments import one_of, whole, within

VARIANTS = ("k_best_match", "k_counted", "fr_exact", "fr_prefix", "fr_dithered")
OVERLAPS = ("serial", "pipelined")


@dataclasses.dataclass(frozen=True)
class Design:
    """Hardware design to model; defaults are this library's, not the paper's.

    Attributes:
      capacity: N, priorities stored.
      key_bits: w, bits of a stored priority, 1 to 64; also the width of an array.
      rows_per_array: R, keys of an array.
      groups: m.
      variant: one of `VARIANTS`, see `docs/am-hardware.md`.
      csp_size: keys read out into the candidate set, at most the capacity; None for `csp_ratio`
        times the capacity.
      csp_ratio: above 0, at most 1.
      batch_size: B, draws of a sampling, and priorities of an update.
      csp_ports: matches read out and written to the buffer in parallel, at most one for each array.
      write_ports: rows written in parallel in an update, at most one for each array.
      range_queries: ternary queries for one range of keys, on average; None for the worst case.
      best_match_searches: searches for one best match; None for the worst case of exact matching,
        and 1 if sensing finds the best match itself.
      overlap: "serial", one stage at a time, or "pipelined".
    """

    capacity: int
    key_bits: int = 16
    rows_per_array: int = 64
    groups: int = 20
    variant: str = "fr_dithered"
    csp_size: int | None = None
    csp_ratio: float = 0.15
    batch_size: int = 64
    csp_ports: int = 1
    write_ports: int = 1
    range_queries: float | None = None
    best_match_searches: int | None = None
    overlap: str = "pipelined"

    def __post_init__(self) -> None:
        for name in ("capacity", "rows_per_array", "groups", "batch_size"):
            whole(name, getattr(self, name), 1)
        whole("key_bits", self.key_bits, 1, 64)
        whole("csp_ports", self.csp_ports, 1, self.arrays)
        whole("write_ports", self.write_ports, 1, self.arrays)
        one_of("variant", self.variant, VARIANTS)
        one_of("overlap", self.overlap, OVERLAPS)
        within("csp_ratio", self.csp_ratio, "(0, 1]")
        if self.csp_size is not None:
            whole("csp_size", self.csp_size, 1, self.capacity)
        if self.best_match_searches is not None:
            whole("best_match_searches", self.best_match_searches, 1)
        if self.range_queries is not None:
            within("range_queries", self.range_queries, "[1, inf)")

    @property
    def arrays(self) -> int:
        """Number of arrays that hold the capacity, A."""
        return -(-self.capacity // self.rows_per_array)

    @property
    def levels(self) -> int:
        """Levels of the binary tree that joins the arrays, L."""
        return (self.arrays - 1).bit_length()

    @property
    def candidates(self) -> int:
        """Keys read out into the candidate set, C."""
        return self.csp_size or max(1, round(self.csp_ratio * self.capacity))

    @property
    def counts(self) -> int:
        """Counts of match lines over all arrays."""
        per_group = {"k_best_match": 1, "k_counted": 1 + self.key_bits}
        return self.groups * per_group.get(self.variant, 0)

    @property
    def searches(self) -> int:
        """Ternary searches of all arrays."""
        of_range = self.range_queries or max(1, 2 * self.key_bits - 2)
        of_best = self.best_match_searches or max(2, 3 * self.key_bits - 2)
        return math.ceil(
            {
                "k_best_match": self.groups * of_range + self.candidates * of_best,
                "k_counted": self.groups * (self.key_bits + 2) * of_range,
                "fr_exact": self.groups * of_range,
            }.get(self.variant, self.groups)
        )
