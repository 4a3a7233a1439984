"""What counts as better: trained samples a second, a joule, or both."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar


class Estimate(Protocol):
    """What objectives read off an estimate, such as `model.Estimate`."""

    @property
    def seconds(self) -> float:
        """Of an iteration."""

    @property
    def joules(self) -> float | None:
        """Of an iteration; None where unknown."""

    @property
    def samples(self) -> int:
        """Trained in an iteration."""


AnyEstimate = TypeVar("AnyEstimate", bound=Estimate)


def throughput(estimate: Estimate) -> float:
    """Seconds per trained sample, to be minimised: the inverse of PEARL's throughput."""
    return estimate.seconds / estimate.samples


def efficiency(estimate: Estimate) -> float:
    """Joules per trained sample, to be minimised: the inverse of samples per joule.

    Raises:
      ValueError: if the joules are unknown.
    """
    if estimate.joules is None:
        raise ValueError("joules must be known to compare efficiency, got None: state the power")
    return estimate.joules / estimate.samples


def weighted(weight: float) -> Callable[[Estimate], float]:
    """The geometric mean throughput^(1 - weight) efficiency^weight, to be minimised.

    Its order of mappings is the same in any unit of time and of energy. Powers round: a bound
    computed with it should be lowered by a part in 1e15.

    Args:
      weight: 0 is `throughput` alone, 1 is `efficiency` alone.

    Raises:
      ValueError: if `weight` is outside 0 and 1.
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must lie within 0 and 1, got {weight}")
    if weight == 0:
        return throughput  # asks for no joules
    return lambda e: throughput(e) ** (1 - weight) * efficiency(e) ** weight


def pareto(estimates: Sequence[AnyEstimate]) -> list[AnyEstimate]:
    """Those that no other one beats in seconds or joules per sample while matching the other.

    Args:
      estimates: with joules per sample that are known.

    Returns:
      in the order given; of equals the first.

    Raises:
      TypeError: if one is no estimate.
      ValueError: if the joules of one are unknown.
    """
    for each in estimates:
        if not all(hasattr(each, name) for name in ("seconds", "joules", "samples")):
            raise TypeError(f"each of estimates must be an Estimate, got {each!r}")
    points = [(throughput(e), efficiency(e), index) for index, e in enumerate(estimates)]
    kept: list[tuple[float, float, int]] = []
    for point in sorted(points):  # so a later one must need fewer joules
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return [estimates[index] for index in sorted(index for _, _, index in kept)]
