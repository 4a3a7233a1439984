"""Fixed point against Python integers; bounds; saturation."""

import hypothesis
import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import oracle
import pytest

from accel_rl.tabular import fp32, int32_pow2, int32_scaled, make_numerics
from accel_rl.tabular.numerics import INT32_MAX, saturating_add

ENTRIES = st.lists(st.integers(-INT32_MAX, INT32_MAX), min_size=8, max_size=8)


def int32(values):
    return jnp.asarray(np.asarray(values, np.int32))


@hypothesis.given(ENTRIES, st.integers(0, 10_000))
def test_scaled_product_truncates_exactly_in_32_bits(xs, c):
    product = int32_scaled().multiply(jnp.int32(c), int32(xs))
    assert product.tolist() == [oracle.Scaled().mul(c, x) for x in xs]
    # (x / S) c + ((x % S) c) / S is c x / S truncated: whole part and rest have the same sign.
    assert product.tolist() == [oracle.truncated(c * x, 10_000) for x in xs]


@hypothesis.given(ENTRIES, st.integers(0, 256))
def test_pow2_product_rounds_half_away_from_zero(xs, c):
    product = int32_pow2().multiply(jnp.int32(c), int32(xs))
    assert product.tolist() == [oracle.half_away(c * x, 256) for x in xs]


@hypothesis.given(ENTRIES, ENTRIES)
def test_sums_saturate(xs, ys):
    clipped = [oracle.Pow2().add(x, y) for x, y in zip(xs, ys, strict=True)]
    assert saturating_add(int32(xs), int32(ys)).tolist() == clipped
    differences = [oracle.Pow2().sub(x, y) for x, y in zip(xs, ys, strict=True)]
    assert int32_pow2().subtract(int32(xs), int32(ys)).tolist() == differences


@hypothesis.given(st.lists(st.integers(-(2**30), 2**30), min_size=6, max_size=6))
@pytest.mark.parametrize("name", ["int32_scaled", "int32_pow2"])
def test_means_of_six(name, values):
    mean = int(make_numerics(name).mean([jnp.int32(v) for v in values]))
    assert mean == oracle.NUMERICS[name]().mean(values)
    assert abs(mean - sum(values) / 6) <= 1  # whole parts are exact, the rests are rounded once


def test_rates_round_to_the_nearest_coefficient():
    assert int(int32_scaled().encode_rate(0.95)) == 9_500
    assert int(int32_pow2().encode_rate(0.1)) == 26
    assert float(int32_pow2().decode_rate(jnp.int32(26))) == 26 / 256
    assert float(fp32().encode_rate(0.1)) == np.float32(0.1)


@pytest.mark.parametrize("value", [-200.0, -0.5, 0.0, 19.9375])
@pytest.mark.parametrize("name", ["fp32", "int32_scaled", "int32_pow2"])
def test_values_survive_a_round_trip(name, value):
    numerics = make_numerics(name)
    assert numerics.encode(value).dtype == numerics.dtype
    assert float(numerics.decode(numerics.encode(value))) == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: int32_scaled(scale=50_000), "scale must be from 1 to 46340, got 50000"),
        (lambda: int32_pow2(fraction_bits=25), "fraction_bits must be from 0 to 24, got 25"),
        (lambda: int32_pow2(gamma_max=1.0), r"gamma_max must be at least 0 and below 1, got 1.0"),
        (lambda: int32_scaled(reward_range=(1, -1)), "reward_range must be .low, high."),
        (lambda: int32_pow2(20), "need .* > 2147483647: lower the scale, gamma_max"),
        (lambda: make_numerics("fp16"), "numerics must be one of fp32, .*'fp16'"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_reachable_values_never_saturate_within_the_checked_bound():
    numerics = int32_pow2()
    extreme = numerics.encode(np.float32(-100 / (1 - 0.99)))
    difference = numerics.subtract(-extreme, extreme)
    assert abs(int(difference)) < INT32_MAX
