"""Every search against the cell-by-cell model, bit for bit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from hypothesis import given, settings
from hypothesis import strategies as st
from tcam import Tcam

from accel_rl import am

SIZES = (5, 33, 70)
DTYPES = (np.uint8, np.uint16, np.uint32)
QUERIES = 3


@functools.partial(jax.jit)
def every_search(keys, valid, query, second, low_bits, k, queries, seconds):
    """All searches in one program, so that a shape and width compiles once."""
    return {
        "match": am.match(keys, query, second, valid=valid),
        "exact": am.exact(keys, query, valid=valid),
        "prefix": am.prefix(keys, query, low_bits, valid=valid),
        "radius": am.radius(keys, query, second, valid=valid),
        "nearest": am.nearest(keys, query, k, valid=valid),
        "best_match": am.best_match(keys, query, second, valid=valid),
        "any_match": am.any_match(keys, queries, seconds, valid=valid),
        "any_radius": am.any_radius(keys, queries, seconds, valid=valid),
    }


def modelled(keys, valid, query, second, low_bits, k, queries, seconds):
    cam = Tcam(keys, valid)
    return {
        "match": cam.match(query, second),
        "exact": cam.match(query),
        "prefix": cam.prefix(query, low_bits),
        "radius": cam.radius(query, second),
        "nearest": cam.nearest(query, k),
        "best_match": cam.best_match(query, second),
        "any_match": cam.any_match(queries, seconds),
        "any_radius": cam.any_radius(queries, seconds),
    }


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, lines in expected.items():
        np.testing.assert_array_equal(found[name], lines, err_msg=name)


@st.composite
def memories(draw):
    """Keys and arguments, some of them close to each other and to the ends of the range."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    size = draw(st.sampled_from(SIZES))
    top = int(np.iinfo(dtype).max)
    number = st.one_of(st.integers(0, top), st.integers(0, 6), st.integers(top - 6, top))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pool = np.array(draw(st.lists(number, min_size=1, max_size=12)), dtype)
    keys = rng.choice(pool, size)
    spread = draw(st.booleans())
    if spread:
        keys = keys ^ rng.integers(0, 8, size).astype(dtype)
    valid = rng.random(size) < draw(st.sampled_from((0.0, 0.5, 1.0)))
    several = st.lists(number, min_size=QUERIES, max_size=QUERIES)
    return (
        keys,
        valid,
        np.array(draw(number), dtype),
        np.array(draw(number), dtype),
        np.int32(draw(st.integers(0, 8 * dtype.itemsize))),
        np.int32(draw(st.integers(-1, size + 2))),
        np.array(draw(several), dtype),
        np.array(draw(several), dtype),
    )


@given(memories())
@settings(max_examples=120)
def test_searches_equal_the_model(memory):
    assert_same(every_search(*memory), modelled(*memory))


def fixed_memory(dtype, seed=0, size=33):
    rng = np.random.default_rng(seed)
    top = np.iinfo(dtype).max
    keys = rng.integers(0, top, size, endpoint=True, dtype=dtype)
    numbers = rng.integers(0, top, 2 + 2 * QUERIES, endpoint=True, dtype=dtype)
    low, k = np.int32(rng.integers(0, 8 * np.dtype(dtype).itemsize)), np.int32(7)
    valid = rng.random(size) < 0.7
    seconds = numbers[-QUERIES:] >> np.array(3, dtype)
    return keys, valid, numbers[0], numbers[1], low, k, numbers[2 : 2 + QUERIES], seconds


@pytest.mark.long  # compiles every operation
def test_without_jit_and_with_python_numbers():
    memory = fixed_memory(np.uint8)
    keys, valid, query, second, low_bits, k, queries, seconds = memory
    numbers = int(query), int(second), int(low_bits), int(k), queries.tolist(), seconds.tolist()
    assert_same(every_search.__wrapped__(keys, valid, *numbers), modelled(*memory))


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_valid_bits_every_key_is_valid(dtype):
    keys, _, *arguments = fixed_memory(dtype)
    everything = np.ones(keys.shape, bool)
    assert_same(every_search(keys, None, *arguments), modelled(keys, everything, *arguments))


