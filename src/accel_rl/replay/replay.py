"""Replay buffers: an index and a store composed into one set of pure functions."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from accel_rl.arguments import meant
from accel_rl.control_flow import order_after
from accel_rl.replay.axes import time_major
from accel_rl.replay.index import Index, IndexState, as_priorities
from accel_rl.replay.store import Store, StoreState, check_structure
from accel_rl.replay.validation import require
from accel_rl.types import Array, ArrayLike, PyTree, Sample


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ReplayState:
    """State of a replay buffer; a pytree. Save all leaves to restore it exactly."""

    index: IndexState
    store: StoreState


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Added:
    """Metadata of new rows that the store passes to the index; a pytree."""

    steps: int = dataclasses.field(metadata={"static": True})
    priorities: Array | None  # [steps, E] float32, as given to `add`
    drawable: Array | None  # [steps, E] bool; None: all


class Apart(NamedTuple):
    """Replay functions split into those over the index state and those over the store state.

    `Replay.add` equals rows, insert and write; `Replay.sample` equals draw and gather.
    """

    rows: Callable[..., tuple[PyTree, Added]]
    """rows(store state, transitions, priorities=None): items in the form that `write` accepts, and
    `Added`."""

    insert: Callable[[IndexState, Added], IndexState]
    """insert(index state, added)"""

    write: Callable[[StoreState, PyTree, int], StoreState]
    """write(store state, rows, steps)"""

    draw: Callable[..., Sample]
    """draw(index state, key, beta=1.0): a `Sample` without its batch."""

    gather: Callable[..., PyTree]
    """gather(store state, slots [B], gamma=None): the batch."""

    update: Callable[..., IndexState]
    """update(index state, sample, priorities [B], where=True)"""

    can_sample: Callable[[IndexState], Array]
    """can_sample(index state)"""


class Replay(NamedTuple):
    """Pure functions over a `ReplayState`, for jit, vmap and scan.

    In a loop, add first, then sample, then update: in this order XLA updates the buffer in place
    (`testing.assert_inplace` checks it). Donate the state to your own compiled functions.
    """

    init: Callable[..., ReplayState]
    """init(**hyper-parameters): an empty buffer. Hyper-parameters are those of the sampler, such as
    `alpha`, and become leaves of the state."""

    add: Callable[..., ReplayState]
    """add(state, transitions, priorities=None, batch_major=None): add transitions with leaves
    [envs, *leaf] for one step of all environments or [steps, envs, *leaf] for several; without the
    environment axis if the buffer was made with num_envs=None. New items get the highest weight of
    any item unless `priorities` ([envs] or [steps, envs]) are given. With `batch_major=True` leaves
    and priorities of several steps have the axes [envs, steps]. Where there are as many steps as
    environments, say False or True: shapes do not tell."""

    sample: Callable[..., Sample]
    """sample(state, key, beta=1.0, gamma=None): a `Sample` of batch_size items. `beta` is the
    exponent of the importance-sampling weights; `gamma` is required if batches are of type `Batch`.
    """

    update: Callable[..., ReplayState]
    """update(state, sample, priorities [batch_size], where=True): set new priorities of sampled
    items. Skipped are items that were overwritten since, NaN, negative or infinite priorities, and
    items where `where` (a bool or [batch_size] bools) is False. This mask copies nothing, unlike
    `lax.cond` around sample and update."""

    can_sample: Callable[[ReplayState], Array]
    """can_sample(state): bool, True if at least `least_size` items are complete and one of them can
    be drawn."""

    size: Callable[[ReplayState], Array]
    """size(state): number of complete items, int32."""

    least_size: int
    """Complete items required to sample."""

    parts: tuple[Index, Store]
    """Index and store of the buffer."""

    apart: Apart
    """Functions over the separate states of index and store, for parts that are placed apart."""

    def __repr__(self) -> str:
        index, store = self.parts
        item = jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", store.example)
        return (
            f"Replay(capacity={store.ring.capacity}, num_envs={store.ring.num_envs}, "
            f"batch_size={index.batch_size}, prioritised={index.sampler.prioritised}, item={item})"
        )


def compose(index: Index, store: Store, least_size: int = 1) -> Replay:
    """Compose an index and a store over the same ring into a replay buffer.

    Args:
      index: draws slots.
      store: holds items.
      least_size: complete items required by `can_sample`.
    """
    if index.ring != store.ring:
        raise ValueError(f"index and store must share a ring, got {index.ring} and {store.ring}")

    def init(*example: PyTree, **hyperparameters: ArrayLike) -> ReplayState:
        if example:
            raise TypeError(
                "init takes hyper-parameters by name, such as alpha=0.6; the example of an item is "
                "an argument of make"
            )
        options = inspect.signature(index.sampler.init).parameters
        for name in hyperparameters:
            if name not in options:
                hint = meant(name, options) if options else "it takes none"
                raise TypeError(f"the sampler has no hyper-parameter {name!r}; {hint}")
        return ReplayState(index.init(**hyperparameters), store.init())

    def rows(
        state: StoreState, transitions: PyTree, priorities: ArrayLike | None = None
    ) -> tuple[PyTree, Added]:
        items, steps = store.rows(transitions)
        if priorities is not None:
            single = _rank(transitions) == _rank(store.example) + store.has_env_axis
            envs = (store.ring.num_envs,) if store.has_env_axis else ()
            given = as_priorities(priorities, envs if single else (steps, *envs))
            priorities = given.reshape(steps, store.ring.num_envs)
        return items, Added(steps, priorities, store.drawable(state, items, steps))

    def insert(state: IndexState, added: Added) -> IndexState:
        return index.insert(state, added.steps, added.priorities, added.drawable)

    def draw(state: IndexState, key: Array, beta: ArrayLike = 1.0) -> Sample:
        message = f"sample needs {least_size} complete items: see can_sample"
        require(holds_enough(state), message, index.checked)
        return index.sample(state, key, beta)

    def holds_enough(state: IndexState) -> Array:
        where = index.span(state)
        return (where.size >= least_size) & (index.sampler.mass(state.sampler, where) > 0)

    def add(
        state: ReplayState,
        transitions: PyTree,
        priorities: ArrayLike | None = None,
        batch_major: bool | None = None,
    ) -> ReplayState:
        check_structure("transitions", store.example, transitions)
        slots = jax.tree.leaves(state.store.data)[0].shape[0]
        if slots != store.ring.capacity:
            raise ValueError(f"state must have {store.ring.capacity} slots, got {slots}")
        transitions, priorities = time_major(store, transitions, priorities, batch_major)
        items, added = rows(state.store, transitions, priorities)
        return ReplayState(insert(state.index, added), store.write(state.store, items, added.steps))

    def sample(
        state: ReplayState, key: Array, beta: ArrayLike = 1.0, gamma: ArrayLike | None = None
    ) -> Sample:
        drawn = draw(state.index, key, beta)
        return dataclasses.replace(drawn, batch=store.gather(state.store, drawn.indices, gamma))

    def update(
        state: ReplayState, sample: Sample, priorities: ArrayLike, where: ArrayLike = True
    ) -> ReplayState:
        updated = index.update(state.index, sample, priorities, where)
        state = after(ReplayState(updated, state.store), priorities)
        return after(state, index.sampler.highest(updated.sampler))

    def size(state: ReplayState) -> Array:
        return index.span(state.index).size

    def can_sample(state: ReplayState) -> Array:
        return holds_enough(state.index)

    apart = Apart(rows, insert, store.write, draw, store.gather, index.update, holds_enough)
    parts = index, store
    return Replay(init, add, sample, update, can_sample, size, least_size, parts, apart)


def after(state: ReplayState, values: ArrayLike) -> ReplayState:
    """Return the same replay buffer, with its next write ordered after `values`.

    Results computed from a batch must be ready before the next `add` overwrites items, see
    `control_flow.order_after`.

    Args:
      state: state of a replay buffer.
      values: numbers of any shape that were computed from the last batch, such as TD errors.
    """
    cursor = state.store.cursor
    cursor = dataclasses.replace(cursor, row=order_after(cursor.row, values))
    return ReplayState(state.index, dataclasses.replace(state.store, cursor=cursor))


def _rank(items: PyTree) -> int:
    return np.ndim(jax.tree.leaves(items)[0])
