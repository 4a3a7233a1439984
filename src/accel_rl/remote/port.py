"""A table of a replay memory server as a replay port of the training program."""

import functools
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import integer, whole
from accel_rl.remote.client import ReplayClient
from accel_rl.remote.closing import Closing
from accel_rl.remote.errors import ConnectionLost, TryAgain
from accel_rl.remote.pace import limiter_around
from accel_rl.remote.schema import TableSpec, TreeColumns
from accel_rl.remote.shard import Address, first_of, lane_of
from accel_rl.remote.sharded import ShardedTable
from accel_rl.remote.table import RemoteTable
from accel_rl.remote.windows import Window, Windows, window_of
from accel_rl.replay import n_step as n_step_return
from accel_rl.replay.checks import require_small
from accel_rl.replay.index import importance_weights
from accel_rl.train.pipeline.buffer_ports import check_sampling
from accel_rl.types import Array, ArrayLike, Batch, Sample, Transition

CLOSING = 3.0  # seconds that closing waits for calls under way
WAIT = 0.25  # seconds that a request waits at the server before the port looks whether it is closed


class RemotePort:
    """A replay memory in another process or on another machine, as a `types.ReplayPort`.

    Steps become windows of `n_step` rewards here and are pushed once they are complete; targets are
    made of a sample's windows here, too, with the gamma of that call. Adding, sampling and updating
    have a connection each, so that none waits for another; over memif these take three interfaces
    in a row, the address's first.

    Args:
      address: of the server, as of `ReplayClient`, or a `ReplayServer` of this process; or a list
        of addresses, of servers that hold a part each: see `ShardedTable`.
      example: one environment's step, of which only shapes and dtypes matter; see `train.example`.
      capacity: items held, over all environments of this port, as of `replay.make`: of the last
        n_step - 1 steps none is complete.
      batch_size: items of a sample.
      num_envs: environments that are added together.
      n_step: rewards in a target.
      sampler: "uniform", "prioritised" or "amper_fr".
      alpha: exponent of priorities.
      least_size: items that there must be to sample; batch_size if None.
      samples_per_insert: how often an item is to be sampled; None: no limit. Pushes and samples
        then wait for one another, within `slack` items.
      slack: how far inserts * samples_per_insert - samples may go, either way: at least a batch,
        and what one insert allows. Pushes are cut into parts that fit.
      table: its name; ports of one name and one description share it.
      secret: what both sides know, if the server has one.
      fresh_totals: of several servers: see `ShardedTable`.
      replica: number of this one of several learners that use the same keys, and are to draw
        different items.

    Attributes:
      limited: whether pushes and samples wait for one another.

    Raises:
      ValueError: if a number is out of range.
      TypeError: if an argument is of another type, or the example no step with truncation and final
        observation.
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
    ) -> None:
        first_of(address)
        shards = len(address) if isinstance(address, list | tuple) else 0
        self.limited = samples_per_insert is not None
        self._windows = Windows(example, num_envs, n_step)
        self._tree = TreeColumns(window_of(example, n_step))
        whole("batch_size", batch_size, 1)
        integer("capacity", capacity)
        for name, value in (("least_size", least_size), ("replica", replica)):
            if value is not None:
                integer(name, value)
        require_small("alpha", alpha)
        self._batch_size, self._replica = batch_size, replica
        self._least_size = least = batch_size if least_size is None else least_size
        held = capacity - (n_step - 1) * num_envs
        if not 1 <= least <= held:
            raise ValueError(
                f"batch_size (or least_size, if given) must be from 1 to {held}, the items that a "
                f"capacity of {capacity} has complete, got {least}"
            )
        spec = TableSpec(
            table,
            held,
            self._tree.columns,
            sampler=sampler,
            priority_exponent=alpha,
            limiter=limiter_around(least, batch_size, samples_per_insert, slack),
        )
        limits = spec.limiter
        # Items of a push; a shard may be the only one that is left.
        self._most = -(-held // max(1, shards))
        if samples_per_insert is not None:
            allowed = int((limits.max_diff - limits.min_diff) / 2 / samples_per_insert)
            self._most = min(self._most, max(1, allowed))
        self._open = True
        self._adding = threading.Lock()  # windows are this port's own
        self._ends: list[Closing] = []
        tables: list[RemoteTable | ShardedTable] = []
        try:
            for number in range(3):
                where = lane_of(address, number)
                if shards:
                    parts = ShardedTable(where, spec, secret, fresh_totals=fresh_totals)
                    self._ends.append(parts)
                    tables.append(parts)
                else:
                    client = ReplayClient(where, secret)
                    self._ends.append(client)
                    tables.append(client.table(spec))
        except BaseException:
            self.close()
            raise
        self._adds, self._samples, self._updates = tables

    @property
    def lost(self) -> int:
        """How many of several servers are lost now, as far as one of its tables has met it."""
        tables = self._adds, self._samples, self._updates
        return max(each.lost if isinstance(each, ShardedTable) else 0 for each in tables)

    def add(self, transitions: Transition, priorities: ArrayLike | None = None) -> None:
        """Adds steps, leaves [envs, ...] or [steps, envs, ...]; priorities [envs], [steps, envs].

        Waits where the limiter holds it up. What is no priority, the table gives one.

        Raises:
          ValueError: if shapes do not fit.
          TypeError: if dtypes do not fit.
          RuntimeError: if the port is closed, also while waiting; a `RemoteError` if the server is
            lost.
        """
        with self._adding:
            self._check_open()
            items, given = self._windows.add(transitions, priorities)
            for columns, part in _runs(self._tree.flatten(items), given, self._most):
                self._until_allowed(functools.partial(self._adds.push, columns, part, wait=WAIT))

    def can_sample(self) -> bool:
        """Whether `sample` would answer at once, as far as the number of items says.

        Raises:
          RuntimeError: if the port is closed.
        """
        self._check_open()
        return self._called(self._updates.stats)["size"] >= self._least_size

    def sample(self, key: Array, beta: float, gamma: float) -> Sample:
        """A sample, of NumPy but for its targets; waits until there is one.

        Args:
          key: all the randomness there is in it; the server draws by the generator that the
            protocol specifies, with the key's data as its seed.
          beta: exponent of importance weights, finite, at least 0.
          gamma: discount factor, 0 to 1.

        Raises:
          ValueError: if a number is out of range.
          RuntimeError: if the port is closed, also while waiting.
        """
        check_sampling(beta, gamma)
        if self._replica:
            key = jax.random.fold_in(key, self._replica)
        high, low = (int(word) for word in np.asarray(jax.random.key_data(key)))
        drawn = self._until_allowed(
            functools.partial(self._samples.sample, high << 32 | low, self._batch_size, wait=WAIT)
        )
        window: Window = self._tree.unflatten(list(drawn.columns.values()))
        probabilities = drawn.probabilities.astype(np.float32)
        reward, discount, weights = _targets(
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
        """New priorities [B] of what was sampled; its batch may be None.

        Left out are items that were overwritten since, and what is NaN, negative or infinite.

        Raises:
          ValueError: if shapes do not fit.
          RuntimeError: if the port is closed.
        """
        self._check_open()
        given = np.asarray(priorities, np.float32)
        slots, generations = np.asarray(sample.indices), np.asarray(sample.generations)
        if given.shape != slots.shape:
            raise ValueError(
                f"priorities must have shape {list(slots.shape)}, got {list(given.shape)}"
            )
        sound = np.isfinite(given) & (given >= 0)
        if sound.any():
            parts = slots.astype(np.uint32)[sound], generations[sound], given[sound]
            self._called(lambda: self._updates.set_priorities(*parts))

    def close(self) -> None:
        """Ends its sessions; calls that wait end with an error. May be called again."""
        if not self._open:
            return
        self._open = False
        # Side by side, as each waits for a call under way: WAIT, if the server answers. One that is
        # frozen is not waited for: its clients end by themselves when their time is over.
        closing = [threading.Thread(target=end.close, daemon=True) for end in self._ends]
        for each in closing:
            each.start()
        until = time.monotonic() + CLOSING
        for each in closing:
            each.join(max(0.0, until - time.monotonic()))

    def _until_allowed(self, call: Callable[[], Any]) -> Any:
        while True:
            self._check_open()
            try:
                return self._called(call)
            except TryAgain:
                continue

    def _called(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except ConnectionLost:
            self._check_open()  # if it was closed meanwhile, that is what to say
            raise

    def _check_open(self) -> None:
        if not self._open:
            raise RuntimeError("the replay port is closed")


def _runs(
    columns: list[np.ndarray], given: np.ndarray, most: int
) -> list[tuple[list[np.ndarray], Any]]:
    """Parts in a row of `most` items or fewer that all have a priority, or none of which has."""
    sound = np.isfinite(given) & (given >= 0)
    changes = np.flatnonzero(np.diff(sound)) + 1
    edges = sorted({0, len(given), *changes.tolist(), *range(0, len(given), most)})
    return [
        ([column[a:b] for column in columns], given[a:b] if sound[a] else None)
        for a, b in itertools.pairwise(edges)
        if b > a
    ]


@jax.jit
def _targets(
    reward: Array,
    discount: Array,
    truncated: Array,
    probabilities: Array,
    beta: Array,
    gamma: Array,
) -> tuple[Array, Array, Array]:
    """n-step returns [B], bootstrap coefficients [B], importance weights [B]."""
    found = jax.vmap(n_step_return, in_axes=(0, 0, 0, None))(reward, discount, truncated, gamma)
    weights = importance_weights(jnp.asarray(probabilities), beta)
    return found.reward, found.discount, weights
