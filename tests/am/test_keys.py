"""Keys keep the order of numbers, and are the nearest there are."""

import fractions
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental import checkify

from accel_rl import am

WIDTHS = (8, 16, 32)
SIZE = 64
positive = st.floats(0, 2.0**100, width=32)
numbers = st.lists(
    st.one_of(positive, st.floats(0, 2, width=32)), min_size=SIZE, max_size=SIZE
).map(lambda values: np.array(values, np.float32))


@functools.partial(jax.jit, static_argnames=("bits", "form"))
def encode(values, maximum, bits, form):
    return am.encode(values, maximum, bits=bits, form=form)


@pytest.mark.parametrize("form", ["fixed", "float"])
@pytest.mark.parametrize("bits", quick.only([16], WIDTHS))
@given(values=numbers, maximum=st.floats(2.0**-100, 2.0**100, width=32))
@settings(max_examples=30)
def test_order_is_kept(form, bits, values, maximum):
    keys = np.asarray(encode(np.sort(values), np.float32(maximum), bits, form))
    assert keys.dtype == am.key_dtype(bits) == np.dtype(f"uint{bits}")
    assert (keys[1:] >= keys[:-1]).all()


@pytest.mark.parametrize("bits", WIDTHS)
@given(values=numbers)
@settings(max_examples=30)
def test_fixed_keys_are_the_nearest(bits, values):
    keys = encode(values, np.float32(1), bits, "fixed")
    for value, key in zip(values, np.asarray(keys), strict=True):
        exact = min(fractions.Fraction(float(value)), 1) * (2**bits - 1)
        rest = abs(int(key) - exact)
        assert rest < fractions.Fraction(1, 2) or (value == 0.5 and key == 2 ** (bits - 1))


@pytest.mark.parametrize("bits", WIDTHS)
def test_fixed_keys_at_the_ends(bits):
    top = 2**bits - 1
    values = np.array([0.0, -0.0, 1e-45, 3.7, 5.0, 1e300, np.inf])
    expected = [0, 0, 0, top, top, top, top]
    np.testing.assert_array_equal(am.encode(values, 3.7, bits=bits), expected)
    below = np.nextafter(np.float32(1), np.float32(0))
    assert int(am.encode(below, bits=bits)) == min(top, round((1 - 2.0**-24) * top))
    rng = np.random.default_rng(0)
    for maximum in rng.random(50).astype(np.float32) + np.float32(0.1):
        assert int(am.encode(maximum, maximum, bits=bits)) == top


@pytest.mark.parametrize("bits", WIDTHS)
def test_fixed_round_trip(bits):
    rng = np.random.default_rng(0)
    values = (rng.random(10_000) * 7).astype(np.float32)
    decoded = am.decode(am.encode(values, 7.0, bits=bits), 7.0)
    assert decoded.dtype == np.float32
    # Half a step, and what float32 arithmetic adds.
    assert np.abs(decoded - values).max() <= 7 * (0.5 / (2**bits - 1) + 2.0**-23)
    if bits < 32:
        keys = np.arange(2**bits, dtype=am.key_dtype(bits))
        np.testing.assert_array_equal(am.encode(am.decode(keys, 7.0), 7.0, bits=bits), keys)


@pytest.mark.parametrize("bits", WIDTHS)
def test_float_round_trip(bits):
    rng = np.random.default_rng(0)
    values = np.exp2(rng.random(10_000) * 200 - 100).astype(np.float32)
    keys = am.encode(values, bits=bits, form="float")
    decoded = np.asarray(am.decode(keys, form="float"))
    ratio = {8: 2.0, 16: 1 + 2.0**-8, 32: 1.0}[bits]
    assert (decoded <= values).all()
    assert (values <= decoded * ratio).all()
    np.testing.assert_array_equal(am.encode(decoded, bits=bits, form="float"), keys)


def test_float_keys_are_the_bit_pattern():
    values = np.array([0.0, -0.0, 1e-45, 1.0, 1.5, 2.0, np.inf], np.float32)
    patterns = (values.view(np.uint32) << 1).astype(np.uint32)
    for bits in WIDTHS:
        keys = am.encode(values, 3.0, bits=bits, form="float")
        np.testing.assert_array_equal(keys, patterns >> (32 - bits))
    np.testing.assert_array_equal(
        am.encode(values, bits=8, form="float"), [0, 0, 0, 127, 127, 128, 255]
    )
    assert am.decode(am.encode(np.inf, bits=8, form="float"), form="float") == np.inf


@pytest.mark.parametrize("form", ["fixed", "float"])
def test_traced_bad_numbers_give_zero(form):
    bad = np.array([-1.0, np.nan, -np.inf, 1.0], np.float32)
    keys = jax.jit(lambda values: am.encode(values, form=form))(bad)
    np.testing.assert_array_equal(keys[:3], 0)
    assert keys[3] > 0


def test_checkify_reports_traced_bad_numbers():
    checked = jax.jit(checkify.checkify(lambda values: am.encode(values, checked=True)))
    error, _ = checked(np.array([0.5, -1.0], np.float32))
    assert "values must be non-negative" in error.get()
    error, keys = checked(np.array([0.5, 1.0], np.float32))
    assert error.get() is None
    np.testing.assert_array_equal(keys, [2**15, 2**16 - 1])


def test_vmap_and_other_dtypes():
    values = np.linspace(0, 2, 12).reshape(4, 3)
    maxima = np.array([0.5, 1, 2, 4])
    rows = jax.vmap(lambda value, maximum: am.encode(value, maximum, bits=8))(
        jnp.asarray(values, jnp.float32), jnp.asarray(maxima, jnp.float32)
    )
    np.testing.assert_array_equal(rows, am.encode(values, maxima[:, None], bits=8))
    np.testing.assert_array_equal(am.encode([0, 1, 2], 2, bits=8), [0, 128, 255])
    np.testing.assert_array_equal(am.encode(jnp.bfloat16(0.25)), am.encode(0.25))


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (ValueError, r"bits must be one of \(8, 16, 32\), got 12", lambda: am.encode(1.0, bits=12)),
        (ValueError, "bits must be one of", lambda: am.key_dtype(64)),
        (ValueError, "form must be one of", lambda: am.encode(1.0, form="log")),
        (ValueError, "form must be one of", lambda: am.decode(np.uint8([1]), form="log")),
        (ValueError, "values must be non-negative numbers, got -2", lambda: am.encode([1.0, -2.0])),
        (ValueError, "values must be non-negative numbers, got nan", lambda: am.encode(np.nan)),
        (TypeError, "not 'complex'", lambda: am.encode(1j)),
        (
            ValueError,
            ".* positive and finite in float32, got 0",
            lambda: am.encode(1.0, 0.0),
        ),
        (ValueError, "maximum must be positive and finite", lambda: am.encode(1.0, np.inf)),
        (ValueError, "maximum must be positive and finite", lambda: am.encode(1.0, 1e300)),
        (ValueError, "maximum must be positive and finite", lambda: am.encode(1.0, 1e-300)),
        (ValueError, "maximum must be positive and finite", lambda: am.decode(np.uint8([1]), -1)),
        (TypeError, "keys must be an array of uint8", lambda: am.decode(np.int32([1]))),
    ],
)
def test_bad_arguments(error, message, call):
    with pytest.raises(error, match=message):
        call()
