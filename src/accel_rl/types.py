"""Shared types: transitions, batches, samples, finite MDPs, spaces and environments.

Dataclasses are frozen, and pytrees unless stated otherwise. Field comments give shape and dtype;
optional leading axes are written `[...]`.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax
import numpy as np
from numpy.typing import DTypeLike

from accel_rl.arguments import shown, whole

Array = jax.Array
ArrayLike = Any
PyTree: TypeAlias = Any
"""Arrays in any nesting of tuples, lists, dicts and registered dataclasses."""

_FLOAT32 = np.dtype(np.float32)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Transition:
    """One step (or an array of steps) of an environment, as an actor records it.

    `observation` and `action` may be pytrees of any dtype. `discount` is the environment's: 0 only
    where the episode terminated. `truncated` marks the last step of an episode that was cut without
    terminating; its target bootstraps from `next_observation`, the observation before any reset.
    `truncated` is None if no episode is ever truncated. If `next_observation` is None, the
    observation of the following step takes its place; a truncated step, whose final observation is
    then unknown, is never the last step of a target. `extras` is stored with the step, unread.
    """

    observation: PyTree  # [..., *observation]
    action: PyTree  # [..., *action]
    reward: Array  # [...] float32
    discount: Array  # [...] float32, 0 or 1
    truncated: Array | None = None  # [...] bool
    next_observation: PyTree = None  # as observation
    extras: PyTree = None  # [..., *extras]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batch:
    """Batch of n-step transitions; targets are reward + discount * value(next_observation).

    `reward` is the discounted sum of up to n rewards. `discount` is the complete bootstrap
    coefficient: gamma^k times the environment's discounts, with k <= n cut where the episode
    terminated or was truncated. A learner never multiplies by gamma again.
    """

    observation: PyTree  # [B, *observation]
    action: PyTree  # [B, *action]
    reward: Array  # [B] float32
    discount: Array  # [B] float32
    next_observation: PyTree  # [B, *observation], k steps later
    extras: PyTree = None  # [B, *extras]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sequences:
    """Sequences of L consecutive steps, masked after the end of the first step's episode."""

    steps: PyTree  # the pytree that was added, with leading axes [B, L]
    valid: Array  # [B, L] bool: the step belongs to the episode of the first one


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Sample:
    """Batch sampled from a replay buffer, with the data that a priority update needs.

    `weights` are the importance-sampling weights (N p)^-beta over their maximum. `generations`
    distinguish a slot's present item from later ones, so that a late priority update does not
    change these.
    """

    batch: (
        PyTree  # Batch, Sequences or the added pytree, leading axis [B]; None from an index alone
    )
    indices: Array  # [B] int32, slots
    probabilities: Array  # [B] float32, of each item in a single draw
    weights: Array  # [B] float32, in (0, 1]; 0 for excluded items
    generations: Array  # [B] uint32


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TabularTransition:
    """One step (or a batch of steps) between states numbered from zero.

    `discount` is the environment's: 0 only where the episode terminated. A truncated step keeps 1
    and bootstraps from `next_state`, the state before any reset. `next_action` is the action that
    the behaviour policy takes in `next_state` (drawn at the final state of a truncated episode,
    never after the reset); where `discount` is 0 it is 0 and meaningless.
    """

    state: Array  # [...] int32
    action: Array  # [...] int32
    reward: Array  # [...] float32
    next_state: Array  # [...] int32
    discount: Array  # [...] float32, 0 or 1
    next_action: Array  # [...] int32


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class MDP:
    """Tables of a finite Markov decision process, after Gymnasium's `P[state][action]`.

    It has S states, A actions and at most K outcomes for each pair. An unused outcome has
    probability 0.
    """

    probability: Array  # [S, A, K] float32, sums to 1 over K
    next_state: Array  # [S, A, K] int32
    reward: Array  # [S, A, K] float32
    terminated: Array  # [S, A, K] bool
    initial: Array  # [S] float32, the distribution of an episode's first state
    # Steps after which an episode is truncated.
    time_limit: int | None = dataclasses.field(default=None, metadata={"static": True})

    @property
    def num_states(self) -> int:
        """Number of states, S."""
        return self.probability.shape[0]

    @property
    def num_actions(self) -> int:
        """Number of actions, A."""
        return self.probability.shape[1]


