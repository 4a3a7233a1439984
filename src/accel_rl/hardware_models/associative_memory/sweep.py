"""Sweeps over designs, and modelled latencies beside measured ones."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from accel_rl.arguments import one_of, within
from accel_rl.hardware_models.associative_memory.components import Components
from accel_rl.hardware_models.associative_memory.design import Design
from accel_rl.hardware_models.associative_memory.model import ModelledSearch, modelled_sample


@dataclasses.dataclass(frozen=True)
class Point:
    """Point of a sweep: varied fields of the design, assumed figures, and the result."""

    fields: Mapping[str, Any]
    assumed_range: Mapping[str, float]
    modelled: ModelledSearch


def sweep(
    design: Design,
    components: Components,
    *,
    fields: Mapping[str, Sequence[Any]] | None = None,
    assumed_ranges: Mapping[str, Sequence[float]] | None = None,
    energy: bool = True,
) -> list[Point]:
    """Model samplings over all combinations of designs and of unknown figures.

    Args:
      design: fields that are not varied.
      components: from `load_components`.
      fields: values of fields of `Design`, by name.
      assumed_ranges: values of figures, by name; each result names those that it assumes.
      energy: as for `modelled_sample`.
    """
    return [
        Point(
            field,
            figure,
            modelled_sample(
                dataclasses.replace(design, **field),
                components.given(assumed=True, **figure),
                energy=energy,
            ),
        )
        for field in _grid(fields or {})
        for figure in _grid(assumed_ranges or {})
    ]


def _grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Modelled latency beside a measured one, never a measured speed-up.

    Attributes:
      label: names of the two sides.
      platform: platform on which PER was measured.
      modelled_latency_ns: ns of the modelled sampling.
      measured_per_latency_ns: ns of the measured sampling of PER.
      measured_over_modelled: measured latency over modelled latency.
    """

    label: str
    platform: str
    modelled_latency_ns: float
    measured_per_latency_ns: float
    measured_over_modelled: float


def compare_with_measured(
    modelled: ModelledSearch, measured_per_seconds: float, platform: str
) -> Comparison:
    """Compare a modelled sampling with a sampling of PER that the caller measured.

    Args:
      modelled: from `modelled_sample`, for the same capacity and batch.
      measured_per_seconds: seconds of one sampling, without its gather of transitions, above 0.
      platform: name of the machine, and of what ran on it.
    """
    one_of("modelled.operation", modelled.operation, ("sample",))
    within("measured_per_seconds", measured_per_seconds, "(0, inf)")
    measured_ns = measured_per_seconds * 1e9
    return Comparison(
        label=f"modelled AMPER on {modelled.tcam} versus PER measured on {platform}",
        platform=platform,
        modelled_latency_ns=modelled.modelled_latency_ns,
        measured_per_latency_ns=measured_ns,
        measured_over_modelled=measured_ns / modelled.modelled_latency_ns,
    )
