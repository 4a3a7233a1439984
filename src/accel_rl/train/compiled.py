"""Compiled functions of a program, for one seed or a batch of seeds."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.io.values import Json
from accel_rl.train.evaluate import Evaluation, evaluator
from accel_rl.train.program import Program
from accel_rl.train.seeds import over_seeds
from accel_rl.train.state import TrainState
from accel_rl.types import Array, PyTree

Sharing = tuple[tuple[str, Any], ...] | None  # arguments of `over_seeds`; None for a single key
# Iterations are int32, so no iteration folds this into the key.
EVALUATION = np.uint32(1 << 31)


class SegmentResult(NamedTuple):
    """State and metrics after a segment, with a leading axis where there are seeds."""

    state: TrainState
    metrics: dict[str, Array]  # [] each
    finite: Array  # [] bool, of the agent's state


class CompiledProgram(NamedTuple):
    """Compiled functions of a program."""

    init: Callable[[], TrainState]
    """init(): the state before the first iteration."""

    segment: Callable[[TrainState, int, bool], SegmentResult]
    """segment(state, iterations, learning): `Program.segment`. Compiled once for any
    number of iterations. The state is donated."""

    evaluate: Callable[[TrainState], Array]
    """evaluate(state): mean return of greedy episodes, [] float32."""

    template: PyTree
    """The state's shapes, dtypes and shardings."""


def compile_program(
    program: Program,
    key: Array,
    hyper: Mapping[str, PyTree],
    seeds: Mapping[str, Any],
    evaluation: Evaluation | None = None,
) -> CompiledProgram:
    """Compile the initialisation of a program now, and its segments when they are first called.

    Args:
      program: its buffer must be a `Replay`.
      key: PRNG key, or [seeds] of them.
      hyper: arguments of `program.init`; with several keys, leaves are scalars or [seeds].
      seeds: arguments of `over_seeds`; only read where there are several keys.
      evaluation: episodes of `evaluate`; `Evaluation()` if None.
    """
    program.require_replay()
    number = number_of_seeds(key)
    values = _checked(program, hyper, number)
    parts = _functions(program, sharing(key, seeds), evaluation or Evaluation())
    lowered = parts.init.lower(key, values)
    init = lowered.compile()
    template = jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        lowered.out_info,
        init.output_shardings,
    )
    return CompiledProgram(
        init=lambda: init(key, values),
        segment=lambda state, iterations, learning: parts.segments[learning](
            state, np.int32(iterations)
        ),
        evaluate=parts.evaluate,
        template=template,
    )


class _Functions(NamedTuple):
    """Jitted functions of a program."""

    init: jax.stages.Wrapped
    segments: dict[bool, Callable[..., SegmentResult]]
    evaluate: Callable[[TrainState], Array]


@functools.lru_cache(maxsize=8)
def _functions(
    program: Program,
    shared: Sharing,
    evaluation: Evaluation,
) -> _Functions:
    """Jit once, so that a program that runs again, or resumes, is not compiled again."""

    def start(key: Array, hyper: PyTree) -> TrainState:
        return program.init(key, **hyper)

    def segment(learning: bool, state: TrainState, iterations: Array) -> SegmentResult:
        state, metrics = program.segment(state, iterations, learning)
        return SegmentResult(state, metrics, finite(state.agent))

    def evaluate(state: TrainState) -> Array:
        play = evaluator(program.env, program.agent, evaluation.episodes, evaluation.max_steps)
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), EVALUATION)
        returns = play(program.agent.policy(state.agent), jax.random.fold_in(key, state.iteration))
        return jnp.mean(returns)

    many = functools.partial(mapped, shared)
    by_learning = {
        learning: many(functools.partial(segment, learning), (0, None), long=True)
        for learning in (False, True)
    }
    return _Functions(
        init=jax.jit(many(start, (0, 0))),
        segments={name: jax.jit(fn, donate_argnums=0) for name, fn in by_learning.items()},
        evaluate=jax.jit(many(evaluate, (0,))),
    )


def sharing(key: Array, seeds: Mapping[str, Any]) -> Sharing:
    """Return arguments of `over_seeds` as a hashable value; None for a single key."""
    if number_of_seeds(key) is None:
        return None
    return tuple((name, _hashable(seeds[name])) for name in seeds)


def mapped(
    shared: Sharing,
    fn: Callable[..., PyTree],
    in_axes: tuple[int | None, ...],
    *,
    long: bool = False,
) -> Callable[..., PyTree]:
    """Map a function over the seeds that share devices so; return it unchanged for None."""
    return fn if shared is None else over_seeds(fn, in_axes=in_axes, long=long, **dict(shared))


def number_of_seeds(key: Array) -> int | None:
    """Return the length of the axis of seeds; None for a single key."""
    dtype = getattr(key, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key) or key.ndim > 1:
        raise TypeError(f"key must be jax.random.key(...), or an array [seeds] of them, got {key}")
    return None if key.ndim == 0 else key.shape[0]


def initial_state(
    program: Program, start: PyTree, hyper: Mapping[str, PyTree] | None
) -> TrainState:
    """Return `start` if it is a state, else initialise one from a key."""
    if isinstance(start, TrainState):
        if hyper:
            raise ValueError(f"hyper must be None where start is a state, got {hyper}")
        return start
    if number_of_seeds(start) is not None:
        raise ValueError(f"start must be a single key, got {start.shape} of them")
    given = dict(hyper or {})
    jax.eval_shape(lambda: program.init(start, **given))  # checks ranges, of known values
    return _init(program)(start, given)


@functools.lru_cache(maxsize=16)
def _init(program: Program) -> Callable[..., TrainState]:
    return jax.jit(lambda key, given: program.init(key, **given))


def as_arrays(hyper: Mapping[str, PyTree]) -> dict[str, Json]:
    """Convert hyper-parameters to NumPy arrays, in nested dicts."""
    return {
        name: as_arrays(value) if isinstance(value, Mapping) else np.asarray(value)
        for name, value in hyper.items()
    }


def _checked(program: Program, hyper: Mapping[str, PyTree], number: int | None) -> PyTree:
    """Check hyper-parameters and convert them to float32, [seeds] each where there are seeds."""
    given = as_arrays(hyper)
    shape = () if number is None else (number,)
    for path, leaf in jax.tree_util.tree_flatten_with_path(given)[0]:
        if leaf.shape not in ((), shape):
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            wanted = "a scalar" if number is None else f"a scalar or [{number}]"
            raise ValueError(f"{name} must be {wanted}, got shape {leaf.shape}")
    # `init` checks ranges of known values. Ranges are intervals: checking the extremes does.
    for extreme in (np.min, np.max):
        known = jax.tree.map(lambda leaf, extreme=extreme: extreme(leaf).item(), given)
        jax.eval_shape(lambda known=known: program.init(jax.random.key(0), **known))
    return jax.tree.map(lambda leaf: np.array(np.broadcast_to(leaf, shape), np.float32), given)


def _hashable(value: object) -> Any:
    return tuple(value) if isinstance(value, list) else value


def finite(tree: PyTree) -> Array:
    """Return whether all floats of a pytree are finite, [] bool."""
    floats = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in floats]))
