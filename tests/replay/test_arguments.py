"""What `replay.make` and its functions say of arguments that are no good."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import replay
from accel_rl.types import Transition

ITEM = {"x": np.float32(0)}
STEP = Transition(np.zeros(2, np.float32), np.int32(0), np.float32(0), np.float32(1))


@pytest.mark.parametrize(
    ("alias", "name"),
    [("per", "prioritised"), ("prioritized", "prioritised"), ("amper-fr", "amper_fr")],
)
def test_samplers_have_the_names_of_the_command(alias, name):
    found, want = (repr(replay.make(ITEM, 8, 2, each).init()) for each in (alias, name))
    assert found == want


@pytest.mark.parametrize(
    ("example", "options", "error", "message"),
    [
        (ITEM, {"capacity": 0}, ValueError, "capacity must be from 1 to .*, got 0"),
        (ITEM, {"capacity": -3}, ValueError, "capacity must be from 1 to .*, got -3"),
        (ITEM, {"capacity": 1e3}, TypeError, "capacity must be an int, got 1000.0"),
        (ITEM, {"capacity": 2**31}, ValueError, "capacity must be from 1 to 1073741824"),
        (ITEM, {"num_envs": 3}, ValueError, r"multiple of num_envs \(3\), got 8: try 6"),
        (ITEM, {"num_envs": 0}, ValueError, "num_envs must be at least 1, got 0"),
        (ITEM, {"batch_size": 0}, ValueError, "batch_size must be at least 1, got 0"),
        (ITEM, {"batch_size": 9}, ValueError, "batch_size must be from 1 to 8, got 9"),
        (ITEM, {"least_size": 0}, ValueError, r"least_size.* from 1 to 8.*got 0"),
        (ITEM, {"least_size": 9}, ValueError, r"least_size.* from 1 to 8.*got 9"),
        (STEP, {"n_step": 2, "batch_size": 7}, ValueError, "from 1 to 6"),
        (ITEM, {"sampler": "best"}, ValueError, "sampler must be one of uniform, pri.*got 'best'"),
        (ITEM, {"weights_over": "all"}, ValueError, "weights_over .*batch, buffer, got 'all'"),
        (ITEM, {"n_step": 2}, TypeError, "n_step and frame_stack need .*Transition, got dict"),
        (ITEM, {"frame_stack": 2}, TypeError, "n_step and frame_stack need .*Transition, got dict"),
        (STEP, {"n_step": 0}, ValueError, "n_step must be at least 1, got 0"),
        (STEP, {"frame_stack": 0}, ValueError, "frame_stack must be at least 1, got 0"),
        (STEP, {"sequence_length": 0}, ValueError, "sequence_length must be at least 1, got 0"),
        (STEP, {"sequence_length": 2, "n_step": 2}, ValueError, "n_step is for single transitions"),
        (ITEM, {"sequence_period": 2}, ValueError, "sequence_period must be from 1 to 1, got 2"),
        (
            ITEM,
            {"sequence_length": 2, "sequence_period": 0},
            ValueError,
            "sequence_period must be at least 1.*got 0",
        ),
        (STEP, {"n_step": 8}, ValueError, "an item's 9 steps of each environment, at least 9"),
        (ITEM, {"sequence_length": 9}, ValueError, "an item's 9 steps .* at least 9, got 8"),
        (
            Transition(np.float32(0), 0, np.float64(0), np.int32(1)),
            {},
            TypeError,
            "example.discount must be float32, got int32",
        ),
        (
            Transition(np.float32(0), 0, np.int32(0), np.float32(1)),
            {},
            TypeError,
            "example.reward must be float32, got int32",
        ),
        (
            Transition(np.float32(0), 0, np.zeros(1, np.float32), np.float32(1)),
            {},
            ValueError,
            r"example.reward must have shape \(\), got \(1,\)",
        ),
        (
            Transition(np.float32(0), 0, np.float32(0), np.float32(1), np.int32(0)),
            {},
            TypeError,
            "example.truncated must be bool, got int32",
        ),
    ],
)
def test_make(example, options, error, message):
    with pytest.raises(error, match=message):
        replay.make(example, **{"capacity": 8, "batch_size": 2, **options})


@pytest.mark.parametrize("leaf", ["text", b"bytes", np.datetime64("2020-01-01"), object()])
def test_an_example_of_no_numbers(leaf):
    with pytest.raises(TypeError, match="JAX only supports number, bool"):
        replay.make({"x": leaf}, 8, 2).init()


@pytest.mark.long  # compiles a memory of its own
def test_large_and_small_priorities_can_be_drawn():
    """Their powers leave float32's range, or their sums do."""
    for form in ("tree", "wide"):
        made = replay.make(ITEM, 7, 64, replay.prioritised(form), least_size=1)
        add, sample = jax.jit(made.add), jax.jit(made.sample)
        for priority, alpha in ((3e38, 1.0), (1e20, 2.0), (1e-30, 2.0), (1e-37, 1.0)):
            given = np.full(7, priority, np.float32)
            state = add(made.init(alpha=alpha), {"x": np.zeros(7, np.float32)}, given)
            drawn = sample(state, jax.random.key(0))
            np.testing.assert_allclose(drawn.probabilities, 1 / 7, rtol=1e-6)


def test_prioritised():
    with pytest.raises(ValueError, match=r"form must be one of .*tree.*got 'heap'"):
        replay.prioritised("heap")
    made = replay.make(ITEM, 8, 2, "prioritised")
    for alpha in (-0.5, np.nan, np.inf):
        with pytest.raises(ValueError, match="alpha must be finite and at least 0"):
            made.init(alpha=alpha)
    with pytest.raises(TypeError, match="beta"):
        made.init(beta=1.0)


