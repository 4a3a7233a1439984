"""Segments by other executors, or in host environments, for `train.run`."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.envs import HostEnvironment
from accel_rl.train.compiled import EVALUATION, CompiledProgram, SegmentResult, finite
from accel_rl.train.evaluate import Evaluation
from accel_rl.train.host_evaluate import host_evaluator
from accel_rl.train.host_segment import host_segment
from accel_rl.train.pipeline.executor import pipelined
from accel_rl.train.program import Program
from accel_rl.train.state import TrainState
from accel_rl.types import Array, PyTree

EXECUTORS = ("fused", "deterministic", "asynchronous")


def with_executor(
    compiled: CompiledProgram,
    program: Program,
    key: Array,
    seeds: Mapping[str, Any],
    executor: str,
    env: HostEnvironment | None,
    scored: HostEnvironment | None,
    evaluation: Evaluation,
) -> CompiledProgram:
    """Replace the segments and the evaluation of a compiled program.

    Args:
      compiled: of the program.
      program: that is trained.
      key: PRNG key, or [seeds] of them, for "fused" alone.
      seeds: arguments of `over_seeds`; only read where there are several keys.
      executor: "fused", "deterministic" or "asynchronous".
      env: host environments to train in, whose episodes go on from segment to segment.
      scored: host environments to evaluate in; None without `env`.
      evaluation: episodes of `evaluate`.
    """
    if executor != "fused":
        compiled = compiled._replace(segment=_pipelined(program, executor, env))
    elif env is not None:
        compiled = compiled._replace(segment=host_segment(program, env, key, seeds))
    if scored is None:
        return compiled
    play = host_evaluator(scored, program.agent, evaluation.episodes, evaluation.max_steps)

    def one(key: Array, iteration: Array, agent: PyTree) -> np.float32:
        key = jax.random.fold_in(jax.random.wrap_key_data(key), EVALUATION)
        bits = jax.random.bits(jax.random.fold_in(key, iteration), (), jnp.uint32)
        return play(program.agent.policy(agent), int(bits) >> 2).mean()

    def evaluate(state: TrainState) -> Array:
        trained = state.key, state.iteration, state.agent
        if key.ndim == 0:
            return jnp.asarray(one(*trained))
        # One after the other: each plays in all environments.
        each = (jax.tree.map(lambda leaf, n=n: leaf[n], trained) for n in range(len(key)))
        return jnp.asarray([one(*training) for training in each])

    return compiled._replace(evaluate=evaluate)


def _pipelined(
    program: Program, executor: str, env: HostEnvironment | None
) -> Callable[[TrainState, int, bool], SegmentResult]:
    def segment(state: TrainState, iterations: int, learning: bool) -> SegmentResult:
        steps = (int(state.iteration) + iterations) * program.schedule.steps
        result = pipelined(
            program,
            state,
            steps,
            executor=executor,
            period=steps,
            env=env,
            continue_episodes=True,
            warn=False,  # `train.run` does, once for all segments
        )
        metrics: PyTree = {
            name: np.asarray(value) for name, value in result.rows[-1].items() if name != "seconds"
        }
        return SegmentResult(result.state, metrics, finite(result.state.agent))

    return segment
