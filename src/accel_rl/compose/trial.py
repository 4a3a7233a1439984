"""Trials: measured over simulated iteration time of a mapping."""

import dataclasses
from collections.abc import Mapping as Table

import jax

from accel_rl.compose import spec as specs
from accel_rl.compose.costs import Costs
from accel_rl.compose.devices import Device
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.model import estimate
from accel_rl.compose.run import run
from accel_rl.compose.spec import Spec

ROWS = 10  # of a trial; the first with updates is left out


def trial(
    spec: Spec, devices: Table[str, Device], mapping: Mapping, costs: Costs, seconds: float
) -> float:
    """Run a mapping, `seconds` a row or so; return measured over simulated iteration time."""
    schedule = specs.schedule(spec)
    bare = dataclasses.replace(costs, stretch={}, trials={})
    simulated = estimate(mapping, bare, schedule, 1).seconds
    # Learning starts as early as possible, because rows before it are not used.
    start = schedule.steps * (spec.n_step + -(-spec.batch_size // schedule.steps) + 1)
    short = dataclasses.replace(spec, learning_starts=min(spec.learning_starts, start))
    period = max(2, int(seconds / simulated)) * schedule.steps
    steps = specs.schedule(short).warmup * schedule.steps + ROWS * period
    ran = run(short, mapping, jax.random.key(0), steps, devices=devices, period=period)
    return ran.seconds / simulated
