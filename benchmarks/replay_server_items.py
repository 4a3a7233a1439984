"""The items that `replay_server.py` pushes and draws, and its clock; also for rivals' processes."""

import dataclasses
import time
from collections.abc import Callable

import numpy as np

ALPHA, BETA = 0.6, 0.4


@dataclasses.dataclass(frozen=True)
class Items:
    """What all hold: float32 columns as of CartPole, or of frames."""

    capacity: int
    columns: tuple[tuple[str, tuple[int, ...]], ...]
    arrays: dict[str, np.ndarray]  # a few hundred items, pushed again and again
    priorities: np.ndarray  # float32, of these

    def part(self, first: int, count: int) -> dict[str, np.ndarray]:
        """`count` items, or as many as fit the capacity."""
        count = min(count, self.capacity - first)
        start = first % (len(self.priorities) - count + 1)
        return {name: array[start : start + count] for name, array in self.arrays.items()}


def make_items(capacity: int, item_bytes: int) -> Items:
    """Items of so many bytes."""
    random = np.random.default_rng(0)
    numbers = item_bytes // 4
    half = (numbers - 2) // 2
    columns = (("obs", (half,)), ("act", ()), ("rew", ()), ("next_obs", (numbers - 2 - half,)))
    arrays = {name: random.random((512, *shape), np.float32) for name, shape in columns}
    return Items(capacity, columns, arrays, random.random(512).astype(np.float32))


def p50(call: Callable[[], object], calls: int) -> float:
    """Microseconds of so many calls."""
    taken = []
    for _ in range(calls):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return float(np.median(taken) * 1e6)