def test_vmap_over_memories_and_queries():
    memories = [fixed_memory(np.uint16, seed) for seed in range(4)]
    stacked = [np.stack(parts) for parts in zip(*memories, strict=True)]
    found = jax.jit(jax.vmap(every_search))(*stacked)
    for i, memory in enumerate(memories):
        assert_same({name: lines[i] for name, lines in found.items()}, modelled(*memory))


def test_scan_over_queries():
    keys, valid, *_ = fixed_memory(np.uint16)
    asked = [fixed_memory(np.uint16, seed)[2:] for seed in range(4)]

    def step(carry, arguments):
        return carry, every_search(keys, valid, *arguments)

    stacked = tuple(np.stack(parts) for parts in zip(*asked, strict=True))
    _, found = jax.jit(lambda xs: jax.lax.scan(step, 0, xs))(stacked)
    for i, arguments in enumerate(asked):
        lines = {name: lines[i] for name, lines in found.items()}
        assert_same(lines, modelled(keys, valid, *arguments))


@pytest.mark.parametrize("dtype", quick.only([np.uint8], DTYPES))
def test_all_and_none_match(dtype):
    keys = np.arange(33, dtype=dtype)
    top = int(np.iinfo(dtype).max)
    bits = 8 * np.dtype(dtype).itemsize
    assert am.match(keys, 0, top).all()
    assert am.prefix(keys, top, bits).all()
    assert am.radius(keys, 0, top).all()
    assert am.nearest(keys, 9, 33).all()
    assert am.nearest(keys, 9, 2**31 - 1).all()
    assert not am.exact(keys, 33).any()
    assert not am.radius(keys, top, 1).any()
    assert not am.nearest(keys, 9, 0).any()
    assert not am.any_match(keys, [33, 34], [0, 0]).any()
    assert not am.match(keys, 0, top, valid=np.zeros(33, bool)).any()
    assert am.best_match(keys, 9, valid=np.zeros(33, bool)) == -1
    none = np.zeros(0, dtype)
    assert not am.any_match(keys, none, none).any()


def test_ties_go_to_the_lowest_index():
    keys = np.array([12, 8, 10, 12, 8, 9], np.uint8)
    np.testing.assert_array_equal(np.flatnonzero(am.nearest(keys, 10, 2)), [2, 5])
    np.testing.assert_array_equal(np.flatnonzero(am.nearest(keys, 10, 3)), [0, 2, 5])
    np.testing.assert_array_equal(np.flatnonzero(am.nearest(keys, 10, 4)), [0, 1, 2, 5])
    assert am.best_match(keys, 0b1110) == 0
    assert am.best_match(keys, 0b0000, valid=np.array([1, 0, 1, 1, 1, 1], bool)) == 4
    assert am.best_match(keys, 0b0001, 0b0001) == 1


@pytest.mark.parametrize("shape", [(), (7,), (4, 6)])
def test_gathered_keys_of_any_shape(shape):
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 256, 33, dtype=np.uint8)
    slots = rng.integers(0, 33, shape)
    queries, seconds = np.array([3, 100, 250], np.uint8), np.array([7, 20, 3], np.uint8)
    for search in (am.any_match, am.any_radius):
        whole = np.asarray(search(keys, queries, seconds))
        found = search(jnp.asarray(keys)[slots], queries, seconds)
        np.testing.assert_array_equal(found, whole[slots])


def test_low_mask_traced_is_clipped():
    masks = jax.vmap(lambda low: am.low_mask(low, 16))(jnp.array([-3, 0, 1, 15, 16, 40]))
    assert masks.dtype == np.uint16
    np.testing.assert_array_equal(masks, [0, 0, 1, 2**15 - 1, 2**16 - 1, 2**16 - 1])
    assert int(am.low_mask(32, 32)) == 2**32 - 1
    assert int(am.low_mask(31, 32)) == 2**31 - 1


def test_traced_counts_of_any_integer_dtype():
    keys = np.arange(33, dtype=np.uint8)
    nearest = jax.jit(am.nearest)
    prefix = jax.jit(am.prefix)
    query = np.uint8(9)
    for k in (np.uint32(2**32 - 1), np.int8(-1), np.uint8(40), np.int32(5)):
        assert am.count(nearest(keys, query, k)) == min(max(int(k), 0), 33)
    for low_bits in (np.uint32(2**32 - 1), np.int8(-1), np.uint8(3)):
        expected = am.prefix(keys, 9, min(max(int(low_bits), 0), 8))
        np.testing.assert_array_equal(prefix(keys, query, low_bits), expected)


