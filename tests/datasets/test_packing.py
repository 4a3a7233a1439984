"""Records against Python's struct module, and round trips to the bit."""

import dataclasses
import struct

import numpy as np
import pytest
from dataset_examples import bits, dataset_of, small
from hypothesis import given
from hypothesis import strategies as st

from accel_rl.datasets import DatasetError, pack, unpack

# TERMINATED 1, TRUNCATED 2, EPISODE_START 4
FLAGS = [4, 0, 1, 6, 4, 2]


def fields(data):
    t = data.transitions
    columns = (t.state, t.action, t.reward, t.next_state, t.next_action)
    return zip(*(np.asarray(column).tolist() for column in columns), FLAGS, strict=True)


def test_narrow_records_byte_by_byte():
    packed = pack(small())
    codes = {struct.pack("<f", r): i for i, r in enumerate([-0.5, 0.0, -0.0, 0.25, 1.0, 2.0])}
    expected = b"".join(
        struct.pack("<HHhBB", s * 2 + a, s2 * 2, codes[struct.pack("<f", r)], a2, flags)
        for s, a, r, s2, a2, flags in fields(small())
    )
    assert packed.records.tobytes() == expected
    assert packed.records.itemsize == 8
    assert packed.codebook.tobytes() == b"".join(codes)
    assert packed.codebook.dtype == np.float32
    assert len(packed) == 6


def test_wide_records_byte_by_byte():
    packed = pack(small(), wide=True)
    expected = b"".join(
        struct.pack("<iifHH", s * 2 + a, s2 * 2, r, a2, flags)
        for s, a, r, s2, a2, flags in fields(small())
    )
    assert packed.records.tobytes() == expected
    assert packed.records.itemsize == 16
    assert packed.codebook is None


@pytest.mark.parametrize("wide", [False, True])
def test_words_are_the_same_memory(wide):
    packed = pack(small(), wide)
    assert packed.words.shape == (6, 4 if wide else 2)
    assert packed.words.tobytes() == packed.records.tobytes()
    assert np.shares_memory(packed.words, packed.records)


@st.composite
def valid_datasets(draw):
    num_states = draw(st.sampled_from([1, 3, 300, 70_000]))
    num_actions = draw(st.sampled_from([1, 2, 256, 257]))
    episodes = []
    for _ in range(draw(st.integers(1, 4))):
        length = draw(st.integers(1, 4))
        state, action = st.integers(0, num_states - 1), st.integers(0, num_actions - 1)
        reward = st.floats(width=32, allow_nan=False, allow_infinity=False)
        episodes.append(
            (
                draw(st.lists(state, min_size=length + 1, max_size=length + 1)),
                draw(st.lists(action, min_size=length + 1, max_size=length + 1)),
                draw(st.lists(reward, min_size=length, max_size=length)),
                draw(st.booleans()),
            )
        )
    return dataset_of(episodes, num_states, num_actions, seed=draw(st.none() | st.just(1)))


@given(valid_datasets(), st.booleans())
def test_round_trip_to_the_bit(data, wide):
    packed = pack(data, wide or None)
    fits = data.info.num_states * data.info.num_actions <= 65_536 and data.info.num_actions <= 256
    assert packed.records.itemsize == (8 if fits and not wide else 16)
    assert bits(unpack(packed)) == bits(data)


@pytest.mark.parametrize(
    ("num_states", "num_actions", "limit"),
    [
        (256, 257, "S*A is 65792, at most 65536, A is 257, at most 256"),
        (65_537, 1, "S*A is 65537, at most 65536"),
        (2, 257, "A is 257, at most 256"),
        (256, 256, None),
        (65_536, 1, None),
    ],
)
def test_the_limits_of_the_narrow_record(num_states, num_actions, limit):
    last = ([num_states - 1] * 2, [num_actions - 1] * 2, [1.0], False)
    data = dataset_of([last], num_states, num_actions)
    assert bits(unpack(pack(data))) == bits(data)
    if limit is None:
        assert bits(unpack(pack(data, wide=False))) == bits(data)
        return
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - compared whole
        pack(data, wide=False)
    assert str(caught.value) == f"too large for the 8-byte record: {limit}"


def test_the_limit_of_the_codebook():
    def with_rewards(count):
        return dataset_of([([0] * (count + 1), [0] * (count + 1), np.arange(count), False)], 1, 1)

    full = with_rewards(32_768)
    packed = pack(full, wide=False)
    assert packed.records["reward"].max() == 32_767
    assert bits(unpack(packed)) == bits(full)
    more = with_rewards(32_769)
    assert pack(more).records.itemsize == 16
    with pytest.raises(ValueError, match="distinct rewards is 32769, at most 32768"):
        pack(more, wide=False)


def test_the_limits_of_the_wide_record():
    at_limit = dataset_of([([2**15 - 1] * 2, [2**16 - 1] * 2, [1.0], False)], 2**15, 2**16)
    assert bits(unpack(pack(at_limit))) == bits(at_limit)
    for num_states, num_actions, message in (
        (2**15 + 1, 2**16, r"S\*A is 2147549184, at most 2147483648"),
        (2, 2**16 + 1, "A is 65537, at most 65536"),
    ):
        data = dataset_of([([0, 0], [0, 0], [1.0], False)], num_states, num_actions)
        with pytest.raises(ValueError, match=f"too large for the 16-byte record: {message}"):
            pack(data)


def test_an_invalid_dataset_is_not_packed():
    data = dataset_of([([0, 4], [0, 0], [1.0], False)], 4, 1)
    with pytest.raises(DatasetError, match="row 0 of 1: next_state is 4"):
        pack(data)


def test_codes_are_not_taken_for_rewards():
    with pytest.raises(AssertionError):
        unpack(dataclasses.replace(pack(small()), codebook=None))
