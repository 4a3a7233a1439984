"""A program's parts as compiled functions of one training, or of many at once."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import whole
from accel_rl.train.evaluate import evaluator
from accel_rl.train.program import Program
from accel_rl.train.seeds import over_seeds
from accel_rl.train.state import TrainState
from accel_rl.types import Array

# Iterations are numbered with an int32, so no key of theirs is made with this.
EVALUATION = np.uint32(1 << 31)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Greedy episodes at the end of chunks."""

    episodes: int = 100  # for each seed
    every: int = 50_000  # environment steps between two evaluations
    max_steps: int = 10_000  # an episode counts with its rewards until then

    def __post_init__(self) -> None:
        """Raises TypeError if a number is no int, ValueError if it is below 1."""
        for field in dataclasses.fields(self):
            whole(field.name, getattr(self, field.name), 1)


class Chunk(NamedTuple):
    """What a segment gives, with a leading axis where there are seeds."""

    state: TrainState
    metrics: dict[str, Array]  # [] each
    finite: Array  # [] bool, whether the agent's state is


class Compiled(NamedTuple):
    """Compiled functions of a program."""

    init: Callable[[], TrainState]
    """init(): the state before the first iteration."""

    segment: Callable[[TrainState, int, bool], Chunk]
    """segment(state, iterations, learning): `Program.segment`. One compiled program serves all
    numbers of iterations. The state's memory is given away."""

    evaluate: Callable[[TrainState], Array]
    """evaluate(state): mean return of greedy episodes, [] float32."""

    template: Any
    """The state's shapes, dtypes and shardings."""


def compiled(
    program: Program,
    key: Array,
    hyper: Mapping[str, Any],
    seeds: Mapping[str, Any],
    evaluation: Evaluation | None = None,
) -> Compiled:
    """Compiles what creates a program's state, and prepares the rest.

    Args:
      program: its memory must be part of it.
      key: random key of a training, or [seeds] of them.
      hyper: arguments of `program.init`; with several keys, leaves are scalars or [seeds].
      seeds: arguments of `over_seeds`; only read where there are several keys.
      evaluation: what `evaluate` does; `Evaluation()` if None.

    Raises:
      ValueError: if a hyper-parameter is out of range, or not of the seeds' number.
      TypeError: if there is no such hyper-parameter, or the memory is a replay port.
    """
    program.require_replay()
    number = number_of_seeds(key)
    values = _checked(program, hyper, number)
    sharing = None if number is None else tuple((name, _hashable(seeds[name])) for name in seeds)
    parts = _functions(program, sharing, evaluation or Evaluation())
    lowered = parts.init.lower(key, values)
    init = lowered.compile()
    template = jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        lowered.out_info,
        init.output_shardings,
    )
    return Compiled(
        init=lambda: init(key, values),
        segment=lambda state, iterations, learning: parts.segments[learning](
            state, np.int32(iterations)
        ),
        evaluate=parts.evaluate,
        template=template,
    )


class _Functions(NamedTuple):
    """What `jax.jit` made of a program."""

    init: Any
    segments: dict[bool, Callable[..., Chunk]]
    evaluate: Callable[[TrainState], Array]


@functools.lru_cache(maxsize=8)
def _functions(
    program: Program,
    sharing: tuple[tuple[str, Any], ...] | None,
    evaluation: Evaluation,
) -> _Functions:
    """Kept, so that a program that is run again, or resumed, is not compiled again."""

    def start(key: Array, hyper: Any) -> TrainState:
        return program.init(key, **hyper)

    def segment(learning: bool, state: TrainState, iterations: Array) -> Chunk:
        state, metrics = program.segment(state, iterations, learning)
        return Chunk(state, metrics, finite(state.agent))

    def evaluate(state: TrainState) -> Array:
        play = evaluator(program.env, program.agent, evaluation.episodes, evaluation.max_steps)
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), EVALUATION)
        returns = play(program.agent.policy(state.agent), jax.random.fold_in(key, state.iteration))
        return jnp.mean(returns)

    def many(fn: Callable[..., Any], in_axes: tuple[int | None, ...]) -> Callable[..., Any]:
        return fn if sharing is None else over_seeds(fn, in_axes=in_axes, **dict(sharing))

    chunks = {
        learning: many(functools.partial(segment, learning), (0, None))
        for learning in (False, True)
    }
    return _Functions(
        init=jax.jit(many(start, (0, 0))),
        segments={name: jax.jit(fn, donate_argnums=0) for name, fn in chunks.items()},
        evaluate=jax.jit(many(evaluate, (0,))),
    )


def number_of_seeds(key: Array) -> int | None:
    """How many trainings keys are for; None: one, without an axis of seeds.

    Raises:
      TypeError: if it is not a key, or an array of keys with one axis.
    """
    dtype = getattr(key, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key) or key.ndim > 1:
        raise TypeError(f"key must be jax.random.key(...), or an array [seeds] of them, got {key}")
    return None if key.ndim == 0 else key.shape[0]


def arrays(hyper: Mapping[str, Any]) -> dict[str, Any]:
    """Hyper-parameters as NumPy arrays, in nested dicts."""
    return {
        name: arrays(value) if isinstance(value, Mapping) else np.asarray(value)
        for name, value in hyper.items()
    }


def _checked(program: Program, hyper: Mapping[str, Any], number: int | None) -> Any:
    """Hyper-parameters as float32, with an axis of seeds where there are several."""
    given = arrays(hyper)
    shape = () if number is None else (number,)
    for path, leaf in jax.tree_util.tree_flatten_with_path(given)[0]:
        if leaf.shape not in ((), shape):
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            wanted = "a scalar" if number is None else f"a scalar or [{number}]"
            raise ValueError(f"{name} must be {wanted}, got shape {leaf.shape}")
    # Ranges are checked where values are known, and they have no holes.
    for extreme in (np.min, np.max):
        known = jax.tree.map(lambda leaf, extreme=extreme: extreme(leaf).item(), given)
        jax.eval_shape(lambda known=known: program.init(jax.random.key(0), **known))
    return jax.tree.map(lambda leaf: np.array(np.broadcast_to(leaf, shape), np.float32), given)


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def finite(tree: Any) -> Array:
    """Whether all floats in a tree are finite, [] bool."""
    floats = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in floats]))
