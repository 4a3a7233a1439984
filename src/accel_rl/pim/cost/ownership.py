"""Cost of uneven ownership: tasklets apply the updates of the entries that they own."""

import numpy as np

from accel_rl.arguments import whole
from pim_emu.cost.pipeline import round_robin_cycles
from pim_emu.machine import Machine, check_machine


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

    Raises:
      TypeError: if it is no machine, the pairs are no integers, or a number is no int.
      ValueError: if there are no rows, or a number is below 1.
    """
    check_machine(machine)
    pairs = np.asarray(pairs)
    if pairs.size and not np.issubdtype(pairs.dtype, np.integer):
        raise TypeError(f"pairs must be of integers, got {pairs.dtype}")
    for name, value in (("tasklets", tasklets), ("target_block", target_block)):
        whole(name, value, 0)
    if pairs.ndim != 1 or not len(pairs) or tasklets < 1 or target_block < 1:
        raise ValueError(
            "pairs must be a non-empty vector, tasklets and target_block at least 1, got shape "
            f"{pairs.shape}, {tasklets} and {target_block}"
        )
    block = np.arange(len(pairs)) // target_block
    slots = (block[-1] + 1) * tasklets
    loads = np.bincount(block * tasklets + owners(pairs, tasklets), minlength=slots)
    cycles = round_robin_cycles(loads.reshape(-1, tasklets), machine.pipeline_reissue)
    even = len(pairs) * max(1.0, machine.pipeline_reissue / tasklets)
    return cycles / even
