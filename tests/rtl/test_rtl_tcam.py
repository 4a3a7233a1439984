"""The TCAM in hardware: bit for bit what a slow CAM and `accel_rl.am` compute, and when."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from am.tcam import Tcam
from rtl import verilated
from rtl.verilated import RESET, needs_verilator, requests, simulate

from accel_rl import am

pytestmark = needs_verilator

WRITE, SEARCH, MERGE, GATHER, DRAW = range(5)
STORED = 2**63
OPERATIONS = 10_000
SHAPES = {
    "256 x 16": {"ENTRIES": 256, "WIDTH": 16, "BLOCK": 32},
    "100 x 8": {"ENTRIES": 100, "WIDTH": 8, "BLOCK": 16},  # the last block is not full
    "300 x 32": {"ENTRIES": 300, "WIDTH": 32, "BLOCK": 64},
}
MARKS = {"256 x 16": (), "100 x 8": pytest.mark.long, "300 x 32": pytest.mark.slow}
shapes = pytest.mark.parametrize(
    "shape", [pytest.param(shape, id=name, marks=MARKS[name]) for name, shape in SHAPES.items()]
)


def words_of(shape):
    return -(-shape["ENTRIES"] // 32)


def run(shape, stream):
    return simulate(verilated.simulator("tcam", **shape), stream, words_of(shape))


def low_masks(rng, width, n):
    return (1 << rng.integers(0, width, n, endpoint=True)) - 1


def random_stream(shape, rng, operations=OPERATIONS):
    """Operations of AMPER in any order: [n, 4] of kind, key, mask or random word, row."""
    width, rows = shape["WIDTH"], shape["ENTRIES"]
    kinds = rng.choice(5, operations, p=(0.3, 0.2, 0.2, 0.1, 0.2))
    # Half of the keys are near each other, so that narrow searches match as well.
    limit = np.where(rng.random(operations) < 0.5, 2**width, 2 ** (width // 2))
    keys = rng.integers(0, limit)
    shapes_of_masks = [low_masks(rng, width, operations), rng.integers(0, 2**width, operations)]
    masks = np.where(rng.random(operations) < 0.7, *shapes_of_masks)
    seconds = np.where(kinds == DRAW, rng.integers(0, 2**32, operations), masks)
    stored = (rng.random(operations) < 0.9).astype(np.uint64) * np.uint64(STORED)
    # Beyond the rows there is nothing to write.
    places = rng.integers(0, min(rows + 3, 1 << (rows - 1).bit_length()), operations)
    return np.stack(
        [kinds, keys, seconds, places.astype(np.uint64) | stored], axis=-1, dtype=object
    )


def expected_answers(shape, table):
    """Count, row and match lines after each operation, with `am` and one CAM row at a time."""
    dtype, rows = np.dtype(f"uint{shape['WIDTH']}"), shape["ENTRIES"]
    keys, valid = np.zeros(rows, dtype), np.zeros(rows, bool)
    lines, candidates = np.zeros(rows, bool), np.zeros(0, int)
    search = jax.jit(lambda keys, query, mask, valid: am.match(keys, query, mask, valid=valid))
    found = []
    for i, (kind, key, second, place) in enumerate(table):
        count, row = None, 0
        if kind == WRITE and (place % STORED) < rows:
            keys[place % STORED], valid[place % STORED] = key, place >= STORED
        if kind in (SEARCH, MERGE):
            now = np.asarray(search(keys, dtype.type(key), dtype.type(second), valid))
            if i % 50 == 0:  # slow
                np.testing.assert_array_equal(now, Tcam(keys, valid).match(key, second))
            lines = now | lines if kind == MERGE else now
        if kind == GATHER:
            candidates = np.flatnonzero(lines)
        if kind == DRAW:
            count = len(candidates)
            row = candidates[(int(second) * count) >> 32] if count else 0
        found.append((lines.sum() if count is None else count, row, lines.copy()))
    counts, drawn, all_lines = zip(*found, strict=True)
    return np.array(counts, np.uint64), np.array(drawn, np.uint64), np.array(all_lines)


def packed(lines):
    padded = np.pad(lines, ((0, 0), (0, -lines.shape[1] % 32)))
    return np.packbits(padded, axis=1, bitorder="little").view("<u4")


def check(found, answers):
    counts, drawn, lines = answers
    np.testing.assert_array_equal(found.lines, packed(lines))
    np.testing.assert_array_equal(found.x, counts)
    np.testing.assert_array_equal(found.y, drawn)


@shapes
def test_equals_am_match(shape):
    rng = np.random.default_rng(1)
    table = random_stream(shape, rng)
    answers = expected_answers(shape, table)
    assert (answers[0] > 1).mean() > 0.5
    check(run(shape, requests(*table.T)), answers)
    part = table[:2_000]
    wait, hold = (np.where(rng.random(2_000) < 0.4, rng.integers(0, 9, 2_000), 0) for _ in "wh")
    found = run(shape, requests(*part.T, wait=wait, hold=hold))
    check(found, [answer[:2_000] for answer in answers])


def filled(shape, keys):
    return requests(WRITE, keys, 0, np.arange(len(keys), dtype=np.uint64) | np.uint64(STORED))


@shapes
def test_amper_equals_am_any_match_and_draw(shape):
    """m queries made one set of lines, read out, and a batch drawn from it by `am.draw`."""
    rng = np.random.default_rng(2)
    dtype, rows = np.dtype(f"uint{shape['WIDTH']}"), shape["ENTRIES"]
    keys = np.asarray(am.encode(rng.random(rows), bits=shape["WIDTH"]))
    key = jax.random.key(3)
    search, draw = jax.jit(am.any_match), jax.jit(am.draw, static_argnums=2)
    for groups, batch in ((1, 1), (20, 64)):
        queries = rng.integers(0, 2 ** shape["WIDTH"], groups)
        masks = low_masks(rng, shape["WIDTH"] - 2, groups)
        random = np.asarray(jax.random.bits(key, (batch,), jnp.uint32))
        start = filled(shape, keys)
        found = run(
            shape,
            np.concatenate(
                [
                    start,
                    requests(np.where(np.arange(groups) == 0, SEARCH, MERGE), queries, masks),
                    requests(GATHER),
                    requests(DRAW, 0, random),
                ]
            ),
        )
        lines = search(keys, queries.astype(dtype), masks.astype(dtype))
        words = am.pack(lines)
        np.testing.assert_array_equal(found.lines[-1], words)
        assert found.x[-1] == found.x[rows + groups] == int(am.count(lines))
        expected = np.maximum(np.asarray(draw(key, words, batch)), 0)
        np.testing.assert_array_equal(found.y[-batch:], expected.astype(np.uint64))


@shapes
def test_readout_lists_every_match_in_order(shape):
    """A draw for each rank; from nothing, from all, and with blocks between that are empty."""
    rng, rows = np.random.default_rng(3), shape["ENTRIES"]
    for lines in (
        np.zeros(rows, bool),
        np.ones(rows, bool),
        np.arange(rows) == rows - 1,
        np.arange(rows) % shape["BLOCK"] == 3,
        rng.random(rows) < 0.1,
    ):
        matches = np.flatnonzero(lines)
        n = len(matches)
        # The least random word with the rank as its product's high word.
        ranks = [-(-(rank << 32) // n) for rank in range(n)] or [2**32 - 1]
        stream = [filled(shape, lines.astype(int)), requests(SEARCH, 1), requests(GATHER)]
        found = run(shape, np.concatenate([*stream, requests(DRAW, 0, ranks)]))
        np.testing.assert_array_equal(found.y[rows + 2 :], matches if n else [0])
        assert (found.x[rows:] == n).all()
        # A match a clock wherever they are: 3 clocks to start, fetch and end, 1 with no match.
        alone = int(found.given[rows + 1] - found.given[rows])
        assert alone == (n + 3 if n else 2)


def test_a_readout_goes_on_behind_a_response_that_waits():
    shape = SHAPES["256 x 16"]
    stream = [filled(shape, np.arange(256) % 4), requests(SEARCH, 1, 0, hold=100), requests(GATHER)]
    found = run(shape, np.concatenate([*stream, requests(DRAW, 0, 2**31)]))
    assert found.given[256] - found.taken[256] > 100
    np.testing.assert_array_equal(np.diff(found.given[256:].astype(int)), [1, 1])
    assert found.y[-1] == 4 * 32 + 1


def test_one_request_in_every_clock():
    shape = SHAPES["256 x 16"]
    table = random_stream(shape, np.random.default_rng(4), 1_000)
    table[table[:, 0] == GATHER, 0] = MERGE
    found = run(shape, requests(*table.T))
    assert found.cycles == 1_000 + 3
    np.testing.assert_array_equal(found.given - found.taken, np.full(1_000, 3))


@shapes
def test_reset_forgets_keys_lines_and_candidates(shape):
    """In the middle of a readout, too."""
    rows, width = shape["ENTRIES"], shape["WIDTH"]
    everything = 2**width - 1
    stream = np.concatenate(
        [
            filled(shape, np.arange(rows) % 2**width),
            requests(SEARCH, 0, everything),
            requests(GATHER),
            requests(DRAW, 0, 5, wait=20),
            requests(RESET, 1),
            requests(DRAW, 0, 2**31),
            requests(MERGE, 0, everything),
            requests(GATHER),
            requests(DRAW, 0, 2**31),
        ]
    )
    found = run(shape, stream)
    assert found.x[rows] == rows
    assert found.given[rows + 1] == 0  # lost
    assert not found.x[-4:].any()
    assert not found.y[-4:].any()
    assert not found.lines[-4:].any()


@pytest.mark.parametrize(
    "shape",
    [
        {},
        *SHAPES.values(),
        {"ENTRIES": 2, "WIDTH": 1, "BLOCK": 2},
        {"ENTRIES": 33, "WIDTH": 64},
        {"ENTRIES": 2048, "WIDTH": 32, "BLOCK": 64},
    ],
)
def test_lint(shape):
    assert verilated.lint("tcam", **shape) == ""


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ENTRIES": 1}, "ENTRIES must be at least 2, got 1"),
        ({"WIDTH": 0}, "WIDTH must be 1 to 64, got 0"),
        ({"WIDTH": 65}, "WIDTH must be 1 to 64, got 65"),
        ({"BLOCK": 3}, "BLOCK must be a power of two from 2, got 3"),
        ({"BLOCK": 1}, "BLOCK must be a power of two from 2, got 1"),
    ],
)
def test_parameters_refused(parameters, message):
    assert message in verilated.lint("tcam", **parameters)
