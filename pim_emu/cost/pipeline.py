"""Modelled cycles of tasklets that share a DPU's pipeline.

The pipeline issues one instruction per cycle, from the ready tasklets in turn. A tasklet is ready
again `reissue` cycles after its last instruction. While n tasklets have work left, a round of one
instruction each takes max(n, reissue) cycles. So t tasklets with equal loads take max(t, reissue)
cycles per instruction of each. With unequal loads the last ones run alone, at one instruction in
`reissue` cycles.
"""

import functools
import math

import numpy as np


def round_robin_cycles(loads: np.ndarray, reissue: int) -> float:
    """Return the cycles until all tasklets have finished.

    Args:
      loads: [..., t] instructions of each tasklet (or work items of equal cost; the result is then
        cycles per instruction of an item). Leading axes are phases, which are summed.
      reissue: cycles between two instructions of a tasklet.

    Returns:
      The sum over rounds of max(tasklets with work left, reissue): at least the instructions of
      all tasklets, and at least `reissue` times those of the busiest.
    """
    ordered = np.sort(np.asarray(loads), axis=-1)
    rounds = np.diff(ordered, axis=-1, prepend=0)
    active = np.arange(ordered.shape[-1], 0, -1)
    return float(np.sum(rounds * np.maximum(active, reissue)))


def share_cycles(items: int, tasklets: int, reissue: int) -> float:
    """Return cycles per instruction of an item, for items shared in runs of neighbours.

    Each tasklet takes ceil(items / tasklets) neighbours; the last ones may find fewer, or none.

    Args:
      items: number of items, at least 0.
      tasklets: number of tasklets.
      reissue: cycles between two instructions of a tasklet.
    """
    if items == 0:
        return 0.0
    most = -(-items // tasklets)
    full, rest = divmod(items, most)
    in_rest = max(full + 1, reissue) if rest else 0
    return rest * in_rest + (most - rest) * max(full, reissue)


@functools.lru_cache(maxsize=4096)
def random_cycles(items: int, tasklets: int, reissue: int) -> float:
    """Return the expected cycles per instruction of an item, for items with random owners.

    Each of the t tasklets owns an item with equal probability, so the loads are multinomial: t
    independent Poisson counts, given their sum. With N_w the number of tasklets with more than w
    items, the expectation is the sum over w of E[max(N_w, reissue); N_w > 0]. The distribution of
    N_w follows from the generating function (H_w + T_w)^t, where H_w and T_w are a count's
    generating function up to and beyond w.

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
