"""Replay buffer sharded over devices: each holds a part, and batches are drawn from the whole.

Functions of a sharded buffer run inside `jax.shard_map`, on each device's own state. A batch's
positions in the whole distribution are the same on all devices. Devices exchange two numbers each:
the mass of their part and the smallest probability that they drew. Each device draws for the
positions that fall in its part and masks the others, so that shapes are static.
"""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.replay import ring as rings
from accel_rl.replay.index import importance_weights
from accel_rl.replay.random import positions_of, random_words
from accel_rl.replay.replay import Replay, ReplayState
from accel_rl.replay.validation import require
from accel_rl.types import Array, ArrayLike, Sample
from accel_rl.words import unit_float


def shard(replay: Replay, axis_name: str) -> Replay:
    """Return a replay buffer sharded over a mesh axis, for use inside `jax.shard_map`.

    `init`, `add` and `update` work on the device's own part: a device adds the transitions of its
    own actors. `sample` must be given the same key on all devices. It returns on each device the
    same batch_size items, with the items of other devices masked: their probability and weight are
    0, and their batch entries are not valid. So `update` skips them, and a loss that is a weighted
    sum over the items, summed over devices, is the loss of the whole batch. `whole_batch` assembles
    the whole batch.

    `probabilities` are those in the whole buffer, and `weights` are normalised by the maximum of
    the whole batch. `can_sample` and `size` are of the whole buffer. Samplers whose positions do
    not determine the item, such as AMPER's, split the batch by the masses of the parts and draw
    within parts. Rank-based sampling does so too, with ranks within a part. New items get the
    highest weight of their part.

    Args:
      replay: the buffer of one device, from `make`.
      axis_name: name of the mesh axis.
    """
    index, store = replay.parts
    if index.weights_over != "batch":
        raise ValueError(f"weights_over must be 'batch' to be sharded, got {index.weights_over!r}")
    sampler = index.sampler

    def sample(
        state: ReplayState, key: Array, beta: ArrayLike = 1.0, gamma: ArrayLike | None = None
    ) -> Sample:
        message = "sample needs more complete items: see can_sample"
        require(can_sample(state), message, index.checked)
        span = index.span(state.index)
        mass = sampler.mass(state.index.sampler, span)
        masses = jax.lax.all_gather(mass, axis_name)  # [devices]
        words = random_words(key, 2 + sampler.num_words, index.batch_size)
        positions = positions_of(words[0], index.stratified)
        device = jax.lax.axis_index(axis_name)
        here, inside = _share(masses, positions, unit_float(words[1]), device)
        slots, probabilities = sampler.draw(state.index.sampler, span, inside, words[2:])
        part = mass / jnp.maximum(masses.sum(), np.float32(1e-30))
        probabilities = jnp.where(here, probabilities * part, np.float32(0))
        least = jnp.min(jnp.where(probabilities > 0, probabilities, np.float32(np.inf)))
        weights = importance_weights(probabilities, beta, jax.lax.pmin(least, axis_name))
        return Sample(
            store.gather(state.store, slots, gamma),
            slots,
            probabilities,
            weights,
            rings.generations(index.ring, state.index.cursor, slots),
        )

    def size(state: ReplayState) -> Array:
        return jax.lax.psum(replay.size(state), axis_name)

    def can_sample(state: ReplayState) -> Array:
        mass = sampler.mass(state.index.sampler, index.span(state.index))
        return (size(state) >= replay.least_size) & (jax.lax.psum(mass, axis_name) > 0)

    return replay._replace(sample=sample, can_sample=can_sample, size=size)


def whole_batch(sample: Sample, axis_name: str) -> Sample:
    """Assemble the whole batch on every device from the devices' samples of a sharded buffer.

    Its indices and generations are those on the device that holds the item. Update priorities with
    the sample given to `whole_batch`, not with its result.

    Args:
      sample: this device's sample, inside `jax.shard_map`.
      axis_name: name of the mesh axis over which the buffer is sharded.
    """
    mine = sample.probabilities > 0

    def join(leaf: Array) -> Array:
        shape = mine.shape + (1,) * (leaf.ndim - 1)
        numbers = leaf.astype(jnp.uint8) if leaf.dtype == bool else leaf
        kept = jnp.where(mine.reshape(shape), numbers, jnp.zeros_like(numbers))
        return jax.lax.psum(kept, axis_name).astype(leaf.dtype)

    return jax.tree.map(join, sample)


def _share(masses: Array, positions: Array, below: Array, device: Array) -> tuple[Array, Array]:
    """Return a mask of the positions in a device's part, and their positions within the part.

    `below` [n] in [0, 1) are fractions of a position's last step, because a small part spans few
    such steps.
    """
    ends = jnp.cumsum(masses)
    most = jnp.nextafter(ends[-1], jnp.float32(0))
    target = jnp.minimum(positions * ends[-1], most)
    owner = jnp.sum(ends[None, :] <= target[:, None], axis=1, dtype=jnp.int32)
    mass = masses[device]
    rest = target - (ends[device] - mass) + below * (ends[-1] * np.float32(2**-24))
    inside = rest / jnp.maximum(mass, np.float32(1e-30))
    return owner == device, jnp.clip(inside, 0, np.float32(1 - 2**-24))
