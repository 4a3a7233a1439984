"""Tabular training run, as input of the cost model."""

import dataclasses

from accel_rl.arguments import one_of, whole, within
from accel_rl.pim.cost.instructions import check_rule

ORDERS = ("SEQ", "STR", "RAN", "RAN_REPLACEMENT")
OWNER_ORDERS = ("SEQ", "RAN")  # by owner


def split_rows(transitions: int, dpus: int) -> tuple[int, ...]:
    """Return the rows of `dpus` contiguous chunks; the first `transitions % dpus` get one more."""
    whole("dpus", dpus, 1, whole("transitions", transitions, 1))
    rows, longer = divmod(transitions, dpus)
    return (rows + 1,) * longer + (rows,) * (dpus - longer)


@dataclasses.dataclass(frozen=True)
class OwnerExchange:
    """Sizes of what the host and DPUs exchange at each launch by owner.

    Attributes:
      runs: R, most runs of any DPU.
      needed: Q, most distinct next states of any DPU's rows; the end of an episode counts as one.
      all_runs: runs of all DPUs together.
      lanes: L, parts of a DPU's rows that train independently, each on one tasklet.
    """

    runs: int
    needed: int
    all_runs: int
    lanes: int = 16

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            whole(field.name, getattr(self, field.name), 1)