@dataclasses.dataclass(frozen=True)
class Discrete:
    """The integers from 0 to n - 1; a description, not a pytree."""

    n: int

    def __post_init__(self) -> None:
        """Raise ValueError if n is below 1."""
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

    Bounds are tuples of elements in C order, so that spaces can be compared and hashed.

    Args:
        low: lower bound, a number for all elements or one for each: a sequence or an array, flat or
            of the given shape.
        high: upper bound, likewise.
        shape: of an array; a sequence of ints.
        dtype: of an array.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]
    dtype: np.dtype = _FLOAT32

    def __init__(
        self, low: ArrayLike, high: ArrayLike, shape: Sequence[int], dtype: DTypeLike = _FLOAT32
    ) -> None:
        """Raise ValueError if bounds and shape disagree."""
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

    def __repr__(self) -> str:
        return f"Box({_in_short(self.low)}, {_in_short(self.high)}, {self.shape}, {self.dtype})"

    @property
    def bounded(self) -> bool:
        """True if all bounds are finite."""
        return bool(np.all(np.isfinite(self.low)) and np.all(np.isfinite(self.high)))


def _in_short(bound: tuple[float, ...]) -> str:
    """Return one number for equal bounds, all of a few, else the least and the greatest."""
    values = np.unique(bound)
    if len(values) == 1:
        return f"{values[0]:g}"
    if len(bound) <= 8:
        return f"[{', '.join(f'{value:g}' for value in bound)}]"
    return f"[{values[0]:g} ... {values[-1]:g}]"


def _bound(name: str, bound: ArrayLike, shape: tuple[int, ...]) -> tuple[float, ...]:
    """Return a bound's elements in C order; a scalar is repeated for every element of the shape."""
    values = np.asarray(bound, np.float64)
    if values.ndim == 0:
        return (float(values),) * math.prod(shape)
    if values.ndim > 1 and values.shape != shape:
        raise ValueError(f"{name} must be flat or of the shape, {shape}, got {values.shape}")
    return tuple(values.ravel().tolist())


Space = Discrete | Box

EnvStep: TypeAlias = tuple[PyTree, PyTree, Array, Array, Array, dict[str, PyTree]]
"""Result of `Environment.step`."""


class Environment(NamedTuple):
    """Pure functions of a single environment with its parameters bound; `vmap` them for more.

    `step` resets automatically when an episode stops, as gymnax 1.0 does.
    """

    name: str
    observation_space: Space
    action_space: Space
    reset: Callable[[Array], tuple[PyTree, PyTree]]
    """reset(key): observation, state."""

    step: Callable[[Array, PyTree, ArrayLike], EnvStep]
    """step(key, state, action): observation, state, reward (float32), terminated (bool), truncated
    (bool), info. Where the episode stopped, observation and state are those after the reset;
    `info["final_observation"]` is the observation before any reset."""

    def __repr__(self) -> str:
        return f"Environment({self.name}, {self.observation_space}, {self.action_space})"


@runtime_checkable
class ReplayPort(Protocol):
    """Replay buffer outside the program: on another device, or in another process or machine.

    Host threads call its methods; calls of the same method do not overlap.
    """

    @property
    def limited(self) -> bool:
        """True if `add` and `sample` block to keep a ratio of samples per insert."""

    def add(self, transitions: Transition, priorities: Array | None = None) -> None:
        """Add transitions, leaves [envs, ...] or [steps, envs, ...]; may block if full."""

    def can_sample(self) -> bool:
        """Return whether `sample` would not block."""

    def sample(self, key: Array, beta: float, gamma: float) -> Sample:
        """Sample a batch of n-step transitions; block until one is available."""

    def update(self, sample: Sample, priorities: Array) -> None:
        """Update the priorities [B] of a sample, whose `batch` may be None."""

    def close(self) -> None:
        """Release resources; blocked calls end with an error."""


@dataclasses.dataclass(frozen=True, eq=False)
class GridLayout:
    """Layout for drawing the states of a grid world, H rows by W columns of cells.

    Plain Python and NumPy, not a pytree; for drawing only.
    """

    cells: tuple[str, ...]  # H strings of W characters, one for each cell
    meaning: dict[str, str]  # meaning of each character: start, goal, hole, cliff, floor, ...
    states: np.ndarray  # [H, W] int, the state of an agent in each cell
    actions: tuple[str, ...]  # A names
    moves: tuple[
        tuple[int, int] | None, ...
    ]  # A moves (rows, columns); None for an action that is not a move
    walls: frozenset[tuple[int, int]] = (
        frozenset()
    )  # (row, column) of cells with a wall to the east
    no_action: str = ""  # characters of cells in which no action is ever taken
    marks: tuple[tuple[int, int, str], ...] = ()  # (row, column, label) drawn over the cells
    caption: str = ""  # distinguishes several layouts of one environment
