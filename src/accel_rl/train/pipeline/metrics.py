"""Metrics of a pipelined training: those of the program, staleness, waiting and working time."""

import bisect
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np

from accel_rl.io.loggers import Row
from accel_rl.io.values import Json
from accel_rl.train.collection import Episodes
from accel_rl.train.metrics import row, segment_metrics
from accel_rl.train.pipeline.actors import CACHED, host_episodes
from accel_rl.train.pipeline.learner import LIMIT
from accel_rl.train.pipeline.workers import Queue, Restarts, Workers
from accel_rl.train.program import Program
from accel_rl.train.state import SegmentSums, TrainState
from accel_rl.types import Array, PyTree


@dataclasses.dataclass
class _Sums:
    """Sums over the iterations of one row, added in order."""

    episodes: Episodes = dataclasses.field(default_factory=lambda: host_episodes(0, 0, 0))
    updates: int = 0
    learned: dict[str, Json] = dataclasses.field(default_factory=dict)
    value_limit: PyTree = 0.0
    policy_ages: list[int] = dataclasses.field(default_factory=list)
    priority_ages: list[int] = dataclasses.field(default_factory=list)


class MetricsRecorder:
    """Collects metrics from the workers, iteration by iteration, into rows.

    Args:
      program: that is trained.
      state: at the start.
      ends: one past the last iteration of each row.
      metrics: names of the agent's metrics.
      workers: of the training.
      queues: by name; rows have their mean fill.
      restarts: of actors.
    """

    def __init__(
        self,
        program: Program,
        state: TrainState,
        ends: Sequence[int],
        metrics: Sequence[str],
        workers: Workers,
        queues: Mapping[str, Sequence[Queue]],
        restarts: Restarts,
    ) -> None:
        self._ends, self._workers, self._queues = ends, workers, queues
        self._restarts = restarts
        self._sums = [_Sums(learned={name: np.float32(0) for name in metrics}) for _ in ends]
        self._inserted = self._learned = int(state.iteration)
        self._next = 0
        self.value_limit: PyTree = np.float32(state.value_limit)
        self._before = self._counters()
        self._metrics = _metrics(program)

    def inserted(self, iteration: int, episodes: Episodes, ages: Sequence[int]) -> None:
        """Record an iteration's episodes, and by how many updates the acting policies were old."""
        with self._workers.changed:
            sums = self._of(iteration)
            sums.episodes = jax.tree.map(np.add, sums.episodes, episodes)
            sums.policy_ages.extend(ages)
            self._inserted = iteration + 1
            self._notify()

    def learned(
        self, iteration: int, metrics: Sequence[Mapping[str, Json]], ages: Sequence[int]
    ) -> None:
        """Record an iteration's updates, and how many priority updates their samples had not seen.

        Args:
          iteration: its number.
          metrics: of the agent, scalars of an update or [n] of a group of updates.
          ages: for each update.
        """
        with self._workers.changed:
            sums = self._of(iteration)
            for each in metrics:
                sums.value_limit = np.maximum(sums.value_limit, np.max(each[LIMIT]))
                sums.learned = {
                    name: _total(total, each[name]) for name, total in sums.learned.items()
                }
            sums.updates += len(ages)
            sums.priority_ages.extend(ages)
            self._learned = iteration + 1
            self._notify()

    @property
    def ready(self) -> bool:
        """True if the next row is complete."""
        done = min(self._inserted, self._learned)
        return self._next < len(self._ends) and self._ends[self._next] <= done

    def row(self) -> Row:
        """Return the next row; it must be complete."""
        with self._workers.changed:
            sums, end = self._sums[self._next], self._ends[self._next]
            self._sums[self._next] = _Sums()
            self._next += 1
            before, self._before = self._before, self._counters()
        updates: PyTree = np.int32(sums.updates)
        self.value_limit = np.float32(np.maximum(self.value_limit, sums.value_limit))
        totals = SegmentSums(sums.episodes, updates, sums.learned, self.value_limit)
        values = row(jax.device_get(self._metrics(np.int32(end), totals)), self._workers.seconds)
        for name, ages in (("policy", sums.policy_ages), ("priority", sums.priority_ages)):
            values[f"{name}_age_mean"] = float(np.mean(ages)) if ages else float("nan")
            values[f"{name}_age_max"] = max(ages, default=0)
        spent = {name: value - before.get(name, 0) for name, value in self._before.items()}
        for name in self._queues:
            items, gets = spent.pop(f"{name}_items"), spent.pop(f"{name}_gets")
            values[f"{name}_queued"] = items / gets if gets else float("nan")
        values["actor_restarts"] = self._restarts.count
        return values | spent

    def _notify(self) -> None:
        if self.ready:  # nobody waits for an incomplete row
            self._workers.changed.notify_all()

    def _of(self, iteration: int) -> _Sums:
        return self._sums[bisect.bisect_right(self._ends, iteration)]

    def _counters(self) -> dict[str, float]:
        """Return counters that only grow; rows have their differences."""
        counters = {"overlap_seconds": self._workers.overlapped()}
        for name, seconds in self._workers.waited.items():
            counters[f"waited_seconds_{name}"] = seconds
        for name, seconds in self._workers.worked.items():
            counters[f"worked_seconds_{name}"] = seconds
        for name, queues in self._queues.items():
            found = np.sum([queue.found for queue in queues], axis=0)
            counters[f"{name}_items"], counters[f"{name}_gets"] = found.tolist()
        return counters


def _total(total: PyTree, values: np.ndarray) -> PyTree:
    """Add a value, or several [n] one after the other: float addition rounds as in `fused`."""
    if values.ndim == 0:
        return total + values
    return np.add.accumulate(np.append(total, values), dtype=values.dtype)[-1]


@functools.lru_cache(maxsize=CACHED)
def _metrics(program: Program) -> Callable[..., PyTree]:
    def metrics(iteration: Array, totals: SegmentSums) -> dict[str, Array]:
        return segment_metrics(totals, iteration * np.int32(program.schedule.steps))

    return jax.jit(metrics)
