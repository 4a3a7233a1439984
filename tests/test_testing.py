"""`assert_inplace` finds the programs that copy, and says what it found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl.testing import assert_inplace

SIZE, STEPS = 65_536, 10


def state(size=SIZE):
    return {"data": jnp.zeros((size, 2)), "row": jnp.int32(0)}


def write(state, value):
    data = jax.lax.dynamic_update_slice_in_dim(
        state["data"], jnp.full((1, 2), value), state["row"], 0
    )
    return {"data": data, "row": state["row"] + 1}


def looped(step):
    def run(state, values):
        return jax.lax.scan(step, state, values)

    return run


VALUES = np.arange(STEPS, dtype=np.float32)


def good(state, value):
    state = write(state, value)
    return state, state["data"][0]


def identity_as_the_false_branch(state, value):
    return jax.lax.cond(value > 3, write, lambda state, _: state, state, value), None


@pytest.mark.parametrize("step", [good, identity_as_the_false_branch])
def test_programs_in_place_pass(step):
    assert_inplace(looped(step), state(), VALUES)


def test_a_single_step_and_several_seeds_pass():
    assert_inplace(good, state(), jnp.float32(1))
    seeds = jax.tree.map(lambda x: jnp.stack([x] * 3), state())
    assert_inplace(jax.vmap(looped(good), in_axes=(0, None)), seeds, VALUES)


def identity_as_the_true_branch(state, value):
    return jax.lax.cond(value <= 3, lambda state, _: state, write, state, value), None


def old_buffer_is_read_after_the_new_is_written(state, value):
    new = write(state, value)
    slots = (new["data"][state["row"], :1].astype(jnp.int32) * 7) % SIZE
    return new, state["data"][slots]


def select_over_the_buffer(state, value):
    """In its own memory, but of all of it."""
    data = jnp.where(state["data"] < value, value, state["data"])
    return {**state, "data": data}, None


def everything_is_rolled(state, value):
    return {**state, "data": jnp.roll(state["data"], 1, axis=0)}, None


@pytest.mark.parametrize(
    "step",
    [
        identity_as_the_true_branch,
        select_over_the_buffer,
        old_buffer_is_read_after_the_new_is_written,
        everything_is_rolled,
    ],
)
def test_programs_that_copy_are_found(step):
    with pytest.raises(AssertionError, match="not in place: "):
        assert_inplace(looped(step), state(), VALUES)


def test_a_mapped_predicate_is_found():
    """Under vmap a `cond` on a mapped predicate is a select over the buffer."""

    def run(state, values):
        return jax.vmap(looped(identity_as_the_false_branch))(state, values)

    seeds = jax.tree.map(lambda x: jnp.stack([x] * 3), state())
    with pytest.raises(AssertionError, match="not in place"):
        assert_inplace(run, seeds, np.stack([VALUES] * 3))


@pytest.mark.parametrize(
    "fn",
    [
        lambda state, values: values.sum(),  # gives nothing back
        lambda state, values: looped(good)(state, values)[1],
        lambda state, values: {**state, "data": state["data"].astype(jnp.float16)},
        lambda state, values: {**state, "data": state["data"][:-1]},
    ],
)
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_a_state_that_is_not_given_back_is_found(fn):
    with pytest.raises(AssertionError, match="must be among the results, with the same shapes"):
        assert_inplace(fn, state(), VALUES)


def test_small_arrays_are_not_looked_at():
    def run(state, values):
        return looped(identity_as_the_true_branch)(state, values)

    small = {**state(16), "log": jnp.zeros(5000)}

    def keeps_the_log(state, values):
        new, _ = run({k: state[k] for k in ("data", "row")}, values)
        return {**new, "log": state["log"].at[3].set(values[0])}

    assert_inplace(keeps_the_log, small, VALUES)
    with pytest.raises(AssertionError, match="not in place"):
        assert_inplace(keeps_the_log, {**state(1000), "log": jnp.zeros(5000)}, VALUES)


def test_nothing_to_look_at():
    with pytest.raises(ValueError, match=r"an array of least_bytes \(4096\) or more"):
        assert_inplace(good, state(16), jnp.float32(0))
    assert_inplace(good, state(16), jnp.float32(0), least_bytes=64)


def test_other_dtypes_are_found_too():
    for dtype in (jnp.uint8, bool, jnp.bfloat16, jnp.int32):

        def swap(state, _, dtype=dtype):
            return jax.lax.cond(
                state["row"] < 5,
                lambda state: state,
                lambda state: {
                    "data": state["data"].at[state["row"]].set(jnp.ones((), dtype)),
                    "row": state["row"] + 1,
                },
                state,
            ), None

        start = {"data": jnp.zeros((SIZE, 2), dtype), "row": jnp.int32(0)}
        with pytest.raises(AssertionError, match="not in place"):
            assert_inplace(looped(swap), start, VALUES)
