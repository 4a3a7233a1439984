"""The search kernel, run by the interpreter, gives the bits of the searches that XLA compiles."""

import functools

import jax
import numpy as np
import pytest
import quick

from accel_rl import am

FORMS = ("xla", "pallas", "auto")
DTYPES = (np.uint8, np.uint16, np.uint32)


def memory(dtype, size=1100, queries=5, seed=0):
    rng = np.random.default_rng(seed)
    top = np.iinfo(dtype).max
    keys = rng.integers(0, top, size, dtype=dtype, endpoint=True)
    asked = rng.integers(0, top, queries, dtype=dtype, endpoint=True)
    asked[:2] = 0, top
    seconds = np.array(top // 20, dtype) >> np.arange(queries, dtype=dtype)
    return keys, asked, seconds, rng.random(size) < 0.7


@functools.partial(jax.jit, static_argnames=("by", "form"))
def search(keys, queries, seconds, valid, by, form):
    return am.search_packed(keys, queries, valid=valid, form=form, **{by: seconds})


@pytest.mark.parametrize("by", ["dont_cares", "radii"])
@pytest.mark.parametrize("dtype", quick.only([np.uint8], DTYPES))
def test_forms_agree(dtype, by):
    keys, queries, seconds, valid = memory(dtype)
    single = am.any_match if by == "dont_cares" else am.any_radius
    for gate in (valid, None):
        lines = single(keys, queries, seconds, valid=gate)
        for form in FORMS:
            words, count = search(keys, queries, seconds, gate, by, form)
            assert (words.dtype, count.dtype) == (np.uint32, np.int32)
            np.testing.assert_array_equal(words, am.pack(lines))
            assert count == am.count(lines)


@pytest.mark.parametrize(("size", "queries"), [(1, 2), (1024, 4)])
def test_sizes_at_the_edge_of_a_block(size, queries):
    arguments = memory(np.uint16, size, queries)
    expected = search(*arguments, "radii", "xla")
    for found, wanted in zip(search(*arguments, "radii", "pallas"), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("form", FORMS)
def test_vmap_and_scan(form):
    several = [np.stack(x) for x in zip(*(memory(np.uint8, seed=s) for s in range(3)), strict=True)]
    expected = [search(*row, "radii", "xla") for row in zip(*several, strict=True)]
    one = functools.partial(search, by="radii", form=form)
    _, scanned = jax.lax.scan(lambda c, row: (c, one(*row)), 0, several)
    for found in (jax.vmap(one)(*several), scanned):
        for part, wanted in zip(found, zip(*expected, strict=True), strict=True):
            np.testing.assert_array_equal(part, np.stack(wanted))


@pytest.mark.skipif(
    jax.__version_info__ >= (0, 11), reason="from jax 0.11 on Triton lowering asks for a GPU"
)
@pytest.mark.parametrize("by", ["dont_cares", "radii"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_kernel_lowers_for_cuda(dtype, by):
    for form, kernel in (("pallas", True), ("auto", False)):
        traced = search.trace(*memory(dtype), by=by, form=form)
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
        assert ("xla.gpu.triton" in text) == kernel


KEYS = np.arange(5, dtype=np.uint8)


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("exactly one of dont_cares and radii", {}),
        ("exactly one of dont_cares and radii", {"dont_cares": [0], "radii": [0]}),
        (r"form must be one of .*, got 'cuda'", {"radii": [0], "form": "cuda"}),
        (r"radii must be in \[0, 255\]", {"radii": [-1]}),
        (r"dont_cares must have shape \(1,\), got \(2,\)", {"dont_cares": [0, 1]}),
        (r"valid must have shape \(5,\)", {"radii": [1], "valid": np.ones(4, bool)}),
    ],
)
def test_bad_arguments(message, arguments):
    with pytest.raises(ValueError, match=message):
        am.search_packed(**({"keys": KEYS, "queries": [1]} | arguments))
