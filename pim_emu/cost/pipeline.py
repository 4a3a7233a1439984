"""Modelled cycles of tasklets that share a DPU's pipeline.

The pipeline issues one instruction per cycle and serves the tasklets that are ready in turn; a
tasklet is ready again `reissue` cycles after its last instruction. While n tasklets have work left,
a round of one instruction each takes max(n, reissue) cycles. So t tasklets with equal loads take
max(t, reissue) cycles per instruction of each; with unequal loads the last ones run alone, at one
instruction in `reissue` cycles.
"""

import functools
import math

import numpy as np

from pim_emu.arguments import whole
from pim_emu.machine import Machine, check_machine


def round_robin_cycles(loads: np.ndarray, reissue: int) -> float:
    """Cycles until all tasklets are done.

    Args:
      loads: [..., t] instructions of each tasklet (or work items, all of the same cost; the result
        is then cycles per instruction of an item). Leading axes are phases, which are summed.
      reissue: cycles between two instructions of a tasklet.

    Returns:
      The sum over rounds of max(tasklets with work left, reissue); never less than the
      instructions of all tasklets, nor than `reissue` times those of the busiest.
    """
    ordered = np.sort(np.asarray(loads), axis=-1)
    rounds = np.diff(ordered, axis=-1, prepend=0)
    active = np.arange(ordered.shape[-1], 0, -1)
    return float(np.sum(rounds * np.maximum(active, reissue)))


def owners(entries: np.ndarray, tasklets: int) -> np.ndarray:
    """The tasklets that apply updates of entries: `arl_owner` of kernels/common/share.h."""
    return (np.asarray(entries, np.int64) * 25 & 255) * tasklets >> 8


def share_cycles(items: int, tasklets: int, reissue: int) -> float:
    """Cycles per instruction of an item, for `items` shared as the kernel does.

    Each tasklet takes ceil(items / t) neighbours; those that come last may find fewer, or none.
    """
    if items == 0:
        return 0.0
    most = -(-items // tasklets)
    full, rest = divmod(items, most)
    in_rest = max(full + 1, reissue) if rest else 0
    return rest * in_rest + (most - rest) * max(full, reissue)


@functools.lru_cache(maxsize=4096)
def random_cycles(items: int, tasklets: int, reissue: int) -> float:
    """Expected cycles per instruction of an item, for items owned by tasklets at random.

    Each item falls on one of t tasklets with equal probability, so the loads are multinomial: t
    independent Poisson counts, given their sum. With N_w the number of tasklets with more than w
    items, the expectation is the sum over w of E[max(N_w, reissue); N_w > 0], and the distribution
    of N_w is read off the generating function (H_w + T_w)^t, H_w and T_w being a count's generating
    function up to and beyond w.

    Args:
      items: n, at least 0.
      tasklets: t.
      reissue: cycles between two instructions of a tasklet.

    Returns:
      The exact expectation, up to rounding.
    """
    if items == 0 or tasklets == 1:
        return float(items * max(tasklets, reissue))
    mean = items / tasklets
    # Counts beyond this have a probability below the rounding error.
    most = min(items, math.ceil(mean + 10 * math.sqrt(mean) + 30))
    counts = np.arange(most + 1)
    log_factorials = np.array([math.lgamma(count + 1) for count in counts])
    probability = np.exp(counts * math.log(mean) - mean - log_factorials)
    # Coefficients by a discrete Fourier transform, long enough that none wraps onto `items`.
    size = items + math.ceil(20 * math.sqrt(items)) + 64
    point = np.arange(size)
    terms = probability * np.exp(-2j * np.pi * (np.outer(point, counts) % size) / size)
    head = np.cumsum(terms, axis=1)  # [size, counts]
    tail = head[:, -1:] - head
    extract = np.exp(2j * np.pi * (point * items % size) / size) / size
    expected = 0.0
    for active in range(1, tasklets + 1):
        ways = math.comb(tasklets, active)
        of_w = extract @ (ways * head ** (tasklets - active) * tail**active)
        expected += max(active, reissue) * float(np.sum(of_w.real))
    sum_is_items = math.exp(items * math.log(items) - items - math.lgamma(items + 1))
    return expected / sum_is_items


def ownership_imbalance(
    machine: Machine, pairs: np.ndarray, tasklets: int, target_block: int
) -> float:
    """How much longer the apply phases of real rows take than with an even split.

    Args:
      machine: gives the reissue interval.
      pairs: int [n], s * A + a of a DPU's rows, in the order in which they are trained; `owners`
        says which tasklet owns a row.
      tasklets: t.
      target_block: B; the last block may be shorter.

    Returns:
      Cycles of all blocks' apply phases over those of an even split, at least 1: the `imbalance` of
      a `Workload`.

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
