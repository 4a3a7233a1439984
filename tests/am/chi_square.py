"""Chi-square tests of draws. Keys are fixed, so a right sampler passes always or never."""

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6  # probability that one test refuses a right sampler


def assert_distributed(draws, slots, weights=None):
    """Asserts that draws fall on the given slots only, in proportion to weights (None: alike)."""
    draws, slots = np.asarray(draws).ravel(), np.asarray(slots)
    counts = np.bincount(draws, minlength=slots.max() + 1)
    assert counts[slots].sum() == draws.size, "a slot was drawn that must not be"
    shares = np.ones(slots.size) if weights is None else np.asarray(weights, float)
    expected = draws.size * shares / shares.sum()
    assert expected.min() >= 5, "too few draws for a chi-square test"
    assert stats.chisquare(counts[slots], expected).pvalue > FALSE_ALARM


def assert_independent(first, second, bins):
    """Asserts that pairs of draws, as numbers of `bins` equal bins, are independent."""
    table = np.zeros((bins, bins))
    np.add.at(table, (np.asarray(first).ravel(), np.asarray(second).ravel()), 1)
    assert stats.chi2_contingency(table, correction=False).pvalue > FALSE_ALARM
