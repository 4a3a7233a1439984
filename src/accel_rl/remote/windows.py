"""Windows of n consecutive transitions, the items of a remote table."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from accel_rl.arguments import require_array, whole
from accel_rl.replay import n_step as n_step_return
from accel_rl.replay.index import importance_weights
from accel_rl.types import Array, ArrayLike, PyTree, Transition


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Window:
    """Table item made from n consecutive transitions; a pytree.

    n-step targets are computed when a batch is sampled, so gamma may change during a training and
    differ between learners of one table.
    """

    observation: PyTree  # of the first transition
    action: PyTree  # of the first transition
    reward: Any  # [n] float32
    discount: Any  # [n] float32, the environment's
    truncated: Any  # [n] bool
    next_observation: PyTree  # of the last transition in the first one's episode
    extras: PyTree  # of the first transition


def window_of(example: Transition, n_step: int) -> Window:
    """Return an example item, for shapes and dtypes, from an example transition."""
    return Window(
        observation=example.observation,
        action=example.action,
        reward=np.zeros(n_step, np.float32),
        discount=np.zeros(n_step, np.float32),
        truncated=np.zeros(n_step, np.bool_),
        next_observation=example.next_observation,
        extras=example.extras,
    )


class Windows:
    """Assembler of n-step windows from the transitions of E environments.

    Args:
      example: a transition of one environment, with `truncated` and `next_observation`.
      num_envs: E.
      n_step: n.
    """

    def __init__(self, example: Transition, num_envs: int, n_step: int) -> None:
        whole("num_envs", num_envs, 1)
        whole("n_step", n_step, 1)
        if example.truncated is None or example.next_observation is None:
            raise TypeError("example must have truncated and next_observation")
        self._n, self._num_envs = n_step, num_envs
        shapes, self._structure = jax.tree.flatten(example)
        self._parts = [(np.shape(leaf), np.dtype(leaf.dtype)) for leaf in shapes]
        # The last n - 1 transitions and their initial priorities, NaN for none.
        self._steps = [np.zeros((0, num_envs, *shape), dtype) for shape, dtype in self._parts]
        self._priorities = np.zeros((0, num_envs), np.float32)

    def add(
        self, transitions: Transition, priorities: ArrayLike | None = None
    ) -> tuple[Window, np.ndarray]:
        """Add transitions; return the windows that they complete, oldest first, with priorities.

        Args:
          transitions: leaves [E, ...], or [steps, E, ...].
          priorities: initial priorities, [E] or [steps, E]; None: the table assigns them.

        Returns:
          The windows, leaves [m, ...], and their priorities, [m] float32, NaN where none was given.
        """
        rows = self._rows(transitions)
        count = len(rows[0])
        given = np.full((count, self._num_envs), np.nan, np.float32)
        if priorities is not None:
            found = np.asarray(priorities, np.float32)
            if found.size != given.size or found.shape not in (given.shape, given.shape[1:]):
                raise ValueError(
                    f"priorities must have shape {list(given.shape)}, got {list(found.shape)}"
                )
            given[:] = found
        steps = [np.concatenate(pair) for pair in zip(self._steps, rows, strict=True)]
        known = np.concatenate([self._priorities, given])
        keep = max(0, len(known) - (self._n - 1))
        # Copies: a slice would keep all of the actor's arrays alive.
        self._steps = [leaf[keep:].copy() for leaf in steps]
        self._priorities = known[keep:]
        return self._complete(jax.tree.unflatten(self._structure, steps), keep), known[
            :keep
        ].ravel()

    def _complete(self, steps: Transition, count: int) -> Window:
        def first(leaf: np.ndarray) -> np.ndarray:
            return leaf[:count].reshape(-1, *leaf.shape[2:])

        def all_of(leaf: ArrayLike) -> np.ndarray:
            if not count:
                return np.zeros((0, self._n), leaf.dtype)
            return np.ascontiguousarray(sliding_window_view(leaf, self._n, axis=0)).reshape(
                -1, self._n
            )

        discount, truncated = all_of(steps.discount), all_of(steps.truncated)
        stops = (discount <= 0) | truncated
        stops[:, -1] = True  # argmax finds the last step where no episode ends
        last = stops.argmax(axis=1).reshape(count, self._num_envs)
        at = np.arange(count)[:, None] + last, np.arange(self._num_envs)[None]

        def after(leaf: np.ndarray) -> np.ndarray:
            return leaf[at].reshape(-1, *leaf.shape[2:])

        return Window(
            observation=jax.tree.map(first, steps.observation),
            action=jax.tree.map(first, steps.action),
            reward=all_of(steps.reward),
            discount=discount,
            truncated=truncated,
            next_observation=jax.tree.map(after, steps.next_observation),
            extras=jax.tree.map(first, steps.extras),
        )

    def _rows(self, transitions: Transition) -> list[np.ndarray]:
        """Return NumPy leaves [steps, E, ...]; raise ValueError or TypeError on a mismatch."""
        leaves, structure = jax.tree.flatten(transitions)
        if str(structure) != str(self._structure):
            raise TypeError(f"transitions must be {self._structure}, got {structure}")
        rows = []
        for leaf, (shape, dtype) in zip(leaves, self._parts, strict=True):
            array = np.asarray(leaf)
            rows.append(array if array.ndim == len(shape) + 2 else array[None])
            wanted = (len(rows[0]), self._num_envs, *shape)
            require_array("leaves of transitions", rows[-1], dtype, wanted)
        return rows


@jax.jit
def targets(
    reward: Array,
    discount: Array,
    truncated: Array,
    probabilities: Array,
    beta: Array,
    gamma: Array,
) -> tuple[Array, Array, Array]:
    """Return n-step returns, bootstrap coefficients and importance-sampling weights, each [B]."""
    found = jax.vmap(n_step_return, in_axes=(0, 0, 0, None))(reward, discount, truncated, gamma)
    weights = importance_weights(jnp.asarray(probabilities), beta)
    return found.reward, found.discount, weights
