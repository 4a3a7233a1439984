"""How often AMPER-fr includes an item: closed forms against sums and draws over the values.

`hits` says what each search finds, from the definitions; numbers are float64 there, whose error
does not count here.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from accel_rl.replay import inclusion

LAWS = {"ball": inclusion.ball, "block": inclusion.block, "dithered": inclusion.dithered_block}
GROUPS = (4, 8, 20)
# Radius over value, as a part of the largest allowed, 1 / groups.
PARTS = (1e-3, 0.15, 0.49, 0.5, 0.77, 1.0)
FALSE_ALARM = 1e-6  # of each Monte-Carlo test, over all its items

laws = pytest.mark.parametrize("law", LAWS)
all_groups = pytest.mark.parametrize("groups", GROUPS)
TOP = 1 - 2.0**-32  # the key of 1 is the last of the last block


@functools.cache
def compiled(law, groups):
    return jax.jit(lambda x, reach: LAWS[law](x, reach, groups))


def items(groups):
    """Fractions: all over, at and about borders of groups and of blocks, and tiny ones."""
    rng = np.random.default_rng(groups)
    borders = np.arange(1, groups) / groups
    powers = 2.0 ** -np.arange(1, 12)
    beside = np.concatenate([borders, powers, [1.0]])
    x = [
        rng.random(20),
        borders,
        np.nextafter(np.float32(beside), np.float32(0)),
        np.nextafter(np.float32(beside[:-1]), np.float32(1)),
        powers,
        [1.0, 1e-3, 1e-4, 3e-6],
    ]
    return np.float32(np.concatenate(x))


def hits(law, x, value, reach):
    """Probability that the set around each value [..., n] holds x [k, ...]."""
    x, width = np.minimum(np.float64(x), TOP), 2 * reach * value
    if law == "ball":
        return np.abs(x - value) * 2 <= width
    exponent = np.floor(np.log2(width))

    def same_block(exponent):
        size = 2.0**exponent
        return np.floor(x / size) == np.floor(value / size)

    if law == "block":  # from the highest bit of the radius, width / 2, downwards: one more bit
        return same_block(exponent)
    excess = width / 2**exponent - 1
    return (1 - excess) * same_block(exponent) + excess * same_block(exponent + 1)


def summed(law, x, reach, groups, points=1 << 13):
    """1 - prod_g (1 - P_g), each P_g a sum over evenly spaced values of the group."""
    none = np.ones(len(x))
    for group in range(groups):
        value = (group + (np.arange(points) + 0.5) / points) / groups
        none *= 1 - hits(law, x[:, None], value, reach).mean(axis=1)
    return 1 - none


@laws
@all_groups
def test_sums_over_values(law, groups):
    """Each border of a set within a group is off by half a step at most: 2e-3 covers them all."""
    x = items(groups)
    for part in PARTS:
        reach = np.float32(part / groups)
        found = compiled(law, groups)(x, reach)
        assert found.dtype == jnp.float32
        expected = summed(law, x, float(reach), groups)
        np.testing.assert_allclose(found, expected, atol=2e-3, rtol=1e-3)
        assert ((np.asarray(found) >= 0) & (np.asarray(found) <= 1)).all()


@laws
@all_groups
def test_simulated_calls(law, groups):
    """Binomial tests of every item, together at most 1e-6, two-sided."""
    calls, rng = 20_000, np.random.default_rng(7)
    x = items(groups)[::3]
    x = x[x > 2**-6]
    for part in (0.15, 1.0):
        reach = np.float32(part / groups)
        found = np.float64(compiled(law, groups)(x, reach))
        included = np.zeros((len(x), calls), bool)
        for group in range(groups):
            value = (group + rng.random(calls)) / groups
            included |= rng.random(calls) < hits(law, x[:, None], value, float(reach))
        count = included.sum(axis=1)
        p = np.minimum(
            stats.binom.cdf(count, calls, found), stats.binom.sf(count - 1, calls, found)
        )
        assert (p > FALSE_ALARM / 2 / len(x)).all(), (x[p.argmin()], count[p.argmin()] / calls)


@laws
@all_groups
def test_the_largest_item(law, groups):
    """Its fraction is 1, whose key is the last of the last block; calls do find it."""
    for part in PARTS[1:]:
        reach = np.float32(part / groups)
        found = compiled(law, groups)(np.ones(1, np.float32), reach)
        expected = summed(law, np.ones(1), float(reach), groups)
        np.testing.assert_allclose(found, expected, atol=2e-3)


@laws
def test_in_proportion_where_sets_are_small(law):
    """About 2 * reach * x * groups in the mean over some octaves: what makes AMPER prioritised."""
    groups, reach = 20, np.float32(2e-4)
    x = np.float32(np.linspace(0.1, 0.999, 4001))
    ratio = np.float64(compiled(law, groups)(x, reach)) / (2 * reach * x * groups)
    mean = {"ball": 1.0, "block": None, "dithered": 1.0}[law]
    if mean is not None:
        np.testing.assert_allclose(ratio.mean(), mean, rtol=0.02)
    else:  # widths between once and half of what is wanted
        assert ((ratio > 0.45) & (ratio < 1.05)).all()


@laws
def test_items_of_fraction_zero_are_not_included(law):
    np.testing.assert_array_equal(compiled(law, 20)(np.zeros(1, np.float32), np.float32(0.01)), 0)


def test_items_at_the_border_of_a_small_block():
    """Powers of two are borders of blocks: widths off by an ulp put them in the wrong one.

    With reach 1/4 and 4 groups the float32 just below 2^-11 has a probability of 0 for 4.9e-4.
    """
    below = np.nextafter(np.float32(2.0**-11), np.float32(0))
    for x, reach in ((below, 0.25), (2.0**-12, 0.125)):
        found = compiled("block", 4)(np.float32([x]), np.float32(reach))
        expected = summed("block", np.float32([x]), reach, 4, 1 << 16)
        np.testing.assert_allclose(found, expected, rtol=0.01)
