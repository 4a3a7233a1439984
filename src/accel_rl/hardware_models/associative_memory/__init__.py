"""Model of AMPER's latency and energy on TCAM arrays; nothing here was run on such hardware.

A sampling draws a value in each group, searches the arrays, reads the matches out into a buffer
(the CSP) and draws the batch from it. Each of these is a stage, with a number of items, the time of
one item and the interval between two. `docs/am-hardware.md` states every equation and assumption.

Component figures are in `components.toml`, each with its unit, source, the document that we read,
condition and status. A figure that we did not find is absent: functions that need it raise, and
`Components.given` takes it from the caller. The statuses:

- `silicon`: measured on a chip, as published;
- `simulated`: from circuit simulation, as published;
- `tool`: a constant of a public program;
- `derived`: computed from figures of the source;
- `counted`: clock cycles, counted in a simulation of this library's RTL;
- `given`, `assumed`: from the caller, known or one of an assumed range.
"""

from accel_rl.hardware_models.associative_memory.components import (
    FILE_STATUSES,
    UNITS,
    Components,
    Figure,
    available_tcams,
    figures_table,
    load_components,
)
from accel_rl.hardware_models.associative_memory.design import OVERLAPS, VARIANTS, Design
from accel_rl.hardware_models.associative_memory.model import (
    ModelledSearch,
    modelled_sample,
    modelled_update,
)
from accel_rl.hardware_models.associative_memory.sweep import (
    Comparison,
    Point,
    compare_with_measured,
    sweep,
)

__all__ = [
    "FILE_STATUSES",
    "OVERLAPS",
    "UNITS",
    "VARIANTS",
    "Comparison",
    "Components",
    "Design",
    "Figure",
    "ModelledSearch",
    "Point",
    "available_tcams",
    "compare_with_measured",
    "figures_table",
    "load_components",
    "modelled_sample",
    "modelled_update",
    "sweep",
]
