"""Plans whose best mapping has run: its time is measured, not predicted alone."""

import dataclasses
from collections.abc import Mapping as Table
from typing import NamedTuple

from accel_rl.compose.costs import trial_key
from accel_rl.compose.devices import Device, find
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.placing import stand_ins
from accel_rl.compose.plan import Plan, ranked
from accel_rl.compose.trials import agree, trial


class Surprise(NamedTuple):
    """Mapping whose run did not confirm its prediction; seconds of an iteration."""

    mapping: Mapping
    predicted: float
    measured: float

    def __str__(self) -> str:
        """Return a description in one line."""
        predicted, measured = (f"{each * 1e6:,.0f} us" for each in self[1:])
        return f"{self.mapping} takes {measured} an iteration where {predicted} were predicted"


def confirm(
    found: Plan, *, devices: Table[str, Device] | None = None, seconds: float = 0.15
) -> tuple[Plan, list[Surprise]]:
    """Run the best mapping for a moment, and choose anew, until the best is one that has run.

    Args:
      found: plan. A best mapping with a modelled device cannot run, and is believed.
      devices: as for `plan`.
      seconds: of a row of a trial, which has ten.

    Returns:
      The plan, and the mappings that did not take the time that was predicted. Many of them, or one
      that had a trial before, mean that the costs are of another time: profile again.
    """
    experiment, surprises, tried = found.experiment, [], set()
    if devices is None:
        devices = find(experiment.configuration.compose.devices)
    while stand_ins(found.best.mapping, devices) == found.best.mapping:
        mapping, predicted = found.best.mapping, found.best.seconds
        key = trial_key(mapping, found.costs.alike)
        if key in tried:
            break
        tried.add(key)
        ran = trial(experiment, devices, mapping, found.costs, seconds)
        if not agree(predicted, ran.seconds, ran.spread):
            surprises.append(Surprise(mapping, predicted, ran.seconds))
        costs = dataclasses.replace(found.costs, trials={**found.costs.trials, key: ran.ratio})
        every = [each.mapping for each in found.estimates]
        best_first = ranked(experiment, every, costs, devices)
        found = dataclasses.replace(found, costs=costs, estimates=best_first)
    return found, surprises
