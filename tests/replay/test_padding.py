"""Slots at and beyond the capacity: there are some where rows of weights are filled up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick

from accel_rl import replay


@pytest.mark.parametrize("name", quick.only(["amper_fr"], ["amper_fr", "amper_k"]))
def test_what_is_left_out_leaves_no_trace(name):
    """Capacities that are not whole blocks: 600 slots lie in 19 blocks of 32.

    Earlier ones of several weights for a slot must not count. They do, in the largest weight
    and the mean, until something else is left out.
    """
    sampler = replay.SAMPLERS[name]()(replay.Ring(600), False)
    state = sampler.assign_range(sampler.init(), jnp.int32(0), jnp.ones(600))
    state = sampler.assign(state, jnp.int32([3, 3, 5]), jnp.float32([100, 2, 3]))
    np.testing.assert_allclose(sampler.highest(state), 3)
    np.testing.assert_allclose(state.blocks.total, 603)


@pytest.mark.parametrize("name", ["amper_fr", "amper_k"])
def test_slots_outside_the_capacity_are_left_out(name):
    sampler = replay.SAMPLERS[name]()(replay.Ring(600), False)
    state = sampler.assign_range(sampler.init(), jnp.int32(0), jnp.ones(600))
    state = sampler.assign(state, jnp.int32([600, 601]), jnp.float32([100, 100]))
    np.testing.assert_allclose(state.blocks.total, 600)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(replay.amper_fr, marks=pytest.mark.long),
        pytest.param(replay.amper_k, marks=pytest.mark.slow),
    ],
)
def test_updates_of_one_item_do_not_make_another(make):
    """Through the memory, in the form of accelerators: indices off the end, that gather clips."""
    memory = replay.make(np.int32(0), 7, 64, make(form="match"), least_size=1)
    state = memory.add(memory.init(), np.arange(7, dtype=np.int32))
    sample, update = jax.jit(memory.sample), jax.jit(memory.update)
    for seed in range(40):
        drawn = sample(state, jax.random.key(seed))
        assert np.all(drawn.indices < 7)
        state = update(state, drawn, np.linspace(1, 50, 64, dtype=np.float32))


@pytest.mark.parametrize("form", ["tree", "wide"])
def test_slots_of_a_memory_of_zeros_are_slots(form):
    made = replay.make(np.int32(0), 7, 64, replay.prioritised(form), least_size=1)
    state = jax.jit(made.add)(made.init(), np.zeros(7, np.int32), np.zeros(7, np.float32))
    drawn = jax.jit(made.sample)(state, jax.random.key(0))
    assert np.all((drawn.indices >= 0) & (drawn.indices < 7))
