"""Match lines: counts, packing, ranks and draws."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chi_square import assert_distributed, assert_independent
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_rl import am

SIZES = (1, 33, 3000)


@st.composite
def match_lines(draw):
    """Lines with long empty or full stretches as well as mixed ones."""
    size = draw(st.sampled_from(SIZES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    part = draw(st.sampled_from((0.0, 0.001, 0.1, 0.9, 1.0)))
    lines = rng.random(size) < part
    start, stop = sorted(draw(st.tuples(*[st.integers(0, size)] * 2)))
    lines[start:stop] = draw(st.booleans())
    return lines


@jax.jit
def summary(lines):
    words = am.pack(lines)
    ranks = jnp.arange(-1, lines.shape[0] + 1, dtype=jnp.int32)
    return {
        "words": words,
        "count": am.count(lines),
        "counted": am.count_packed(words),
        "lines": am.unpack(words, lines.shape[0]),
        "nth": am.nth(words, ranks),
    }


@given(match_lines())
@settings(max_examples=60)
def test_pack_count_and_nth(lines):
    found = summary(lines)
    padded = np.pad(lines, (0, -lines.size % 32))
    assert found["words"].dtype == np.uint32
    expected = np.packbits(padded, bitorder="little").view("<u4")
    np.testing.assert_array_equal(found["words"], expected)
    np.testing.assert_array_equal(found["lines"], lines)
    assert found["count"] == found["counted"] == lines.sum()
    where = np.full(lines.size + 2, -1)
    where[1 : 1 + lines.sum()] = np.flatnonzero(lines)
    np.testing.assert_array_equal(found["nth"], where)


def test_words_have_32_bits_beside_64_bit_types():
    with jax.enable_x64(True):
        assert am.pack(jnp.ones(40, bool)).dtype == np.uint32


@functools.partial(jax.jit, static_argnames="num")
def draw(key, lines, num):
    return am.draw(key, am.pack(lines), num)


@pytest.mark.parametrize("part", [0.004, 0.2, 1.0])
def test_draws_are_uniform_and_independent(part):
    rng = np.random.default_rng(0)
    lines = rng.random(3000) < part
    drawn = draw(jax.random.key(1), lines, 200_000)
    assert drawn.dtype == np.int32
    matches = np.flatnonzero(lines)
    assert_distributed(drawn, matches)
    tenths = np.searchsorted(matches, np.asarray(drawn)) * 10 // matches.size
    assert_independent(tenths[:-1], tenths[1:], 10)


def test_nothing_matches():
    nothing = np.zeros(3000, bool)
    np.testing.assert_array_equal(draw(jax.random.key(0), nothing, 200_000), -1)


def test_one_match_is_always_drawn():
    lines = np.zeros(3000, bool)
    lines[2999] = True
    np.testing.assert_array_equal(draw(jax.random.key(0), lines, 200_000), 2999)


def test_vmap_and_scan():
    rng = np.random.default_rng(2)
    lines = rng.random((4, 3000)) < 0.1
    keys = jax.random.split(jax.random.key(3), 4)
    alone = np.stack([draw(key, row, 64) for key, row in zip(keys, lines, strict=True)])
    together = jax.vmap(functools.partial(draw, num=64))(keys, lines)
    np.testing.assert_array_equal(together, alone)
    _, scanned = jax.lax.scan(lambda c, x: (c, draw(*x, 64)), 0, (keys, jnp.asarray(lines)))
    np.testing.assert_array_equal(scanned, alone)
    assert (lines[np.arange(4)[:, None], alone]).all()


WORDS = np.ones(2, np.uint32)


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (TypeError, "matches must be bool, got uint8", lambda: am.count(np.uint8([1]))),
        (ValueError, r"matches must have shape \(4,\)", lambda: am.pack(np.ones((2, 2), bool))),
        (TypeError, "words must be uint32, got int64", lambda: am.nth(np.ones(2, int), 0)),
        (TypeError, "rank must be int32, got uint32", lambda: am.nth(WORDS, np.uint32(1))),
        (ValueError, "n must be of 2 words of 32 lines, got 65", lambda: am.unpack(WORDS, 65)),
        (ValueError, "n must be of 2 words of 32 lines, got 32", lambda: am.unpack(WORDS, 32)),
        (TypeError, "n must be an int, got 33.0", lambda: am.unpack(WORDS, 33.0)),
        (ValueError, "num must be at least 1, got 0", lambda: am.draw(jax.random.key(0), WORDS, 0)),
    ],
)
def test_bad_arguments(error, message, call):
    with pytest.raises(error, match=message):
        call()
