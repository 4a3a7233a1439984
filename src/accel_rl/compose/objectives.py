"""Objectives: trained samples per second, per joule, or a weighted mean of both."""

from collections.abc import Callable, Sequence

from accel_rl.arguments import within
from accel_rl.compose.model import Estimate


def seconds_per_sample(estimate: Estimate) -> float:
    """Return seconds per trained sample, to be minimised: the inverse of PEARL's throughput."""
    return estimate.seconds / estimate.samples


def joules_per_sample(estimate: Estimate) -> float:
    """Return joules per trained sample, to be minimised: the inverse of samples per joule."""
    if estimate.joules is None:
        raise ValueError("joules must be known to compare efficiency, got None: state the power")
    return estimate.joules / estimate.samples


def weighted(weight: float) -> Callable[[Estimate], float]:
    """Return the geometric mean throughput^(1 - weight) efficiency^weight, to be minimised.

    It ranks mappings the same in any unit of time and of energy.

    Args:
      weight: 0 is `throughput` alone, 1 is `efficiency` alone.
    """
    within("weight", weight, "[0, 1]")
    if weight == 0:
        return seconds_per_sample  # needs no joules
    return lambda e: seconds_per_sample(e) ** (1 - weight) * joules_per_sample(e) ** weight


def pareto(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return the Pareto-optimal estimates in seconds and joules per sample.

    Args:
      estimates: with known joules.

    Returns:
      The optimal estimates in the order given; the first of equal ones.
    """
    points = [
        (seconds_per_sample(e), joules_per_sample(e), index) for index, e in enumerate(estimates)
    ]
    kept: list[tuple[float, float, int]] = []
    for point in sorted(points):  # so a later one must need fewer joules
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return [estimates[index] for index in sorted(index for _, _, index in kept)]
