"""Table of a replay server as a replay port of the training program."""

import functools
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from accel_rl.arguments import require_array, scalar_within, whole, within
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.closing import Closing
from accel_rl.remote.errors import ConnectionLost, OutcomeUnknown, TryAgain
from accel_rl.remote.recovery import Lane
from accel_rl.remote.schema import TableSpec, TreeColumns, limiter_around
from accel_rl.remote.shard import Address, lane_of
from accel_rl.remote.sharded import ShardedTable
from accel_rl.remote.table import RemoteTable
from accel_rl.remote.windows import Window, Windows, targets, window_of
from accel_rl.train.pipeline.buffer_ports import check_sampling
from accel_rl.types import Array, ArrayLike, Batch, Sample, Transition

CLOSING = 3.0  # seconds that closing waits for calls in progress
WAIT = 0.25  # seconds that a request waits at the server; between requests the port may be closed


class RemotePort:
    """Replay buffer in another process or on another machine, as a `types.ReplayPort`.

    The port assembles transitions into windows of `n_step` rewards and pushes complete windows. It
    computes targets from sampled windows, with the gamma of the call to `sample`. `add`, `sample`
    and `update` each have a connection, so none waits for another. Over memif the connections use
    three consecutive interfaces, from the address's own on.

    Args:
      address: of the server, as in `ReplayClient`, or a `ReplayServer` of this process; or a list
        of addresses of shards, see `ShardedTable`.
      example: a transition of one environment, for shapes and dtypes; see `train.example`.
      capacity: transitions held, over all environments of this port, as in `replay.make`; items of
        the last n_step - 1 steps are incomplete.
      batch_size: items of a sample.
      num_envs: environments whose transitions are added together.
      n_step: rewards in a target.
      sampler: "uniform", "prioritised" or "amper_fr".
      alpha: priority exponent.
      least_size: items required before sampling; batch_size if None.
      samples_per_insert: average number of times that an item is sampled: pushes and samples wait
        for each other, within `slack` items. None: no limit.
      slack: allowed deviation of inserts * samples_per_insert - samples, either way: at least a
        batch, and at least samples_per_insert. Pushes are split into parts that fit.
      table: name of the table; ports with the same name and configuration share it.
      secret: shared secret, if the server has one.
      fresh_totals: for shards, see `ShardedTable`.
      replica: index among several learners that use the same PRNG keys and must draw different
        items.
      recover: seconds to wait for a server that is restarted; a table that it comes back without
        is created again, empty. A push with an unknown outcome then counts as `doubtful`, and a
        priority update with one is dropped. None: both raise errors.

    Attributes:
      limited: True if pushes and samples wait for each other.
      doubtful: number of pushed items that the server may or may not hold.

    Raises:
      TypeError: if the example lacks `truncated` or `next_observation`.
      RemoteError: if the server cannot be reached, or has another table of that name.
    """

    def __init__(
        self,
        address: Address,
        example: Transition,
        capacity: int,
        batch_size: int,
        *,
        num_envs: int,
        n_step: int = 1,
        sampler: str = "prioritised",
        alpha: float = 0.6,
        least_size: int | None = None,
        samples_per_insert: float | None = None,
        slack: float | None = None,
        table: str = "experience",
        secret: bytes | None = None,
        fresh_totals: bool = False,
        replica: int = 0,
        recover: float | None = None,
    ) -> None:
        if recover is not None:
            within("recover", recover, "[0, inf)")
        shards = len(address) if isinstance(address, list | tuple) else 0
        self.limited = samples_per_insert is not None
        self._windows = Windows(example, num_envs, n_step)
        self._tree = TreeColumns(window_of(example, n_step))
        whole("batch_size", batch_size, 1)
        scalar_within("alpha", alpha, "[0, inf)")
        self._batch_size, self._replica = batch_size, replica
        self._least_size = least = batch_size if least_size is None else least_size
        held = capacity - (n_step - 1) * num_envs
        # The table holds complete items only.
        whole("batch_size" if least_size is None else "least_size", least, 1, held)
        spec = TableSpec(
            table,
            held,
            self._tree.columns,
            sampler=sampler,
            priority_exponent=alpha,
            limiter=limiter_around(least, batch_size, samples_per_insert, slack),
        )
        limits = spec.limiter
        # Most items of a push. It must fit into one shard, which may be the only live one.
        self._most = -(-held // max(1, shards))
        if samples_per_insert is not None:
            allowed = int((limits.max_diff - limits.min_diff) / 2 / samples_per_insert)
            self._most = min(self._most, max(1, allowed))
        self._open = True
        self._adding = threading.Lock()  # guards the windows, and the order of pushes
        self._recovers, self.doubtful = recover is not None, 0
        self._lanes: list[Lane[RemoteTable | ShardedTable]] = []

        def connect(where: Any) -> tuple[Closing, RemoteTable | ShardedTable]:
            if shards:
                parts = ShardedTable(where, spec, secret, fresh_totals=fresh_totals)
                return parts, parts
            client = ReplayClient(where, secret, reconnect=10.0 if recover is None else recover)
            try:
                return client, client.table(spec)
            except BaseException:
                client.close()
                raise

        try:
            for number in range(3):
                where = lane_of(address, number)
                self._lanes.append(Lane(functools.partial(connect, where), recover or 0.0))
        except BaseException:
            self.close()
            raise
        self._adds, self._samples, self._updates = self._lanes

    @property
    def lost(self) -> int:
        """Number of lost shards known to the port; 0 for a single server."""
        tables = [lane.table for lane in self._lanes]
        return max(each.lost if isinstance(each, ShardedTable) else 0 for each in tables)

    def add(self, transitions: Transition, priorities: ArrayLike | None = None) -> None:
        """Add transitions, leaves [E, ...] or [T, E, ...], with priorities [E] or [T, E].

        Waits for the limiter. Where a priority is NaN, negative or infinite, the table assigns one.

        Raises:
          ValueError: if shapes differ from the example's.
          TypeError: if dtypes differ.
          RuntimeError: if the port is closed, also while waiting; a `RemoteError` if the server is
            lost.
        """
        with self._adding:
            self._check_open()
            items, given = self._windows.add(transitions, priorities)
            for columns, part in _runs(self._tree.flatten(items), given, self._most):
                try:
                    self._until_allowed(
                        self._adds, functools.partial(_push, columns=columns, given=part)
                    )
                except OutcomeUnknown:
                    if not self._recovers:
                        raise
                    self.doubtful += len(columns[0])

    def can_sample(self) -> bool:
        """Return whether the table has enough items for `sample`; the limiter is not considered."""
        self._check_open()
        return self._called(self._updates, lambda table: table.stats())["size"] >= self._least_size

    def sample(self, key: Array, beta: float, gamma: float) -> Sample:
        """Sample a batch; wait until the table can be sampled.

        Leaves are NumPy arrays, except n-step targets and importance-sampling weights.

        Args:
          key: PRNG key; its data seeds the server's generator, which the protocol specifies, and
            determines the sample for given contents.
          beta: exponent of importance-sampling weights, finite, at least 0.
          gamma: discount factor, 0 to 1.
        """
        check_sampling(beta, gamma)
        if self._replica:
            key = jax.random.fold_in(key, self._replica)
        high, low = (int(word) for word in np.asarray(jax.random.key_data(key)))
        drawn = self._until_allowed(
            self._samples,
            lambda table: table.sample(high << 32 | low, self._batch_size, wait=WAIT),
        )
        window: Window = self._tree.unflatten(list(drawn.columns.values()))
        probabilities = drawn.probabilities.astype(np.float32)
        reward, discount, weights = targets(
            window.reward, window.discount, window.truncated, probabilities,
            np.float32(beta), np.float32(gamma),
        )  # fmt: skip
        batch = Batch(
            observation=window.observation,
            action=window.action,
            reward=reward,
            discount=discount,
            next_observation=window.next_observation,
            extras=window.extras,
        )
        slots: Any = drawn.slots.astype(np.int32)
        kept: Any = probabilities, drawn.generations
        return Sample(batch, slots, kept[0], weights, kept[1])

    def update(self, sample: Sample, priorities: ArrayLike) -> None:
        """Update the priorities [B] of a sample, whose batch may be None.

        Ignores items that were overwritten, and priorities that are NaN, negative or infinite.
        """
        self._check_open()
        given = np.asarray(priorities, np.float32)
        slots, generations = np.asarray(sample.indices), np.asarray(sample.generations)
        require_array("priorities", given, np.float32, slots.shape)
        sound = np.isfinite(given) & (given >= 0)
        if sound.any():
            parts = slots.astype(np.uint32)[sound], generations[sound], given[sound]
            try:
                self._called(self._updates, lambda table: table.set_priorities(*parts))
            except OutcomeUnknown:
                if not self._recovers:
                    raise

    def close(self) -> None:
        """End all sessions; waiting calls end with an error. Idempotent."""
        if not self._open:
            return
        self._open = False
        # In parallel, as each waits for its call in progress: at most WAIT, if the server answers.
        # With a frozen server stop waiting after CLOSING; its clients end by their timeouts.
        closing = [threading.Thread(target=lane.close, daemon=True) for lane in self._lanes]
        for each in closing:
            each.start()
        until = time.monotonic() + CLOSING
        for each in closing:
            each.join(max(0.0, until - time.monotonic()))

    def _until_allowed(self, lane: Lane, call: Callable[[Any], object]) -> Any:
        while True:
            self._check_open()
            try:
                return self._called(lane, call)
            except TryAgain:
                continue

    def _called(self, lane: Lane, call: Callable[[Any], object]) -> Any:
        try:
            return lane.call(call)
        except ConnectionLost:
            self._check_open()  # report that the port was closed, not a lost connection
            raise

    def _check_open(self) -> None:
        if not self._open:
            raise RuntimeError("the replay port is closed")


def _push(table: RemoteTable | ShardedTable, columns: list[np.ndarray], given: Any) -> int:
    return table.push(columns, given, wait=WAIT)


def _runs(
    columns: list[np.ndarray], given: np.ndarray, most: int
) -> list[tuple[list[np.ndarray], Any]]:
    """Split into runs of at most `most` items, either all with a valid priority or all without."""
    sound = np.isfinite(given) & (given >= 0)
    changes = np.flatnonzero(np.diff(sound)) + 1
    edges = sorted({0, len(given), *changes.tolist(), *range(0, len(given), most)})
    return [
        ([column[a:b] for column in columns], given[a:b] if sound[a] else None)
        for a, b in itertools.pairwise(edges)
        if b > a
    ]
