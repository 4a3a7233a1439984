"""Trials: a mapping runs for a moment, and what it takes corrects what was predicted."""

import dataclasses
from collections.abc import Mapping as Table
from typing import NamedTuple

import jax

from accel_rl.compose.costs import Costs
from accel_rl.compose.devices import Device
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.model import estimate
from accel_rl.compose.run import run
from accel_rl.experiment import Experiment

ROWS = 10  # of a trial; the first with updates is left out
ERROR = 0.25  # share of the prediction within which a run confirms it
SPREADS = 2.0  # or so many times the run's own spread


class Trial(NamedTuple):
    """Measured iteration of a mapping that ran for a moment."""

    seconds: float  # of an iteration, median over rows
    spread: float  # interquartile range over rows
    ratio: float  # of `seconds` to what its costs alone predict


def trial(
    experiment: Experiment,
    devices: Table[str, Device],
    mapping: Mapping,
    costs: Costs,
    seconds: float,
) -> Trial:
    """Run an executable mapping, `seconds` a row or so.

    Raises:
      KeyboardInterrupt: if it was interrupted.
      RuntimeError: if it ended early otherwise: no time of it is known.
    """
    config, schedule = experiment.configuration, experiment.program.schedule
    bare = dataclasses.replace(costs, stretch={}, trials={})
    predicted = estimate(mapping, bare, schedule, 1).seconds
    # Learning starts as early as possible, because rows before it are not used.
    batch_size = experiment.program.require_replay().parts[0].batch_size
    batches = -(-batch_size // schedule.steps)
    start = schedule.steps * (config.replay.n_step + batches + 1)
    early = min(config.schedule.learning_starts, start)
    short = experiment.with_settings({"schedule.learning_starts": early})
    period = max(2, int(seconds / predicted)) * schedule.steps
    steps = short.program.schedule.warmup * schedule.steps + ROWS * period
    ran = run(short, mapping, jax.random.key(0), steps, devices=devices, period=period)
    if ran.ended == "interrupted":
        raise KeyboardInterrupt
    if ran.ended != "done":
        raise RuntimeError(f"a trial of {mapping} ended: {ran.ended}")
    return Trial(ran.seconds, ran.spread, ran.seconds / predicted)


def agree(predicted: float, measured: float, spread: float) -> bool:
    """Return True if a run confirms a prediction: within 25 %, or twice the run's spread."""
    return abs(measured - predicted) <= max(ERROR * predicted, SPREADS * spread)
