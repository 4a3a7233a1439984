"""Batches mixed from several buffers in fixed proportions."""

import dataclasses
import operator
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from accel_rl.arguments import whole
from accel_rl.replay.flashbax.containers import TrajectoryBuffer
from accel_rl.types import Array, PyTree


@dataclasses.dataclass(frozen=True)
class Mixer:
    """Pure functions over a sequence of states, one for each buffer."""

    sample: Callable[[Sequence[PyTree], Array], PyTree]
    """sample(states, key): the buffers' samples, concatenated along the batch axis."""

    can_sample: Callable[[Sequence[PyTree]], Array]
    """can_sample(states): True if all buffers can be sampled, bool."""


def make_mixer(
    buffers: Sequence[TrajectoryBuffer], sample_batch_size: int, proportions: Sequence[float]
) -> Mixer:
    """Make a mixer of buffers whose samples differ in batch size only.

    Args:
      buffers: buffers whose samples hold at least their part of `sample_batch_size`.
      sample_batch_size: items of a mixed sample.
      proportions: parts of the buffers, of any sum; what rounding leaves goes to the first.
    """
    whole("sample_batch_size", sample_batch_size, 1)
    if len(proportions) != len(buffers):
        raise ValueError(f"proportions must be {len(buffers)}, one a buffer, got {proportions}")
    total = sum(proportions)
    counts = [int(part / total * sample_batch_size) for part in proportions]
    counts[0] += sample_batch_size - sum(counts)

    def sample(states: Sequence[PyTree], key: Array) -> PyTree:
        parts = []
        for number, (buffer, state) in enumerate(zip(buffers, states, strict=True)):
            draw_key, part_key = jax.random.split(jax.random.fold_in(key, number))
            drawn = buffer.sample(state, draw_key)
            found = jax.tree.leaves(drawn)[0].shape[0]
            if found < counts[number]:
                raise ValueError(f"a buffer must sample at least {counts[number]}, got {found}")
            # Not the first ones: those of a stratified sample are at the lowest indices.
            part = jax.random.permutation(part_key, found)[: counts[number]]
            parts.append(jax.tree.map(operator.itemgetter(part), drawn))
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)

    def can_sample(states: Sequence[PyTree]) -> Array:
        ready = [b.can_sample(state) for b, state in zip(buffers, states, strict=True)]
        return jnp.all(jnp.stack(ready))

    return Mixer(sample, can_sample)
