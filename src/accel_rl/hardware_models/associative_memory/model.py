"""Model of stages, each with a number of items, the time of one and the interval between two."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence

from accel_rl.hardware_models.associative_memory.components import Components
from accel_rl.hardware_models.associative_memory.design import VARIANTS, Design


@dataclasses.dataclass(frozen=True)
class ModelledSearch:
    """Modelled latency and energy of one operation, not measured.

    Attributes:
      operation: "sample" or "update".
      tcam: the kind of array.
      overlap: overlap of the stages: the design's, or "clocked" for that of the RTL.
      modelled_latency_by_stage_ns: ns that each stage adds; they sum to the latency. If stages
        overlap, the slowest one adds its whole time, and each other stage the time of one item.
      modelled_busy_by_stage_ns: ns that each stage works, overlapped or not.
      modelled_energy_by_stage_pj: pJ, dynamic only; None if not requested.
    """

    operation: str
    tcam: str
    overlap: str
    modelled_latency_by_stage_ns: Mapping[str, float]
    modelled_busy_by_stage_ns: Mapping[str, float]
    modelled_energy_by_stage_pj: Mapping[str, float] | None

    @property
    def modelled_latency_ns(self) -> float:
        """Latency of the whole operation in ns."""
        return math.fsum(self.modelled_latency_by_stage_ns.values())

    @property
    def modelled_energy_pj(self) -> float | None:
        """Energy of the whole operation in pJ; None if not requested."""
        by_stage = self.modelled_energy_by_stage_pj
        return None if by_stage is None else math.fsum(by_stage.values())


@dataclasses.dataclass(frozen=True)
class _Stage:
    """Items that pass a stage: ns of one, ns between two of them, and pJ of all."""

    name: str
    items: int
    item_ns: float
    interval_ns: float
    energy_pj: float


def modelled_sample(
    design: Design, components: Components, *, energy: bool = True
) -> ModelledSearch:
    """Model the sampling of one batch.

    Args:
      design: arrays, method and batch.
      components: from `load_components`.
      energy: False to model only the latency, if energies are not known. Clocked components have
        no energies, and one port.
    """
    c = components
    if c.clocked:
        _check_clocked(design, c, energy)
        searches = _clocked("search", design.searches, c)
        readout = _clocked("readout", design.candidates, c)
        draws = _clocked("draw", design.batch_size, c)
        return _modelled("sample", design, c, ([searches], [readout], [draws]), energy)
    price = c.__getitem__ if energy else _free
    values = design.groups * (2 if design.variant == "fr_dithered" else 1)
    index_bits = max(1, (design.candidates - 1).bit_length())
    rows = design.arrays * design.rows_per_array
    hops = 1 + design.levels
    turns = -(-design.candidates // design.csp_ports)

    form = c["adder_delay"] + c["encoder_delay"] + c["register_delay"]
    form_pj = price("adder_energy") + price("encoder_energy") + price("register_energy")
    cycle = max(c["search_delay"], c["search_cycle"] if "search_cycle" in c.figures else 0.0)
    search_pj = rows * design.key_bits * 1e-3 * price("search_energy")
    search_pj += design.arrays * price("interconnect_energy")
    add_levels = (rows - 1).bit_length()
    read = c["encoder_delay"] + c["register_delay"]
    read_pj = price("encoder_energy") + price("register_energy")
    buffer = c["buffer_cycle"]

    def drawn(name: str, items: int, bits: int) -> _Stage:
        each = bits / c["random_rate"]
        return _Stage(name, items, each, each, items * bits * price("random_energy"))

    select = [
        drawn("group_draw", values, design.key_bits),
        _Stage("query", design.searches, form, form, design.searches * form_pj),
        _Stage(
            "search",
            design.searches,
            cycle + hops * c["interconnect_delay"],
            cycle,
            design.searches * search_pj,
        ),
        _Stage(
            "count",
            design.counts,
            add_levels * c["adder_delay"],
            add_levels * c["adder_delay"],
            design.counts * (rows - 1) * price("adder_energy"),
        ),
        _Stage("readout", turns, hops * read, read, design.candidates * hops * read_pj),
        _Stage(
            "buffer_write", turns, buffer, buffer, design.candidates * price("buffer_write_energy")
        ),
    ]
    pick = [
        drawn("batch_draw", design.batch_size, index_bits),
        _Stage(
            "buffer_read",
            design.batch_size,
            buffer,
            buffer,
            design.batch_size * price("buffer_read_energy"),
        ),
    ]
    # The draw needs the size of the candidate set, so the two phases never overlap.
    return _modelled("sample", design, components, (select, pick), energy)


def modelled_update(
    design: Design, components: Components, *, energy: bool = True
) -> ModelledSearch:
    """Model the write of a batch of priorities; arguments are as for `modelled_sample`.

    Args:
      design: arrays, method and batch.
      components: from `load_components`.
      energy: False to model only the latency, if energies are not known.
    """
    c = components
    if c.clocked:
        _check_clocked(design, c, energy)
        writes = _clocked("write", design.batch_size, c)
        return _modelled("update", design, c, ([writes],), energy)
    price = c.__getitem__ if energy else _free
    turns = -(-design.batch_size // design.write_ports)
    hops = 1 + design.levels
    reach = c["decoder_delay"] + hops * c["interconnect_delay"]
    reach_pj = price("decoder_energy") + hops * price("interconnect_energy")
    row_pj = design.key_bits * 1e-3 * price("write_energy")
    stages = [
        _Stage("address", turns, reach, reach, design.batch_size * reach_pj),
        _Stage("write", turns, c["write_delay"], c["write_delay"], design.batch_size * row_pj),
    ]
    return _modelled("update", design, components, (stages,), energy)


def _clocked(name: str, items: int, components: Components) -> _Stage:
    """Return a phase of the RTL: it takes one item in each clock, and the next phase follows it."""
    clock = components["clock_period"]
    return _Stage(name, items, components[f"{name}_cycles"] * clock, clock, 0.0)


def _check_clocked(design: Design, components: Components, energy: bool) -> None:
    ports = (design.csp_ports, design.write_ports)
    if energy or not design.variant.startswith("fr_") or ports != (1, 1):
        known = ", ".join(variant for variant in VARIANTS if variant.startswith("fr_"))
        raise ValueError(
            f"the RTL of {components.tcam!r} has cycles, but no energies: energy must be False, "
            f"variant one of {known}, csp_ports and write_ports 1, got {energy}, "
            f"{design.variant!r}, {ports[0]} and {ports[1]}"
        )


def _free(name: str) -> float:
    return 0.0


def _modelled(
    operation: str,
    design: Design,
    components: Components,
    phases: Sequence[Sequence[_Stage]],
    energy: bool,
) -> ModelledSearch:
    latency: dict[str, float] = {}
    overlap = "clocked" if components.clocked else design.overlap
    for phase in phases:
        used = [stage for stage in phase if stage.items]
        latency |= {stage.name: 0.0 for stage in phase}
        if overlap == "serial":
            latency |= {stage.name: stage.items * stage.item_ns for stage in used}
        else:
            waits = {stage.name: (stage.items - 1) * stage.interval_ns for stage in used}
            slowest = max(waits, key=waits.__getitem__)
            latency |= {stage.name: stage.item_ns for stage in used}
            latency[slowest] += waits[slowest]
    stages = list(itertools.chain.from_iterable(phases))
    return ModelledSearch(
        operation=operation,
        tcam=components.tcam,
        overlap=overlap,
        modelled_latency_by_stage_ns=latency,
        modelled_busy_by_stage_ns={s.name: s.items * s.interval_ns for s in stages},
        modelled_energy_by_stage_pj={s.name: s.energy_pj for s in stages} if energy else None,
    )
