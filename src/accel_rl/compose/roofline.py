"""Roofline data: FLOP and bytes of steps as XLA counts them, and peak rates of a device."""

from collections.abc import Mapping as Table
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.compose import timing
from accel_rl.compose.costs import Costs
from accel_rl.compose.mapping import Mapping
from accel_rl.io.values import Json
from accel_rl.train import Program
from accel_rl.types import PyTree


class Counted(NamedTuple):
    """FLOP and bytes of one call of a step, from XLA's cost analysis of the compiled function."""

    flops: float
    bytes: float


class Peaks(NamedTuple):
    """Measured peak rates of a device."""

    flops: float  # FLOP per second, of a product of float32 matrices
    bandwidth: float  # bytes per second, of an elementwise sum of arrays that fit no cache


def counted(program: Program, hyper: Table[str, Json]) -> dict[str, Counted]:
    """Count FLOP and bytes of `collect`, `sample`, `update` and `learn`; C kernels count 0."""
    state = jax.eval_shape(lambda: program.init(jax.random.key(0), **hyper))
    replay, agent = program.require_replay(), program.agent
    key = jax.random.key(0)

    def collect(actor: PyTree, policy: PyTree) -> Any:
        return program.collect(actor, policy, program.keys(jax.random.key_data(key), 0).collect, 0)

    def sample(buffer: PyTree) -> Any:
        return replay.sample(buffer, key, 0.5, 0.99)

    def update(buffer: PyTree, drawn: PyTree, priorities: PyTree) -> Any:
        return replay.update(buffer, drawn, priorities)

    def learn(learner: Any, drawn: PyTree) -> Any:
        return agent.learn(learner, drawn.batch, drawn.weights, key)

    drawn = jax.eval_shape(sample, state.replay)
    policy = jax.eval_shape(agent.policy, state.agent)
    return {
        "collect": _count(collect, state.actor, policy),
        "sample": _count(sample, state.replay),
        "update": _count(update, state.replay, drawn, drawn.weights),
        "learn": _count(learn, state.agent, drawn),
    }


def reached(
    device: str, counts: Table[str, Counted], costs: Costs
) -> dict[str, tuple[float, float]]:
    """Return FLOP per byte and FLOP per second of steps measured with all roles on one device.

    Steps on other devices, or with transfers from them, are not bounded by this device's roof.
    Counts are of single updates; a measured step may be of a group, see `Costs.group`.
    """
    alone = Mapping("deterministic", device, device, device, (device,))
    points = {}
    for step, count in counts.items():
        cost = costs.steps.get(costs.key(alone, step))
        if cost is None or cost.source != "measured" or not count.bytes:
            continue
        if costs.group is not None and step == "update":
            continue  # grouped updates have no priority update
        times = (costs.group or 1) if step in ("sample", "learn") else 1
        points[step] = count.flops / count.bytes, times * count.flops / cost.seconds
    return points


def peaks(device: jax.Device) -> Peaks:
    """Measure the peak rates of a device; takes about a second."""
    size, length = 1024, 1 << 25
    left = jax.device_put(np.ones((size, size), np.float32), device)
    long = jax.device_put(np.ones(length, np.float32), device)
    multiply, add = jax.jit(jnp.matmul), jax.jit(lambda x: x + np.float32(1))
    product = timing.alone(lambda: multiply(left, left).block_until_ready(), 0.5).median
    moved = timing.alone(lambda: add(long).block_until_ready(), 0.5).median
    return Peaks(2 * size**3 / product, 2 * 4 * length / moved)


def _count(fn: Any, *arguments: object) -> Counted:
    analysis = jax.jit(fn).lower(*arguments).compile().cost_analysis() or {}
    return Counted(analysis.get("flops", 0.0), analysis.get("bytes accessed", 0.0))
