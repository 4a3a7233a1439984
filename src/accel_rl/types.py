"""What flows between the folders of the library: transitions, samples, finite MDPs, their pictures.

Everything here is a frozen dataclass, registered as a pytree unless it says otherwise. Field
comments give shape and dtype; a leading axis, where one is allowed, is written `[...]`.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np

from accel_rl.arguments import shown, whole

Array = jax.Array
ArrayLike = Any

_FLOAT32 = np.dtype(np.float32)


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


@dataclasses.dataclass(frozen=True)
class Discrete:
    """The integers from 0 to n - 1; a description, not a pytree."""

    n: int

    def __post_init__(self) -> None:
        """Raises TypeError if n is no int, ValueError if it is below 1."""
        whole("n", self.n, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an element."""
        return ()

    @property
    def dtype(self) -> np.dtype:
        """Dtype of an element."""
        return np.dtype(np.int32)


@dataclasses.dataclass(frozen=True, init=False)
class Box:
    """Arrays within bounds, which may be infinite; a description, not a pytree.

    Bounds are kept as tuples of the elements in C order, so that spaces can be compared and hashed.

    Args:
        low: the least value of every element, or of each: a sequence or an array, flat or of the
            shape.
        high: the greatest, likewise.
        shape: of an array; a sequence of ints.
        dtype: of an array.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]
    dtype: np.dtype = _FLOAT32

    def __init__(
        self, low: ArrayLike, high: ArrayLike, shape: Sequence[int], dtype: Any = _FLOAT32
    ) -> None:
        """Raises TypeError if a bound is no number, ValueError if bounds do not fit."""
        if not isinstance(shape, Sequence) or isinstance(shape, str):
            raise TypeError(f"shape must be a tuple of ints, got {shown(shape)}")
        sizes = tuple(whole("shape", size, 0) for size in shape)
        lows, highs = _bound("low", low, sizes), _bound("high", high, sizes)
        if not len(lows) == len(highs) == math.prod(sizes):
            raise ValueError(
                f"low and high must have the {math.prod(sizes)} elements of the shape, "
                f"{sizes}, got {len(lows)} and {len(highs)}"
            )
        if not np.all(np.asarray(lows) <= np.asarray(highs)):
            raise ValueError(f"low must be at most high, got {shown(lows)} and {shown(highs)}")
        kept = {"low": lows, "high": highs, "shape": sizes, "dtype": np.dtype(dtype)}
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def bounded(self) -> bool:
        """Whether every bound is finite."""
        return bool(np.all(np.isfinite(self.low)) and np.all(np.isfinite(self.high)))


def _bound(name: str, bound: ArrayLike, shape: tuple[int, ...]) -> tuple[float, ...]:
    """Its elements in C order; a single number counts for each of the shape's."""
    try:
        values = np.asarray(bound, np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a number or one for each element, got {shown(bound)}"
        ) from None
    if values.ndim == 0:
        return (float(values),) * math.prod(shape)
    if values.ndim > 1 and values.shape != shape:
        raise ValueError(f"{name} must be flat or of the shape, {shape}, got {values.shape}")
    return tuple(values.ravel().tolist())


Space = Discrete | Box


class Environment(NamedTuple):
    """An environment as pure functions, its parameters bound; one, not a batch: `vmap` for more.

    `step` resets by itself where an episode stops, as gymnax 1.0 does.
    """

    name: str
    observation_space: Space
    action_space: Space
    reset: Callable[[Array], tuple[Any, Any]]
    """reset(key): observation, state."""

    step: Callable[[Array, Any, Array], tuple[Any, Any, Array, Array, Array, dict[str, Any]]]
    """step(key, state, action): observation, state, reward (float32), terminated (bool), truncated
    (bool), info. Observation and state are those after a reset where the episode stopped;
    `info["final_observation"]` is the observation before it."""


@runtime_checkable
class ReplayPort(Protocol):
    """A replay memory outside the program: on another device, in another process or machine.

    Its methods are called from host threads, one at a time for each of them.
    """

    @property
    def limited(self) -> bool:
        """Whether adding and sampling wait for one another, to keep a ratio."""

    def add(self, transitions: Transition, priorities: Array | None = None) -> None:
        """Adds steps, leaves [envs, ...] or [steps, envs, ...]; may wait if the memory is full."""

    def can_sample(self) -> bool:
        """Whether `sample` would answer at once."""

    def sample(self, key: Array, beta: float, gamma: float) -> Sample:
        """A sample, its batch of n-step targets; waits until there is one."""

    def update(self, sample: Sample, priorities: Array) -> None:
        """New priorities [B] of what was sampled; its batch may be None."""

    def close(self) -> None:
        """Gives back what it holds; calls that wait end with an error."""


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
