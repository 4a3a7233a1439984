"""Running a DPU program once, from arrays to arrays."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pim_emu.dpu_set import Counters, DpuSet, SetCounters
from pim_emu.program import Program


@dataclasses.dataclass(frozen=True)
class Result:
    """What `run` found: values [dpus, ...] by symbol, logs and counters of each DPU."""

    outputs: dict[str, np.ndarray]
    logs: list[str]
    counters: list[Counters]
    totals: SetCounters

    def __getitem__(self, symbol: str) -> np.ndarray:
        return self.outputs[symbol]


def run(
    program: Program | str | Path,
    *,
    dpus: int = 1,
    broadcast: Mapping[str, Any] | None = None,
    scatter: Mapping[str, Any] | None = None,
    gather: Mapping[str, tuple[Any, tuple[int, ...] | int]] | None = None,
    machine: str | None = None,
) -> Result:
    """Run a program once, on DPUs of its own.

    Args:
      program: what `build` returned, or the path of a program.
      dpus: how many.
      broadcast: values for all DPUs, by symbol; "heap" is the MRAM that no variable takes.
      scatter: values [dpus, ...], by symbol.
      gather: what to read afterwards: (dtype, shape of one DPU's values), by symbol.
      machine: name of the machine that is emulated, one of `available_machines()`.

    Raises:
      ValueError: no DPU, or rows of `scatter` that are not one per DPU.
      DpuFault: a DPU stopped.
      DpuError: a symbol does not exist or values do not fit it; too many DPUs.
    """
    with DpuSet(dpus, program, machine) as dpu_set:
        for symbol, values in (broadcast or {}).items():
            dpu_set.broadcast(symbol, values)
        for symbol, values in (scatter or {}).items():
            dpu_set.scatter(symbol, values)
        dpu_set.launch()
        outputs = {
            symbol: dpu_set.gather(symbol, dtype, shape)
            for symbol, (dtype, shape) in (gather or {}).items()
        }
        return Result(outputs, dpu_set.logs(), dpu_set.counters(), dpu_set.set_counters())