def test_a_union_is_one_pass_over_the_memory():
    spec = jax.ShapeDtypeStruct((4096,), np.uint16)
    asked = jax.ShapeDtypeStruct((20,), np.uint16)
    for search in (am.any_match, am.any_radius):
        text = jax.jit(search).lower(spec, asked, asked).compile().as_text()
        entry = text[text.index("ENTRY") :]
        large = [
            line for line in entry.splitlines() if "[4096]{0} " in line.partition(" = ")[2][:16]
        ]
        assert len(large) == 2, large  # the parameter, and the one fusion that reads it
        assert "parameter(" in large[0]
        assert "ROOT" in large[1]


KEYS = np.arange(5, dtype=np.uint8)
FOUR = np.ones(4, bool)
BAD = {
    "keys must be an array of uint8, uint16 or uint32, got int32": (
        TypeError,
        lambda: am.exact(np.arange(5, dtype=np.int32), 1),
    ),
    "keys must be an array of uint8, uint16 or uint32, got list": (
        TypeError,
        lambda: am.exact([1, 2], 1),
    ),
    r"matches must have shape \(5,\), got \(5, 1\)": (
        ValueError,
        lambda: am.nearest(KEYS[:, None], 1, 1),
    ),
    r"query must be in \[0, 255\] for uint8 keys, got 256": (
        ValueError,
        lambda: am.match(KEYS, 256),
    ),
    r"query must be in \[0, 255\] for uint8 keys, got -1": (
        ValueError,
        lambda: am.radius(KEYS, -1, 1),
    ),
    "query must be of integers, .* got float64": (TypeError, lambda: am.exact(KEYS, 1.0)),
    "query must be of integers, .* got bool": (TypeError, lambda: am.exact(KEYS, True)),
    r"query must have shape \(\), got \(2,\)": (ValueError, lambda: am.exact(KEYS, [1, 2])),
    "query must be of integers, of uint8 if traced, got int32": (
        TypeError,
        lambda: jax.jit(lambda q: am.exact(KEYS, q))(np.int32(1)),
    ),
    r"dont_care must be in \[0, 255\]": (ValueError, lambda: am.match(KEYS, 1, 300)),
    r"radius must be in \[0, 255\] for uint8 keys, got -2": (
        ValueError,
        lambda: am.radius(KEYS, 1, -2),
    ),
    "low_bits must be from 0 to 8, got 9": (ValueError, lambda: am.prefix(KEYS, 1, 9)),
    "low_bits must be from 0 to 8, got -1": (ValueError, lambda: am.prefix(KEYS, 1, -1)),
    "low_bits must be an int, got 1.5": (TypeError, lambda: am.prefix(KEYS, 1, 1.5)),
    r"bits must be one of \(8, 16, 32\), got 9": (ValueError, lambda: am.low_mask(1, 9)),
    "k must be from 0 to 2147483647, got -1": (ValueError, lambda: am.nearest(KEYS, 1, -1)),
    "k must be an int, got 1.0": (TypeError, lambda: am.nearest(KEYS, 1, 1.0)),
    r"k must be an int, got array\(\[1\]\)": (
        TypeError,
        lambda: am.nearest(KEYS, 1, np.array([1])),
    ),
    r"valid must have shape \(5,\), got \(4,\)": (
        ValueError,
        lambda: am.exact(KEYS, 1, valid=FOUR),
    ),
    "valid must be bool, got int64": (
        TypeError,
        lambda: am.nearest(KEYS, 1, 1, valid=np.ones(5, np.int64)),
    ),
    r"queries must have shape \(1,\), got \(\)": (ValueError, lambda: am.any_match(KEYS, 1, 0)),
    r"dont_cares must have shape \(2,\), got \(1,\)": (
        ValueError,
        lambda: am.any_match(KEYS, [1, 2], [0]),
    ),
    r"radii must be in \[0, 255\]": (ValueError, lambda: am.any_radius(KEYS, [1, 2], [0, -1])),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments(message):
    error, call = BAD[message]
    with pytest.raises(error, match=message):
        call()
