"""`testing.check_sampler` passes the samplers here, and finds what is broken in one."""

import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import replay, testing

TREE = replay.prioritised("tree")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(TREE, id="tree"),
        pytest.param(replay.prioritised("wide"), id="wide", marks=pytest.mark.slow),
    ],
)
def test_sound_samplers_pass(make):
    testing.check_sampler(make, alpha=0.5)


def first_of_several_stays(sampler):
    def assign(state, slots, weights):
        return sampler.assign(state, slots[::-1], weights[::-1])

    return sampler._replace(assign=assign)


def draws_uniformly(sampler):
    def draw(state, span, positions, words):
        slots = (positions * 12).astype(jnp.int32)
        return slots, sampler.draw(state, span, positions, words)[1]

    return sampler._replace(draw=draw)


def tells_wrong_odds(sampler):
    def draw(*arguments):
        slots, probabilities = sampler.draw(*arguments)
        return slots, probabilities * np.float32(0.9)

    return sampler._replace(draw=draw)


def does_not_go_around(sampler):
    def assign_range(state, first, weights):
        return sampler.assign(state, first + np.arange(weights.shape[0], dtype=np.int32), weights)

    return sampler._replace(assign_range=assign_range)


def keeps_the_first_highest(sampler):
    return sampler._replace(highest=lambda state: jnp.float32(1))


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (first_of_several_stays, "highest"),
        (draws_uniformly, "a slot of weight 0 was drawn"),
        (tells_wrong_odds, "a probability is not"),
        (does_not_go_around, "highest|probability"),
        (keeps_the_first_highest, "empty memory has a highest"),
    ],
)
def test_broken_samplers_are_found(broken, found):
    with pytest.raises(AssertionError, match=found):
        testing.check_sampler(lambda ring, selective: broken(TREE(ring, selective)), alpha=0.5)
