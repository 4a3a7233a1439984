"""Launches of DPUs that compute, in processes of their own with a number of workers each."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Self

import numpy as np
from common import System

import pim_emu

STEPS = 3000  # of a tasklet: a launch of a whole machine takes a tenth of a second
XORSHIFT = """
#include <defs.h>
#include <stdint.h>

__host uint32_t steps;
__host uint32_t result[NR_TASKLETS];

int main(void) {
    uint32_t x = me() + 1;
    for (uint32_t i = 0; i < steps; ++i) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    result[me()] = x;
    return 0;
}
"""


class Launches:
    """DPUs in a process of their own: the emulator settles its workers once in a process.

    Args:
      dpus: how many.
      tasklets: of the program.
      workers: threads of the host that emulate DPUs.
    """

    def __init__(self, dpus: int, tasklets: int, workers: int) -> None:
        self._process = ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), _load, (dpus, tasklets, workers)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.shutdown()

    def __call__(self) -> None:
        """Launch once."""
        self.seconds(1)

    def seconds(self, repeats: int) -> tuple[float, float]:
        """CPU and wall seconds of a launch, the mean over repeats."""
        return self._process.submit(_launch, repeats).result()

    def results(self) -> np.ndarray:
        """(dpus, 2) uint32 that the first two tasklets computed in the last launch."""
        return self._process.submit(_results).result()


_loaded: list[pim_emu.DpuSet] = []  # in the process of `Launches`


def _load(dpus: int, tasklets: int, workers: int) -> None:
    os.environ["PIM_EMU_WORKERS"] = str(workers)
    dpu_set = pim_emu.DpuSet(dpus, pim_emu.build(XORSHIFT, tasklets=tasklets))
    dpu_set.broadcast("steps", np.uint32(STEPS))
    _loaded.append(dpu_set)


def _launch(repeats: int) -> tuple[float, float]:
    return System(_loaded[0].launch, 1).seconds(repeats)


def _results() -> np.ndarray:
    return _loaded[0].gather("result", np.uint32, 2)
