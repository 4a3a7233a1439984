"""Loops over replay buffers change them in place: the compiled programs copy no buffer.

Peers' loops copy the tree, or the buffer, at every step (see docs/replay.md). State arrays are
larger than batches here, and of other sizes.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import quick
from kernels_present import needs_kernels

from accel_rl import replay
from accel_rl.testing import assert_inplace
from accel_rl.types import Transition

CAPACITY, BATCH, STEPS, ENVS = 20_000, 32, 4, 8
EXAMPLE = {"x": np.zeros(4, np.float32), "y": np.float32(0)}
SAMPLERS = {"uniform": replay.uniform, "tree": lambda: replay.prioritised("tree")}
samplers = pytest.mark.parametrize("name", SAMPLERS)
tree_first = pytest.mark.parametrize("name", quick.only(["tree"], SAMPLERS))
long_samplers = pytest.mark.parametrize(
    "name",
    [
        pytest.param("uniform", marks=pytest.mark.slow),
        pytest.param("tree", marks=pytest.mark.long),
    ],
)


def make(name, **options):
    return replay.make(EXAMPLE, CAPACITY, BATCH, SAMPLERS[name](), num_envs=ENVS, **options)


def new_items(key):
    x = jax.random.normal(key, (ENVS, 4))
    return {"x": x, "y": x.sum(-1)}


def steps(step, state, key):
    return jax.lax.scan(step, state, jax.random.split(key, STEPS))


KEY = jax.random.key(0)


@samplers
def test_add_sample_update(name):
    memory = make(name)

    def step(state, key):
        state = memory.add(state, new_items(key))
        drawn = memory.sample(state, key, 0.5)
        state = memory.update(state, drawn, jnp.abs(drawn.batch["y"]))
        return state, (drawn.probabilities, drawn.weights, drawn.indices)

    assert_inplace(functools.partial(steps, step), memory.init(), KEY)


@tree_first
def test_single_calls(name):
    memory = make(name)
    state = memory.init()
    assert_inplace(memory.add, state, new_items(KEY))
    chunk = jax.tree.map(lambda x: jnp.stack([x] * 5), new_items(KEY))
    assert_inplace(memory.add, state, chunk)
    assert_inplace(memory.add, state, chunk, jnp.ones((5, ENVS)))
    if name != "uniform":
        state = jax.jit(memory.add)(state, chunk)
        drawn = jax.jit(memory.sample)(state, KEY)
        assert_inplace(memory.update, state, drawn, jnp.ones(BATCH))


def learner(memory, name):
    """Step of a regression whose loss is weighted and whose errors become priorities."""
    optimiser = optax.adam(1e-3)

    def init(key):
        first, second = jax.random.split(key)
        params = {
            "hidden": jax.random.normal(first, (4, 16)),
            "out": jax.random.normal(second, (16,)),
        }
        return params, optimiser.init(params)

    def loss(params, batch, weights):
        errors = jnp.tanh(batch["x"] @ params["hidden"]) @ params["out"] - batch["y"]
        return (weights * errors**2).mean(), errors

    def step(carry, key):
        state, params, moments = carry
        state = memory.add(state, new_items(key))
        drawn = memory.sample(state, key, 0.4)
        (value, errors), gradient = jax.value_and_grad(loss, has_aux=True)(
            params, drawn.batch, drawn.weights
        )
        with jax.numpy_dtype_promotion("standard"):  # optax counts on it
            updates, moments = optimiser.update(gradient, moments)
        params = optax.apply_updates(params, updates)
        state = memory.update(state, drawn, jnp.abs(errors) + 1e-3)
        return (state, params, moments), (value, drawn.probabilities)

    return init, step


@tree_first
def test_with_a_learner(name):
    memory = make(name)
    init, step = learner(memory, name)
    carry = memory.init(), *init(KEY)
    assert_inplace(functools.partial(steps, step), carry, KEY)


@long_samplers
def test_with_a_learner_over_seeds(name):
    memory = make(name)
    init, step = learner(memory, name)

    def start(key):
        return memory.init(), *init(key)

    keys = jax.random.split(KEY, 3)
    assert_inplace(jax.vmap(functools.partial(steps, step)), jax.vmap(start)(keys), keys)


def cond_loop(memory):
    """Sample and update in one branch of a `cond`, as loops do that wait for enough items."""

    def learn(state, key):
        drawn = memory.sample(state, key)
        return memory.update(state, drawn, jnp.abs(drawn.batch["y"])), drawn.probabilities

    def step(carry, key):
        state, count = carry
        state = memory.add(state, new_items(key))
        state, probabilities = jax.lax.cond(
            count >= 2,
            lambda state: learn(state, key),
            lambda state: (state, jnp.zeros(BATCH)),
            state,
        )
        return (state, count + 1), probabilities

    return lambda state, key: steps(step, (state, jnp.int32(0)), key)


@pytest.mark.parametrize(
    ("sampler", "temporary_bytes"),
    [
        (replay.uniform(), None),
        (replay.prioritised("tree"), None),
        pytest.param(replay.prioritised("native"), None, marks=needs_kernels),
        (replay.amper_fr(form="match"), None),
        (replay.amper_k(form="match"), None),
        # Seldom: AMPER's search of all weights where rejection found too few, and the sort of all.
        (replay.amper_fr(form="rejection"), 40 * CAPACITY),
        (replay.rank_based(), 40 * CAPACITY),
    ],
    ids=["uniform", "tree", "native", "amper_fr", "amper_k", "amper_fr rejection", "rank_based"],
)
def test_sample_and_update_in_one_cond(sampler, temporary_bytes):
    memory = replay.make(EXAMPLE, CAPACITY, BATCH, sampler, num_envs=ENVS)
    assert_inplace(cond_loop(memory), memory.init(), KEY, temporary_bytes=temporary_bytes)


@pytest.mark.long
@pytest.mark.parametrize(
    "sampler",
    [
        replay.prioritised("tree"),
        pytest.param(replay.prioritised("native"), marks=needs_kernels),
        replay.amper_fr(form="match"),
    ],
    ids=["tree", "native", "amper_fr"],
)
def test_a_cond_on_what_all_seeds_share_stays_one_under_vmap(sampler):
    memory = replay.make(EXAMPLE, CAPACITY, BATCH, sampler, num_envs=ENVS)
    states = jax.vmap(lambda _: memory.init())(jnp.arange(3))
    assert_inplace(jax.vmap(cond_loop(memory)), states, jax.random.split(KEY, 3))


@pytest.mark.slow  # as within a cond
@samplers
def test_masked_instead_of_cond(name):
    memory = make(name)

    def step(state, key):
        state = memory.add(state, new_items(key))
        drawn = memory.sample(state, key)
        ready = memory.can_sample(state)
        state = memory.update(state, drawn, jnp.abs(drawn.batch["y"]), ready)
        return state, drawn.probabilities

    assert_inplace(functools.partial(steps, step), memory.init(), KEY)


@pytest.mark.parametrize("sampler", [replay.amper_fr, replay.amper_k])
def test_batches_of_more_items_than_there_are_blocks(sampler):
    """AMPER then sums all weights in an update, and XLA each of the sums of sums anew."""
    memory = replay.make(EXAMPLE, 2_000, 128, sampler(form="match"), num_envs=ENVS)

    def step(state, key):
        state = memory.add(state, new_items(key))
        drawn = memory.sample(state, key)
        return memory.update(state, drawn, jnp.abs(drawn.batch["y"])), drawn.probabilities

    # The candidates of a batch take more than so small a state.
    assert_inplace(functools.partial(steps, step), memory.init(), KEY, temporary_bytes=2**17)


def test_add_last():
    """The order that copies most for peers: what was sampled is read from the buffer before."""
    memory = make("tree")  # of "uniform" nothing that is learned goes into an update: add first

    def step(state, key):
        drawn = memory.sample(state, key)
        state = memory.update(state, drawn, jnp.abs(drawn.batch["y"]))
        return memory.add(state, new_items(key)), drawn.probabilities

    assert_inplace(functools.partial(steps, step), memory.init(), KEY)


def transition(key, has_final):
    first, second = jax.random.split(key)
    observation, later = jax.random.normal(first, (2, ENVS, 3))
    return Transition(
        observation,
        jnp.zeros(ENVS, jnp.int32),
        observation[:, 0],
        (jax.random.uniform(second, (ENVS,)) > 0.1).astype(jnp.float32),
        jax.random.uniform(second, (ENVS,)) > 0.9,
        later if has_final else None,
    )


def transitions_loop(memory, new):
    def step(state, key):
        state = memory.add(state, new(key))
        drawn = memory.sample(state, key, 0.5, 0.99)
        priorities = jnp.abs(drawn.batch.reward) + drawn.batch.discount
        return memory.update(state, drawn, priorities), (drawn.probabilities, drawn.batch.reward)

    return functools.partial(steps, step)


@pytest.mark.slow  # as of stacks
@samplers
@pytest.mark.parametrize("has_final", [True, False])
def test_n_step_targets_of_several_environments(name, has_final):
    new = functools.partial(transition, has_final=has_final)
    example = jax.tree.map(lambda x: x[0], new(KEY))
    memory = replay.make(example, CAPACITY, BATCH, SAMPLERS[name](), num_envs=ENVS, n_step=3)
    assert_inplace(transitions_loop(memory, new), memory.init(), KEY)


@long_samplers
def test_stacks_of_small_integers(name):
    def new(key):
        frame = jax.random.bits(key, (ENVS, 6, 6), jnp.uint8)
        return dataclasses.replace(transition(key, False), observation=frame, truncated=None)

    example = jax.tree.map(lambda x: x[0], new(KEY))
    memory = replay.make(example, CAPACITY, BATCH, SAMPLERS[name](), num_envs=ENVS, frame_stack=4)
    assert_inplace(transitions_loop(memory, new), memory.init(), KEY)


@long_samplers
def test_sequences(name):
    memory = make(name, sequence_length=5, sequence_period=2)

    def step(state, key):
        state = memory.add(state, new_items(key))
        drawn = memory.sample(state, key)
        priorities = jnp.abs(drawn.batch.steps["y"]).max(axis=1)
        return memory.update(state, drawn, priorities), drawn.probabilities

    assert_inplace(functools.partial(steps, step), memory.init(), KEY)


# --- what users may get wrong, and are told


def select_over_the_memory(memory, state, key):
    new = memory.add(state, new_items(key))
    ready = memory.can_sample(state)
    return jax.tree.map(lambda a, b: jnp.where(ready, a, b), new, state), None


def sample_of_the_memory_before(memory, state, key):
    new = memory.add(state, new_items(key))
    drawn = memory.sample(state, key)
    return new, drawn.batch


def conditional_add_the_wrong_way_round(memory, state, key):
    state = jax.lax.cond(
        memory.size(state) > 5,
        lambda state: state,
        lambda state: memory.add(state, new_items(key)),
        state,
    )
    return state, None


COPIES_BEFORE_0_11 = pytest.mark.skipif(
    jax.__version_info__ >= (0, 11), reason="XLA copies no longer what passes a true branch"
)


# XLA makes a select over a uniform memory one of the row that is written.
@pytest.mark.parametrize(
    ("program", "name"),
    [
        (select_over_the_memory, "tree"),
        (sample_of_the_memory_before, "uniform"),
        pytest.param(sample_of_the_memory_before, "tree", marks=pytest.mark.slow),
        pytest.param(
            conditional_add_the_wrong_way_round,
            "uniform",
            marks=[COPIES_BEFORE_0_11, pytest.mark.slow],
        ),
        pytest.param(conditional_add_the_wrong_way_round, "tree", marks=COPIES_BEFORE_0_11),
    ],
)
def test_programs_that_copy_are_found(program, name):
    memory = make(name)
    loop = functools.partial(steps, functools.partial(program, memory))
    with pytest.raises(AssertionError, match="not in place"):
        assert_inplace(loop, memory.init(), KEY)


@samplers
def test_a_forgotten_state_is_found(name):
    memory = make(name)

    def forgets(state, items):
        return memory.size(memory.add(state, items))

    with (
        pytest.warns(UserWarning, match="donated buffers were not usable"),
        pytest.raises(AssertionError, match="must be among the results"),
    ):
        assert_inplace(forgets, memory.init(), new_items(KEY))