@dataclasses.dataclass(frozen=True)
class DpuWorkload:
    """Tabular training run on D DPUs.

    Attributes:
      rows_per_dpu: [D] records of each DPU; `split_rows` makes the usual split.
      num_states: S.
      num_actions: A.
      rule: "q_learning", "sarsa", "sarsa_epsilon_greedy", "expected_sarsa", "double_q_learning".
      numerics: "fp32", "int32_scaled" or "int32_pow2".
      order: order of a pass's rows: "SEQ", "STR", "RAN" or "RAN_REPLACEMENT".
      stride: distance of consecutive rows in STR.
      record_bytes: bytes of a record, 8 or 16.
      value_bytes: bytes of a table entry.
      target_block: B, rows whose targets are computed before any is applied; 1 is strictly
        sequential, and one tasklet updates.
      tasklets: tasklets of each DPU.
      passes: passes over a DPU's rows.
      period: tau, passes between merges.
      weighted_merge: whether the host reads visit counts beside the tables.
      independent: whether DPUs have tables of their own, which are never merged (see
        `accel_rl.pim.train_agents`); all passes are then one launch, whatever the period.
      imbalance: cycles of the apply phase over those of an even split, at least 1 (see
        `ownership_imbalance`); if None, owners of pairs (s, a) are assumed uniformly random. By
        time only.
      visited: most distinct entries (s, a) of any DPU's rows; if None, assumed to be as many as
        rows and tables allow. By time only.
      owner: sizes of the exchange if the log is partitioned by owner, None if by time. By owner
        the order is SEQ or RAN, targets come from the values at a launch's start, and records have
        8 bytes.
    """

    rows_per_dpu: tuple[int, ...]
    num_states: int
    num_actions: int
    rule: str = "q_learning"
    numerics: str = "fp32"
    order: str = "SEQ"
    stride: int = 4
    record_bytes: int = 8
    value_bytes: int = 4
    target_block: int = 128
    tasklets: int = 16
    passes: int = 100
    period: int = 1
    weighted_merge: bool = True
    independent: bool = False
    imbalance: float | None = None
    visited: int | None = None
    owner: OwnerExchange | None = None

    def __post_init__(self) -> None:
        check_rule(self.rule, self.numerics)
        one_of("order", self.order, ORDERS)
        for rows in self.rows_per_dpu:
            whole("each of rows_per_dpu", rows, 0)
        whole("sum of rows_per_dpu", self.transitions, 1)
        if self.record_bytes not in (8, 16):
            raise ValueError(f"record_bytes must be 8 or 16, got {self.record_bytes}")
        if self.owner is not None:
            if self.order not in OWNER_ORDERS:
                known = " or ".join(OWNER_ORDERS)
                raise ValueError(f"order must be {known} by owner, got {self.order}")
            if self.record_bytes != 8:
                raise ValueError(f"record_bytes must be 8 by owner, got {self.record_bytes}")
        if self.independent and self.owner is not None:
            raise ValueError("independent DPUs exchange nothing, so owner must be None")
        if self.imbalance is not None:
            within("imbalance", self.imbalance, "[1, inf]")
        sizes = ("num_states", "num_actions", "stride", "value_bytes")
        for name in (*sizes, "target_block", "tasklets", "passes", "period"):
            whole(name, getattr(self, name), 1)
        if self.visited is not None:
            whole("visited", self.visited, 1, self._most_visited)

    @property
    def dpus(self) -> int:
        """D, the number of DPUs."""
        return len(self.rows_per_dpu)

    @property
    def transitions(self) -> int:
        """N, rows of all DPUs."""
        return sum(self.rows_per_dpu)

    @property
    def launches(self) -> int:
        """Number of launches, each followed by a merge; one of independent DPUs."""
        return 1 if self.independent else -(-self.passes // self.period)

    @property
    def tables(self) -> int:
        """K, the number of Q-tables."""
        return check_rule(self.rule, self.numerics).tables

    @property
    def table_bytes(self) -> int:
        """Bytes of all Q-tables of one DPU, padded to 8 bytes."""
        return align8(self.tables * self.num_states * self.num_actions * self.value_bytes)

    @property
    def listed(self) -> int:
        """Entries of a table that each DPU sends by time, 0 if it sends whole tables or runs.

        Lists of visited entries have one length, a multiple of 4, and at most half of a table's:
        `list_visited` of kernels/upmem/host/visited.cpp.
        """
        if self.owner is not None:
            return 0
        most = self._most_visited if self.visited is None else self.visited
        padded = -(-most // 4) * 4
        return padded if 2 * padded <= self.num_states * self.num_actions else 0

    @property
    def list_bytes(self) -> int:
        """Bytes of the list of visited entries that each DPU gets with its rows by time."""
        return 2 * self.listed

    @property
    def _most_visited(self) -> int:
        return min(self.num_states * self.num_actions, max(self.rows_per_dpu))

    @property
    def exchange(self) -> OwnerExchange:
        """Sizes of the exchange of a log that is partitioned by owner."""
        if self.owner is None:
            raise ValueError("the workload is partitioned by time: it has no exchange")
        return self.owner

    @property
    def pulled_bytes(self) -> int:
        """Bytes of tables, listed entries or runs that each DPU sends, padded to 8 bytes."""
        values = self.num_states * self.num_actions
        if self.owner is not None:
            values = self.owner.runs
        elif self.listed:
            values = self.listed
        return align8(self.tables * values * self.value_bytes)

    @property
    def pushed_bytes(self) -> int:
        """Bytes of values of runs and of next states that each DPU gets by owner."""
        return self.pulled_bytes + align8(self.exchange.needed * self.columns * self.value_bytes)

    @property
    def columns(self) -> int:
        """C, values of a next state by owner."""
        work = check_rule(self.rule, self.numerics)
        return work.columns + work.columns_per_action * self.num_actions

    @property
    def chunk_bytes(self) -> int:
        """Bytes of records pushed to each DPU; all have the length of the longest chunk.

        By owner each run has a record more in RAN.
        """
        heads = self.exchange.runs if self.owner is not None and self.order == "RAN" else 0
        return align8((max(self.rows_per_dpu) + heads) * self.record_bytes)

    @property
    def working_tasklets(self) -> int:
        """Tasklets that update: all, or one if each update sees the previous one."""
        return 1 if self.target_block == 1 else self.tasklets

    @property
    def step(self) -> int:
        """Distance of a pass's consecutive rows: the stride in STR, else 1."""
        return self.stride if self.order == "STR" else 1


def align8(size: int) -> int:
    """Round `size` bytes up to a multiple of 8."""
    return -(-size // 8) * 8
