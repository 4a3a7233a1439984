"""What flows between the folders of the library: transitions, samples, finite MDPs, their pictures.

Everything here is a frozen dataclass, registered as a pytree unless it says otherwise. Field
comments give shape and dtype; a leading axis, where one is allowed, is written `[...]`.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

Array = jax.Array
ArrayLike = Any


def _pytree(cls: type, static: tuple[str, ...] = ()) -> type:
    names = [field.name for field in dataclasses.fields(cls)]
    return jax.tree_util.register_dataclass(
        cls, [name for name in names if name not in static], list(static)
    )


@dataclasses.dataclass(frozen=True)
class Transition:
    """One step (or an array of steps) of an environment, as an actor records it.

    Leaves of `observation` and `action` may be pytrees of any dtype. `discount` is the
    environment's: 0 only where the episode truly ended. `truncated` says that the episode was cut
    after this step without ending, so that a target bootstraps from `next_observation`, the
    observation before any reset; None where no episode is ever truncated. `next_observation` may
    be None: it is then the observation of the following step, and a truncated step, whose final
    observation nobody has, is never the last of a target. `extras` goes with the step unread.
    """

    observation: Any  # [..., *observation]
    action: Any  # [..., *action]
    reward: Array  # [...] float32
    discount: Array  # [...] float32, 0 or 1
    truncated: Array | None = None  # [...] bool
    next_observation: Any = None  # as observation
    extras: Any = None  # [..., *extras]


@dataclasses.dataclass(frozen=True)
class Batch:
    """Transitions as a learner reads them: targets are reward + discount * value(next_observation).

    `reward` is the discounted sum of up to n rewards and `discount` the complete bootstrap
    coefficient: gamma^k times the environment's discounts, with k <= n cut where the episode ended
    or was truncated. A learner never multiplies by gamma again.
    """

    observation: Any  # [B, *observation]
    action: Any  # [B, *action]
    reward: Array  # [B] float32
    discount: Array  # [B] float32
    next_observation: Any  # [B, *observation], k steps later
    extras: Any = None  # [B, *extras]


@dataclasses.dataclass(frozen=True)
class Sequences:
    """Runs of L consecutive steps, each cut where the episode of its first step stops."""

    steps: Any  # the pytree that was added, with leading axes [B, L]
    valid: Array  # [B, L] bool: the step belongs to the episode of the first one


@dataclasses.dataclass(frozen=True)
class Sample:
    """A batch drawn from a replay memory, and what an update of its priorities must know.

    `weights` correct for the drawing, (N p)^-beta over their maximum. `generations` tells a slot's
    present item from later ones, so that an update that comes late does not touch those.
    """

    batch: Any  # Batch, Sequences or the pytree that was added, leading axis [B]; None of an index
    indices: Array  # [B] int32, slots
    probabilities: Array  # [B] float32, of each item for a single draw
    weights: Array  # [B] float32, in (0, 1]; 0 for what must be left out
    generations: Array  # [B] uint32


@dataclasses.dataclass(frozen=True)
class TabularTransition:
    """One step (or a batch of steps) between states numbered from zero.

    `discount` is the environment's: 0 only where the episode truly ended; a truncated step keeps 1
    and bootstraps from `next_state`, the state before any reset. `next_action` is the action that
    the behaviour policy takes in `next_state` (drawn at the final state of a truncated episode,
    never after the reset); where `discount` is 0 it has no meaning and is 0.
    """

    state: Array  # [...] int32
    action: Array  # [...] int32
    reward: Array  # [...] float32
    next_state: Array  # [...] int32
    discount: Array  # [...] float32, 0 or 1
    next_action: Array  # [...] int32


@dataclasses.dataclass(frozen=True)
class MDP:
    """A finite Markov decision process as tables, after Gymnasium's `P[state][action]`.

    S states, A actions and at most K outcomes for each pair. An unused outcome has probability 0.
    """

    probability: Array  # [S, A, K] float32, sums to 1 over K
    next_state: Array  # [S, A, K] int32
    reward: Array  # [S, A, K] float32
    terminated: Array  # [S, A, K] bool
    initial: Array  # [S] float32, the distribution of an episode's first state
    time_limit: int | None = None  # steps after which an episode is truncated; static

    @property
    def num_states(self) -> int:
        """S, the number of states."""
        return self.probability.shape[0]

    @property
    def num_actions(self) -> int:
        """A, the number of actions."""
        return self.probability.shape[1]


for _each in (Transition, Batch, Sequences, Sample, TabularTransition):
    _pytree(_each)
_pytree(MDP, static=("time_limit",))


@dataclasses.dataclass(frozen=True, eq=False)
class GridLayout:
    """How to show the states of a grid world: H rows by W columns of cells.

    Plain Python and NumPy, not a pytree: a description for drawing, never for computing.
    """

    cells: tuple[str, ...]  # H strings of W characters, one for each cell
    meaning: dict[str, str]  # what a character stands for: start, goal, hole, cliff, floor, ...
    states: np.ndarray  # [H, W] int, the state that stands for being in the cell
    actions: tuple[str, ...]  # A names
    moves: tuple[
        tuple[int, int] | None, ...
    ]  # A (rows, columns) an action moves by, None: not a move
    walls: frozenset[tuple[int, int]] = (
        frozenset()
    )  # (row, column) of cells with a wall to the east
    no_action: str = ""  # characters of the cells in which no action is ever taken
    marks: tuple[tuple[int, int, str], ...] = ()  # (row, column, what is there) besides the cells
    caption: str = ""  # which of several pictures of one environment this is
