"""cpprb's prioritised buffer, full, as rivals of `replay_server.py` serve it."""

import numpy as np
from cpprb import PrioritizedReplayBuffer
from replay_server_items import ALPHA, BETA


class Buffer:
    """Holds items; calls take and give arrays in the order of columns."""

    def __init__(self, items):
        """Fill it."""
        self._columns = items.columns
        fields = {name: {"shape": shape or 1, "dtype": np.float32} for name, shape in items.columns}
        self._buffer = PrioritizedReplayBuffer(items.capacity, fields, alpha=ALPHA, eps=0.0)
        for first in range(0, items.capacity, 512):
            part = items.part(first, 512)
            count = len(next(iter(part.values())))
            self._buffer.add(**part, priorities=items.priorities[:count])

    def push(self, priorities, columns):
        """Add items."""
        count = len(priorities)
        named = {
            name: column.reshape(count, *(shape or (1,)))
            for (name, shape), column in zip(self._columns, columns, strict=True)
        }
        self._buffer.add(**named, priorities=priorities)

    def sample(self, batch):
        """Slots int64, importance-sampling weights, columns."""
        found = self._buffer.sample(batch, beta=BETA)
        columns = [np.ascontiguousarray(found[name]) for name, _ in self._columns]
        slots = found["indexes"].astype(np.int64)
        return [slots, found["weights"].astype(np.float32), *columns]

    def update(self, slots, priorities):
        """Set priorities."""
        self._buffer.update_priorities(slots, priorities)
