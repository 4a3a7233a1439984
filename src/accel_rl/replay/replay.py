"""Replay memories: an index and a store as one set of pure functions."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import instance, integer, one_of, shown, whole
from accel_rl.replay.amper import amper_fr
from accel_rl.replay.amper_k import amper_k
from accel_rl.replay.checks import require
from accel_rl.replay.index import Index, IndexState, as_priorities, make_index
from accel_rl.replay.prioritised import prioritised
from accel_rl.replay.rank_based import rank_based
from accel_rl.replay.sampler import MakeSampler
from accel_rl.replay.store import Store, StoreState, make_store
from accel_rl.replay.uniform import uniform
from accel_rl.types import Array, ArrayLike, Sample

# By the names that `make` takes.
SAMPLERS: dict[str, Callable[[], MakeSampler]] = {
    "uniform": uniform,
    "prioritised": prioritised,
    "rank_based": rank_based,
    "amper_fr": amper_fr,
    "amper_k": amper_k,
}
# By which they are known elsewhere. The command takes these too; here one spelling is enough.
OTHER_NAMES = {"per": "prioritised", "prioritized": "prioritised"}


@dataclasses.dataclass(frozen=True)
class ReplayState:
    """State of a replay memory; a pytree. Save it whole to restore it exactly."""

    index: IndexState
    store: StoreState


jax.tree_util.register_dataclass(ReplayState, ["index", "store"], [])


@dataclasses.dataclass(frozen=True)
class Added:
    """What the store tells the index of new rows; a pytree."""

    steps: int  # static
    priorities: Array | None  # [steps, E] float32, as they were given
    drawable: Array | None  # [steps, E] bool; None: all


jax.tree_util.register_dataclass(Added, ["priorities", "drawable"], ["steps"])


class Apart(NamedTuple):
    """A memory's functions cut where index and store meet: each over the state of one of them.

    `Replay.add` is rows, insert and write; `Replay.sample` is draw and gather.
    """

    rows: Callable[..., tuple[Any, Added]]
    """rows(store state, transitions, priorities=None): items as `write` takes them, and `Added`."""

    insert: Callable[[IndexState, Added], IndexState]
    """insert(index state, added)"""

    write: Callable[[StoreState, Any, int], StoreState]
    """write(store state, rows, steps)"""

    draw: Callable[..., Sample]
    """draw(index state, key, beta=1.0): a sample without its batch."""

    gather: Callable[..., Any]
    """gather(store state, slots [B], gamma=None): the batch."""

    update: Callable[..., IndexState]
    """update(index state, sample, priorities [B], where=True)"""

    can_sample: Callable[[IndexState], Array]
    """can_sample(index state)"""


class Replay(NamedTuple):
    """Pure functions over a `ReplayState`, for jit, vmap and scan.

    In a loop, add first, then sample, then update: in this order XLA changes the memory in place
    (`testing.assert_inplace` tells). Donate the state to a compiled function of your own.
    """

    init: Callable[..., ReplayState]
    """init(**hyper-parameters): an empty memory. Hyper-parameters are the sampler's, such as
    `alpha`, and leaves of the state."""

    add: Callable[..., ReplayState]
    """add(state, transitions, priorities=None): leaves [envs, *leaf] for one step of all
    environments or [steps, envs, *leaf] for several; without an axis of environments if the memory
    was made with num_envs=None. New items get the highest weight of any item unless `priorities`
    ([envs] or [steps, envs]) are given."""

    sample: Callable[..., Sample]
    """sample(state, key, beta=1.0, gamma=None): a `Sample` of batch_size items. `beta` is the
    exponent of importance weights; `gamma` must be given where batches are of type `Batch`."""

    update: Callable[..., ReplayState]
    """update(state, sample, priorities [batch_size], where=True): new priorities of what was
    sampled. Left out are items that were overwritten since, priorities that are NaN, negative or
    infinite, and those where `where` (a bool or [batch_size] bools) is False: a mask, unlike
    `lax.cond` around sample and update, copies nothing."""

    can_sample: Callable[[ReplayState], Array]
    """can_sample(state): whether there are batch_size complete items, or the least that was asked
    for, and one of them can be drawn; bool."""

    size: Callable[[ReplayState], Array]
    """size(state): items that are complete, int32."""

    least_size: int
    """Complete items that there must be to sample."""

    parts: tuple[Index, Store]
    """What it is composed of."""

    apart: Apart
    """Its functions over the parts' own states, for parts that are placed apart."""


