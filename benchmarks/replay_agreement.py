"""Whether systems draw from the same distribution: nothing may be claimed of any that does not."""

import numpy as np
from replay_calls import Caller, Draws
from replay_memories import ALPHA, Problem

CLASSES = 8  # of items by priority, each with the same part of all draws
DRAWS = 12_800
SIGMAS = 6.0
TOLERANCE = 1e-3  # relative, of probabilities: float32 sums


def check_agreement(problem: Problem, callers: dict[str, Caller]) -> None:
    """Draw from each system that was not seen yet, and compare with p^alpha over its sum.

    Raises:
      RuntimeError: if a system's draws, what it gathers or its probabilities are others.
    """
    weights = problem.priorities.astype(np.float64) ** ALPHA
    for name in callers.keys() - problem.agreed:
        fault = find_fault(callers[name].draws(DRAWS), weights / weights.sum(), problem)
        if fault:
            raise RuntimeError(f"{name} does not draw what the others draw: {fault}")
        problem.agreed.add(name)


def find_fault(draws: Draws, expected: np.ndarray, problem: Problem) -> str | None:
    """Return how draws differ from the probabilities [capacity], or None."""
    if not np.array_equal(problem.items["reward"][draws.indices], draws.rewards):
        return "items are not those of the slots"
    ratio = draws.odds / expected[draws.indices]
    ratio /= 1.0 if draws.exact else np.median(ratio)
    if np.abs(ratio - 1).max() > TOLERANCE:
        return f"probabilities are off by a factor of {ratio.min():.4g} to {ratio.max():.4g}"
    order = np.argsort(expected)
    reached = np.cumsum(expected[order])
    which = np.empty(len(expected), int)
    which[order] = np.minimum((reached * CLASSES).astype(int), CLASSES - 1)
    share = np.bincount(which, expected, CLASSES)
    counts = np.bincount(which[draws.indices], minlength=CLASSES)
    num = len(draws.indices)
    sigmas = (counts - num * share) / np.sqrt(num * share * (1 - share))
    if np.abs(sigmas).max() > SIGMAS:
        return f"classes of priority are drawn with {np.abs(sigmas).max():.0f} standard errors"
    return None
