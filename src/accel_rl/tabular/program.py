"""Static configuration of a tabular pass."""

from typing import NamedTuple

from accel_rl.tabular.orders import Order
from accel_rl.tabular.rule import TabularRule

DEFAULT_TARGET_BLOCK = 128


class PassProgram(NamedTuple):
    """Tabular pass over chunks, the counterpart of a compiled DPU program; hashable and static.

    Attributes:
      rule: the update rule, which holds its numerics.
      order: the sampling order.
      num_states: S.
      num_actions: A.
      target_block: rows whose targets all use the table at the block's start; 1 is strictly
        sequential. Unused by owner.
      lanes: lanes of a DPU, L, if the log is partitioned by owner; 0 if by time.
      runs: most runs of any DPU, R, if the log is partitioned by owner.
    """

    rule: TabularRule
    order: Order
    num_states: int
    num_actions: int
    target_block: int = DEFAULT_TARGET_BLOCK
    lanes: int = 0
    runs: int = 0

    @property
    def is_static(self) -> bool:
        """True if every pass takes the same rows in the same order with the same choices."""
        return not (self.order.random or self.rule.random)

    @property
    def has_constant_visits(self) -> bool:
        """True if all passes visit each (table, state, action) the same number of times."""
        return self.order.name != "RAN_REPLACEMENT" and self.rule.tables == 1

    @property
    def results(self) -> int:
        """Values that a DPU sends back: of all its entries by time, of its runs by owner."""
        return self.rule.tables * self.runs if self.lanes else self.entries

    @property
    def size(self) -> int:
        """S * A, entries of one table."""
        return self.num_states * self.num_actions

    @property
    def entries(self) -> int:
        """K * S * A, entries of all tables of one DPU."""
        return self.rule.tables * self.size
