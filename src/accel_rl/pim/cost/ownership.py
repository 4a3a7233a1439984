"""Cost of uneven ownership: tasklets apply the updates of the entries that they own."""

import numpy as np

from accel_rl.arguments import whole
from pim_emu.cost.pipeline import round_robin_cycles
from pim_emu.machine import Machine


def owners(entries: np.ndarray, tasklets: int) -> np.ndarray:
    """Return the tasklets that apply updates of entries: `arl_owner` of kernels/common/share.h."""
    return (np.asarray(entries, np.int64) * 25 & 255) * tasklets >> 8


def ownership_imbalance(
    machine: Machine, pairs: np.ndarray, tasklets: int, target_block: int
) -> float:
    """Return the time of the apply phases over that of an even split.

    Args:
      machine: gives the reissue interval.
      pairs: int [n], s * A + a of a DPU's rows, in the order in which they are trained; `owners`
        says which tasklet owns a row.
      tasklets: t.
      target_block: B; the last block may be shorter.

    Returns:
      Cycles of all blocks' apply phases over those of an even split, at least 1: the `imbalance` of
      a `DpuWorkload`.
    """
    pairs = np.asarray(pairs)
    if pairs.ndim != 1 or not len(pairs) or not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"pairs must be int [n], n at least 1, got {pairs.dtype} {pairs.shape}")
    whole("tasklets", tasklets, 1)
    whole("target_block", target_block, 1)
    block = np.arange(len(pairs)) // target_block
    slots = (block[-1] + 1) * tasklets
    loads = np.bincount(block * tasklets + owners(pairs, tasklets), minlength=slots)
    cycles = round_robin_cycles(loads.reshape(-1, tasklets), machine.pipeline_reissue)
    even = len(pairs) * max(1.0, machine.pipeline_reissue / tasklets)
    return cycles / even
