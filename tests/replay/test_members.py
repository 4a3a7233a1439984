"""Draws from the members of a span: by random tries, or by a search of all slots."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chi_square import assert_distributed

from accel_rl.replay.members import draw_members
from accel_rl.replay.sampler import Span
from accel_rl.words import stream_seeds

CAPACITY, NUM = 5000, 4096


@functools.partial(jax.jit, static_argnames="num")
def draw(key, first, size, flags, num=NUM):
    span = Span(first, size)
    return draw_members(stream_seeds(key), span, CAPACITY, lambda slots: flags[slots], num)


def inside(first, size):
    return (first + np.arange(size)) % CAPACITY


@pytest.mark.parametrize(
    ("first", "size", "part"),
    [(0, 5000, 0.3), (4000, 3000, 0.1), (10, 2000, 1.0), (4999, 5000, 0.004), (3000, 4000, 0.001)],
    ids=["full", "around", "all", "rare", "very rare"],
)
def test_uniform_over_members_of_the_span(first, size, part):
    flags = np.random.default_rng(first).random(CAPACITY) < part
    slots, found = draw(jax.random.key(1), jnp.int32(first), jnp.int32(size), flags)
    members = np.intersect1d(np.flatnonzero(flags), inside(first, size))
    assert slots.dtype == jnp.int32
    if members.size > 400:  # too many for a test of each: of 20 classes, by place in the order
        places = np.searchsorted(members, slots)
        np.testing.assert_array_equal(members[places], slots)
        assert_distributed(
            places * 20 // members.size,
            np.arange(20),
            np.bincount(np.arange(members.size) * 20 // members.size),
        )
    else:
        assert_distributed(slots, members)
    # Tries end once there are enough, which makes the part too large by 1 in NUM or so at most.
    np.testing.assert_allclose(found, members.size / size, rtol=0.15)


@pytest.mark.parametrize("number", [1, 2])
def test_few_members_are_found_by_search(number):
    """One in 5000: tries do not fill 64 draws."""
    flags = np.zeros(CAPACITY, bool)
    flags[[17, 4321][:number]] = True
    slots, found = draw(jax.random.key(0), jnp.int32(4990), jnp.int32(5000), flags, num=64)
    assert set(np.asarray(slots).tolist()) == {17, 4321}.intersection(np.flatnonzero(flags))
    np.testing.assert_allclose(found, number / 5000, rtol=1e-6)  # exact where all were looked at


@pytest.mark.parametrize("size", [0, 100])
def test_none(size):
    flags = np.zeros(CAPACITY, bool)
    flags[200:] = True  # members, but none in the span
    slots, found = draw(jax.random.key(0), jnp.int32(0), jnp.int32(size), flags, num=8)
    np.testing.assert_array_equal(slots, -1)
    np.testing.assert_array_equal(found, 0)


def test_others_are_drawn_from_only_where_there_is_no_member():
    seeds, span = stream_seeds(jax.random.key(2)), Span(jnp.int32(4990), jnp.int32(1000))
    others = jnp.zeros(CAPACITY, bool)
    others = others.at[jnp.array([3, 500, 4995, 2000])].set(True)  # the last is not in the span

    @jax.jit
    def drawn(flags):
        return draw_members(
            seeds, span, CAPACITY, lambda slots: flags[slots], NUM, lambda slots: others[slots]
        )

    for members, wanted in (
        ([], [3, 500, 4995]),
        ([600, 4999], [600, 4999]),
        ([2000], [3, 500, 4995]),
    ):
        flags = np.zeros(CAPACITY, bool)
        flags[members] = True
        slots, found = drawn(flags)
        assert_distributed(slots, np.array(wanted))
        np.testing.assert_allclose(found, 2 * (wanted == members) / 1000, rtol=0.15)


@pytest.mark.long  # compiles a mapped search
def test_over_seeds_with_members_common_rare_and_absent():
    """Under vmap one element needs the search and others do not."""
    flags = np.zeros((3, CAPACITY), bool)
    flags[0, ::3], flags[1, 77] = True, True
    keys = jax.random.split(jax.random.key(5), 3)
    span = jnp.int32(0), jnp.int32(CAPACITY)
    slots, found = jax.vmap(functools.partial(draw, num=32), in_axes=(0, None, None, 0))(
        keys, *span, flags
    )
    assert (np.asarray(slots[0]) % 3 == 0).all()
    assert (np.asarray(slots[0]) >= 0).all()
    np.testing.assert_array_equal(slots[1], 77)
    np.testing.assert_array_equal(slots[2], -1)
    for k, key in enumerate(keys):
        alone, part = draw(key, *span, flags[k], num=32)
        np.testing.assert_array_equal(alone, slots[k])
        np.testing.assert_allclose(part, found[k], rtol=1e-6)