def test_priorities_of_the_wrong_shape():
    made = replay.make(ITEM, 8, 4, "prioritised", num_envs=2)
    items = {"x": np.zeros((3, 2), np.float32)}
    for wrong in (np.ones(3, np.float32), np.ones((2, 3), np.float32)):
        with pytest.raises(ValueError, match=r"priorities must have shape \(3, 2\), got"):
            made.add(made.init(), items, wrong)
    one = {"x": np.zeros(2, np.float32)}
    with pytest.raises(ValueError, match=r"priorities must have shape \(2,\), got \(1, 2\)"):
        made.add(made.init(), one, np.ones((1, 2), np.float32))
    made.add(made.init(), one, np.ones(2, np.float32))
    state = made.add(made.init(), items, np.ones((3, 2), np.float32))
    drawn = made.sample(state, jax.random.key(0))
    with pytest.raises(ValueError, match=r"priorities must have shape \(4,\), got \(3,\)"):
        made.update(state, drawn, np.ones(3, np.float32))
    with pytest.raises(ValueError, match=r"priorities must have shape \(4,\), got \(4, 1\)"):
        made.update(state, drawn, jnp.ones((4, 1)))


def test_priorities_may_be_any_numbers():
    made = replay.make(ITEM, 4, 4, "prioritised")
    state = made.init(alpha=1)
    for k, priority in enumerate((2, 2.0, np.float64(2), np.int8(2))):
        state = made.add(state, {"x": np.float32(k)}, priority)
    drawn = made.sample(state, jax.random.key(0), beta=1)
    np.testing.assert_allclose(drawn.probabilities, 0.25)
    for priorities in ([1, 2, 3, 4], np.arange(4), np.ones(4), jnp.arange(4)):
        made.update(state, drawn, priorities)


def test_targets_need_gamma():
    made = replay.make(STEP, 8, 1)
    state = jax.jit(made.add)(made.init(), jax.tree.map(lambda x: np.stack([x] * 4), STEP))
    with pytest.raises(TypeError, match="sample needs gamma, the discount factor"):
        made.sample(state, jax.random.key(0))


def test_parts_over_different_rings():
    first, second = replay.make(ITEM, 8, 2), replay.make(ITEM, 9, 2)
    with pytest.raises(ValueError, match=r"must share a ring, got Ring\(capacity=8.*capacity=9"):
        replay.compose(first.parts[0], second.parts[1])


def test_parts_can_be_put_together_again():
    made = replay.make(ITEM, 8, 2, least_size=3)
    again = replay.compose(*made.parts, least_size=3)
    state = again.add(again.init(), {"x": np.float32([1, 2, 3])})
    expected = made.add(made.init(), {"x": np.float32([1, 2, 3])})
    jax.tree.map(np.testing.assert_array_equal, state, expected)
    drawn = again.sample(state, jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, drawn, made.sample(state, jax.random.key(0)))


def test_an_index_knows_nothing_of_what_is_stored():
    index = replay.make_index(replay.Ring(6, 2), replay.uniform()(replay.Ring(6, 2), False), 4)
    state = index.insert(index.init(), 2)
    drawn = index.sample(state, jax.random.key(0))
    assert drawn.batch is None
    assert set(np.asarray(drawn.indices).tolist()) <= {0, 1, 2, 3}
    with pytest.raises(ValueError, match="steps added at once must be from 1 to 3, got 4"):
        index.insert(state, 4)
    with pytest.raises(ValueError, match="sample needs at least one complete item"):
        index.sample(index.init(), jax.random.key(0))
    with pytest.raises(ValueError, match=r"priorities must have shape \(2, 2\), got \(4,\)"):
        index.insert(state, 2, np.ones(4, np.float32))


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (np.ones((4, 1), bool), r"different shapes: \[\(4, 1\), \(4,\)\]"),
        (2, "has type int64 but expected bool"),
        (np.ones(4, np.float32), "has type float32 but expected bool"),
    ],
)
@pytest.mark.parametrize("sampler", ["uniform", "prioritised"])
def test_masks_of_updates(sampler, where, message):
    made = replay.make(ITEM, 8, 4, sampler)
    state = made.add(made.init(), {"x": np.zeros(8, np.float32)})
    drawn = made.sample(state, jax.random.key(0))
    with pytest.raises(AssertionError, match=message):
        made.update(state, drawn, np.ones(4, np.float32), where)


def test_rates_are_scalars_in_range():
    made = replay.make(ITEM, 8, 4, "prioritised")
    state = made.add(made.init(), {"x": np.zeros(8, np.float32)})
    with pytest.raises(ValueError, match=r"beta must be a scalar, got shape \(4,\)"):
        made.sample(state, jax.random.key(0), np.ones(4, np.float32))
    with pytest.raises(ValueError, match="beta must be finite and at least 0"):
        made.sample(state, jax.random.key(0), -1.0)


def test_what_a_sampler_cannot_tell_is_refused():
    with pytest.raises(ValueError, match="weights_over must be 'batch'"):
        replay.make(ITEM, 8, 4, "amper_fr", weights_over="buffer")
    made = replay.make(ITEM, 8, 4, "prioritised", weights_over="buffer")
    with pytest.raises(ValueError, match="weights_over must be 'batch' to be sharded"):
        replay.shard(made, "part")
    with pytest.raises(TypeError, match=r"batch_size must be an int, got 4\.0"):
        replay.make(ITEM, 8, 4.0)
