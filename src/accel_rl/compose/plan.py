"""Plans: estimates of all mappings of an experiment, and the best for its objective."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping as Table

from accel_rl.compose.candidates import Infeasible, alike, distinct, mappings_of, options
from accel_rl.compose.costs import Costs
from accel_rl.compose.devices import Device, find
from accel_rl.compose.mapping import EXECUTORS, Mapping
from accel_rl.compose.model import Estimate, estimate
from accel_rl.compose.objectives import joules_per_sample, seconds_per_sample, weighted
from accel_rl.compose.power import power_of
from accel_rl.compose.profile import Progress, profile
from accel_rl.compose.workload import workload_of
from accel_rl.experiment import Experiment
from accel_rl.hardware_models.energy import Power

# Shares by which objectives differ that are as good as equal: of joules beside them, and where none
# are known of times, which in repeated runs of one mapping differ by as much.
TIE, TIE_OF_TIMES = 0.01, 0.05


@dataclasses.dataclass(frozen=True)
class Plan:
    """Estimates of an experiment's mappings, best first, with the costs behind them."""

    experiment: Experiment
    costs: Costs
    estimates: tuple[Estimate, ...]  # by objective, best first; like devices count once
    refused: Table[str, Table[str, str]]  # role -> device -> reason
    power: Table[str, Power]  # of all devices, behind the joules; empty if some are unknown

    @property
    def best(self) -> Estimate:
        """Estimate of the mapping to run."""
        return self.estimates[0]


def plan(
    experiment: Experiment,
    *,
    devices: Table[str, Device] | None = None,
    costs: Costs | None = None,
    executors: tuple[str, ...] = EXECUTORS,
    seconds: float = 0.15,
    progress: Progress | None = None,
) -> Plan:
    """Profile what is not known yet, estimate mappings and choose one.

    Args:
      experiment: training, devices and objective.
      devices: by name, custom ones included; those of `compose.devices` if None.
      costs: known costs, such as those of `cache.load`.
      executors: those to choose from. The asynchronous one is left out if the schedule
        allows no staleness.
      seconds: of each measurement.
      progress: see `profile`.

    Raises:
      Infeasible: if no mapping is possible; the message has the reasons.
    """
    wanted = experiment.configuration.compose
    devices = find(wanted.devices) if devices is None else devices
    offered, refused = options(experiment, devices, executors)
    every = list(mappings_of(offered, devices))
    if not every:
        raise Infeasible({role: refused.get(role, {}) for role in offered if not offered[role]})
    power = power_of(wanted, devices)  # refuses before minutes of measuring
    known = profile(
        experiment,
        devices,
        distinct(every, alike(devices)),
        known=costs,
        seconds=seconds,
        progress=progress,
    )
    # Profiling visits each of these mappings too, and takes far longer: no search would save time.
    choices = distinct(every, alike(devices, wanted.power))
    estimates = ranked(experiment, choices, known, devices)
    return Plan(experiment, known, estimates, refused, power or {})


def ranked(
    experiment: Experiment, mappings: Iterable[Mapping], costs: Costs, devices: Table[str, Device]
) -> tuple[Estimate, ...]:
    """Estimate mappings; return the best first by the experiment's objective.

    Where joules are known, the least come first among those that are as good within 1 %; where not,
    the fewest devices, and the fused program, among those within 5 %.
    """
    wanted, schedule = experiment.configuration.compose, experiment.program.schedule
    samples, watts = workload_of(experiment).trained_samples, power_of(wanted, devices)
    cost = {
        "throughput": seconds_per_sample,
        "efficiency": joules_per_sample,
        "weighted": weighted(wanted.weight),
    }[wanted.objective]
    found = sorted((estimate(e, costs, schedule, samples, watts) for e in mappings), key=cost)
    share, preferred = (TIE_OF_TIMES, _parts) if watts is None else (TIE, joules_per_sample)
    ties = sum(cost(each) <= cost(found[0]) * (1 + share) for each in found)
    found[:ties] = sorted(found[:ties], key=preferred)
    return tuple(found)


def _parts(estimate: Estimate) -> tuple[int, bool]:
    """Return how much a mapping hands from one device or thread to another, as an order."""
    return len(estimate.mapping.devices), estimate.mapping.executor != "fused"
