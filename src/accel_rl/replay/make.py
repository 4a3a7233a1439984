"""Replay buffers by the names of their samplers."""

from collections.abc import Callable

from accel_rl.arguments import one_of, whole
from accel_rl.replay.amper import amper_fr
from accel_rl.replay.amper_k import amper_k
from accel_rl.replay.index import make_index
from accel_rl.replay.prioritised import prioritised
from accel_rl.replay.rank_based import rank_based
from accel_rl.replay.replay import Replay, compose
from accel_rl.replay.sampler import MakeSampler
from accel_rl.replay.store import make_store
from accel_rl.replay.uniform import uniform
from accel_rl.types import PyTree

# Sampler factories, by the names that `make` accepts.
SAMPLERS: dict[str, Callable[[], MakeSampler]] = {
    "uniform": uniform,
    "prioritised": prioritised,
    "rank_based": rank_based,
    "amper_fr": amper_fr,
    "amper_k": amper_k,
}
# Other common names of samplers.
OTHER_NAMES = {"per": "prioritised", "prioritized": "prioritised"}


def make(
    example: PyTree,
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
    """Make a replay buffer for items like `example`.

    Args:
      example: one item, a pytree of arrays; only shapes and dtypes matter. A `types.Transition` is
        sampled as a `types.Batch` with n-step targets, any other item as it was added.
      capacity: items stored, over all environments: any multiple of `num_envs` from 1 to 2**30.
      batch_size: items in a sample, drawn with replacement.
      sampler: a name in `SAMPLERS`, "per" for "prioritised", or the result of one of its functions
        called with options.
      num_envs: environments that are added together, one slot each in a row; None for a single
        environment without an axis.
      n_step: rewards in a target; see `n_step`.
      sequence_length: sample `types.Sequences` of this many steps instead.
      sequence_period: rows of the ring between the starts of sequences.
      frame_stack: observations are stacks of this many frames, of which only the newest is added
        and stored: leaves [batch_size, frame_stack, *observation].
      stratified: draw each item from its own part of the distribution, if the sampler orders slots;
        AMPER draws independently.
      weights_over: "batch" or "buffer": items over which the largest importance-sampling weight is
        taken.
      least_size: complete items required by `can_sample`, no more than the capacity holds; None:
        batch_size.
      checked: let `jax.experimental.checkify.checkify` report errors in compiled functions: invalid
        priorities, too few items. Calls of compiled functions are slower then.
    """
    if isinstance(sampler, str):
        sampler = OTHER_NAMES.get(sampler, sampler.replace("-", "_"))
        one_of("sampler", sampler, SAMPLERS)
        sampler = SAMPLERS[sampler]()
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
    name = "batch_size" if least_size is None else "least_size"
    least_size = batch_size if least_size is None else least_size
    # At most the complete items that the capacity holds.
    whole(name, least_size, 1, (store.ring.rows - store.ring.reach + 1) * store.ring.num_envs)
    return compose(index, store, least_size)
