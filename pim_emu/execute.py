"""Single runs of a DPU program, from arrays to arrays."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pim_emu.arguments import shown
from pim_emu.counters import Counters, SetCounters
from pim_emu.dpu_set import DpuSet
from pim_emu.program import DpuProgram
from pim_emu.symbols import read_layout, symbol_name


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """Outputs, logs and counters of a run; `result[symbol]` is `result.outputs[symbol]`.

    Attributes:
      outputs: gathered values [dpus, ...], by symbol.
      logs: output of each DPU.
      counters: counters of each DPU; cycles and instructions are modelled.
      totals: bytes transferred by the host, and modelled seconds.
    """

    outputs: dict[str, np.ndarray]
    logs: list[str]
    counters: list[Counters]
    totals: SetCounters

    def __getitem__(self, symbol: str) -> np.ndarray:
        return self.outputs[symbol]


def run(
    program: DpuProgram | str | Path,
    *,
    dpus: int = 1,
    broadcast: Mapping[str, Any] | None = None,
    scatter: Mapping[str, Any] | None = None,
    gather: Mapping[str, Any] | None = None,
    machine: str | None = None,
) -> Result:
    """Run a program once, on DPUs of its own.

    Args:
      program: what `build` returned, or the path of a program.
      dpus: how many.
      broadcast: values for all DPUs, by symbol; "heap" is the MRAM that no variable takes.
      scatter: values [dpus, ...], by symbol.
      gather: what to read afterwards, by symbol: (dtype, shape of one DPU's values), or a dtype
        alone for a single value.
      machine: name of the machine that is emulated, one of `available_machines()`.

    Raises:
      TypeError: an argument of another type, or values that C has no type for.
      ValueError: no DPU, an unknown machine, source code in the place of a program, or rows of
        `scatter` that are not one per DPU.
      EmulatorFault: a DPU stopped.
      DpuError: a symbol does not exist or values do not fit it; too many DPUs; the program cannot
        be loaded.
    """
    to_all, to_each = _by_symbol("broadcast", broadcast), _by_symbol("scatter", scatter)
    wanted = {
        symbol: _layout(symbol, entry) for symbol, entry in _by_symbol("gather", gather).items()
    }
    with DpuSet(dpus, machine=machine) as dpu_set:
        dpu_set.load(program)
        for symbol, values in to_all.items():
            dpu_set.broadcast(symbol, values)
        for symbol, values in to_each.items():
            dpu_set.scatter(symbol, values)
        dpu_set.launch()
        outputs = {
            symbol: dpu_set.gather(symbol, dtype, shape)
            for symbol, (dtype, shape) in wanted.items()
        }
        return Result(outputs, dpu_set.logs(), dpu_set.counters(), dpu_set.set_counters())


def _by_symbol(name: str, given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a dict by symbol, got {shown(given)}")
    for symbol in given:
        symbol_name(symbol)
    return given


def _layout(symbol: str, entry: Any) -> tuple[np.dtype, tuple[int, ...]]:
    if not isinstance(entry, tuple):
        return read_layout(symbol, entry, ())
    if len(entry) != 2:
        raise TypeError(
            f"gather[{symbol!r}] must be a dtype, or (dtype, shape of one DPU's values), got "
            f"{shown(entry)}"
        )
    return read_layout(symbol, *entry)