def make(
    example: Any,
    capacity: int,
    batch_size: int,
    sampler: str | MakeSampler = "uniform",
    *,
    num_envs: int | None = None,
    n_step: int = 1,
    sequence_length: int | None = None,
    sequence_period: int = 1,
    frame_stack: int = 1,
    stratified: bool = True,
    weights_over: str = "batch",
    least_size: int | None = None,
    checked: bool = False,
) -> Replay:
    """A replay memory for items like `example`.

    Args:
      example: one item, a pytree of arrays of which only shapes and dtypes matter. A
        `types.Transition` is sampled as a `types.Batch` with n-step targets, anything else as it
        was added.
      capacity: items held, over all environments: any number from 1 to 2**30 that is a multiple of
        `num_envs`.
      batch_size: items in a sample, drawn with replacement.
      sampler: a name of `SAMPLERS` or what a function of that name returned, with options.
      num_envs: environments that are added together, each a row's slot; None: one, without an
        axis for it.
      n_step: rewards in a target; see `n_step`.
      sequence_length: sample `types.Sequences` of so many steps instead.
      sequence_period: rows of the ring between the starts of sequences.
      frame_stack: observations are stacks of so many frames, of which the newest is added and
        stored: leaves [batch_size, frame_stack, *observation].
      stratified: draw each item from its own part of the distribution, where slots have an order in
        it; AMPER draws independently.
      weights_over: "batch" or "buffer": what the largest importance weight is taken over.
      least_size: complete items that there must be for `can_sample`; batch_size if None.
      checked: let `jax.experimental.checkify.checkify` report what compiled functions find wrong:
        unsound priorities, too few items. Calls of compiled functions are slower then.

    Raises:
      ValueError: if a number is out of range, or no sampler has the name.
      TypeError: if the example does not fit what is asked for, or an argument is of another type.
    """
    if isinstance(sampler, str):
        one_of("sampler", sampler, SAMPLERS, OTHER_NAMES)
        sampler = SAMPLERS[sampler]()
    if not callable(sampler):
        raise TypeError(
            f"sampler must be one of {', '.join(SAMPLERS)}, or what replay.uniform() and others "
            f"give, got {shown(sampler)}"
        )
    store = make_store(
        example,
        capacity,
        num_envs=num_envs,
        n_step=n_step,
        sequence_length=sequence_length,
        sequence_period=sequence_period,
        frame_stack=frame_stack,
    )
    index = make_index(
        store.ring,
        sampler(store.ring, store.selective),
        batch_size,
        stratified=stratified,
        weights_over=weights_over,
        checked=checked,
    )
    most = (store.ring.rows - store.ring.reach + 1) * store.ring.num_envs
    least_size = batch_size if least_size is None else least_size
    integer("least_size", least_size)
    if not 1 <= least_size <= most:
        raise ValueError(
            f"batch_size (or least_size, if given) must be from 1 to {most}, the most complete "
            f"items that a capacity of {capacity} holds, got {least_size}"
        )
    return compose(index, store, least_size)


def compose(index: Index, store: Store, least_size: int = 1) -> Replay:
    """A replay memory of an index and a store over the same ring.

    Args:
      index: draws slots.
      store: holds items.
      least_size: complete items that there must be for `can_sample`.

    Raises:
      TypeError: if a part is none, or `least_size` no int.
      ValueError: if their rings differ, or `least_size` is below 1.
    """
    instance("index", index, Index, "replay.make_index makes one")
    instance("store", store, Store, "replay.make_store makes one")
    whole("least_size", least_size, 1)
    if index.ring != store.ring:
        raise ValueError(f"index and store must share a ring, got {index.ring} and {store.ring}")

    def init(**hyperparameters: ArrayLike) -> ReplayState:
        return ReplayState(index.init(**hyperparameters), store.init())

    def rows(
        state: StoreState, transitions: Any, priorities: ArrayLike | None = None
    ) -> tuple[Any, Added]:
        items, steps = store.rows(transitions)
        if priorities is not None:
            single = _rank(transitions) == _rank(store.example) + store.has_env_axis
            priorities = _by_rows(priorities, steps, store, single)
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
        state: ReplayState, transitions: Any, priorities: ArrayLike | None = None
    ) -> ReplayState:
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
    """The same memory, to be written only once `values` are there.

    XLA copies an array that is written while somebody may still read it. So what is made of a batch
    must be there before the next `add`, by data: the row depends on it, though it never changes.

    Args:
      state: of a memory.
      values: numbers of any shape that were computed from the last batch, such as errors.

    Raises:
      TypeError: if it is no state of a memory.
    """
    instance("state", state, ReplayState)
    cursor = state.store.cursor
    # Never true, not of NaN or infinity either, but a compiler does not know.
    impossible = jnp.any(jnp.asarray(values, jnp.float32) * 0 == 1)
    cursor = dataclasses.replace(cursor, row=jnp.where(impossible, np.int32(0), cursor.row))
    return ReplayState(state.index, dataclasses.replace(state.store, cursor=cursor))


def _by_rows(priorities: ArrayLike, steps: int, store: Store, single: bool) -> Any:
    """Priorities [steps, envs] of what an add was given: of one step, or of an axis of steps."""
    envs = (store.ring.num_envs,) if store.has_env_axis else ()
    given = as_priorities(priorities, envs if single else (steps, *envs))
    return given.reshape(steps, store.ring.num_envs)


def _rank(items: Any) -> int:
    return np.ndim(jax.tree.leaves(items)[0])
