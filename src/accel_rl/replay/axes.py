"""Order of the axes of added transitions: steps first or environments first."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.replay.store import Store
from accel_rl.types import ArrayLike, PyTree


def time_major(
    store: Store, transitions: PyTree, priorities: ArrayLike | None, batch_major: bool | None
) -> tuple[PyTree, ArrayLike | None]:
    """Return transitions and priorities of several steps with the axes [steps, envs].

    Args:
      store: of the buffer.
      transitions: leaves [envs, *leaf], [steps, envs, *leaf] or, if batch-major,
        [envs, steps, *leaf].
      priorities: likewise.
      batch_major: None: the axes are told by their sizes, which must differ.
    """
    if isinstance(batch_major, jax.core.Tracer):
        raise TypeError(
            "batch_major must be known where add is compiled: "
            "jax.jit(functools.partial(add, batch_major=True))"
        )
    if batch_major and not store.has_env_axis:
        raise ValueError("batch_major=True needs a buffer made with num_envs, got num_envs=None")
    leaf, example = (jax.tree.leaves(tree)[0] for tree in (transitions, store.example))
    several = store.has_env_axis and np.ndim(leaf) == len(example.shape) + 2
    if batch_major and several:
        swapped = jax.tree.map(_swap, transitions)
        return swapped, None if priorities is None else _swap(priorities)
    envs = store.ring.num_envs
    if batch_major is None and several and envs > 1 and np.shape(leaf)[:2] == (envs, envs):
        raise ValueError(
            f"transitions have as many steps as environments, {envs}: say batch_major=False for "
            "leaves [steps, envs, ...], or True for [envs, steps, ...]"
        )
    return transitions, priorities


def _swap(leaf: ArrayLike) -> jax.Array:
    return jnp.swapaxes(jnp.asarray(leaf), 0, 1)
