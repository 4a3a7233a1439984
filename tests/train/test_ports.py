"""The replay ports of this process."""

import jax
import numpy as np
import port_conformance
import pytest
import quick

from accel_rl import replay, train


def make_port(example, capacity, batch_size, *, num_envs, n_step, sampler, alpha):
    memory = replay.make(example, capacity, batch_size, sampler, num_envs=num_envs, n_step=n_step)
    return train.LocalPort(memory, memory.init(**hyper(sampler, alpha)))


def make_split_port(example, capacity, batch_size, *, num_envs, n_step, sampler, alpha):
    memory = replay.make(example, capacity, batch_size, sampler, num_envs=num_envs, n_step=n_step)
    return split(memory, memory.init(**hyper(sampler, alpha)))


def hyper(sampler, alpha=0.7):
    return {} if sampler == "uniform" else {"alpha": alpha}


def split(memory, state):
    first, second = jax.devices()[2], jax.devices()[5]
    return train.SplitPort(memory, state, index_device=first, store_device=second)


@pytest.mark.parametrize("make", quick.only([make_port], [make_port, make_split_port]))
def test_conforms(make):
    port_conformance.check_port(make)


@pytest.mark.long  # compiles the memory again
def test_is_the_memory_on_a_device():
    memory = replay.make(port_conformance.EXAMPLE, 64, 8, "prioritised", num_envs=2, n_step=2)
    steps, device = port_conformance.Steps(10), jax.devices()[3]
    state = memory.add(memory.init(alpha=0.7), steps.rows(0, 8))
    port = train.LocalPort(memory, state, device=device)
    port.add(steps.rows(8))
    state = jax.jit(memory.add)(state, steps.rows(8))  # which the port has not given away
    wanted = jax.jit(memory.sample)(state, jax.random.key(1), 0.4, 0.9)
    got = port.sample(jax.random.key(1), 0.4, 0.9)
    for ours, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert ours.devices() == {device}
        np.testing.assert_array_equal(ours, theirs)
    priorities = np.arange(8, dtype=np.float32)
    port.update(got, priorities)
    state = jax.jit(memory.update)(state, wanted, priorities)
    for ours, theirs in zip(jax.tree.leaves(port.state), jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("sampler", "n_step"),
    [
        pytest.param("uniform", 3, marks=pytest.mark.slow),
        pytest.param("prioritised", 1, marks=pytest.mark.slow),
        ("prioritised", 3),
        pytest.param("amper_fr", 1, marks=pytest.mark.slow),
    ],
)
def test_split_is_what_is_together(sampler, n_step):
    memory = replay.make(port_conformance.EXAMPLE, 64, 8, sampler, num_envs=2, n_step=n_step)
    state, steps = memory.init(**hyper(sampler)), port_conformance.Steps(48)
    local, parts = train.LocalPort(memory, state), split(memory, state)

    def same(ours, theirs):
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()

    for t in range(0, 48, 8):  # which is beyond the capacity
        for port in (local, parts):
            port.add(steps.rows(t, t + 8), np.linspace(0.1, 2, 16, dtype="f4").reshape(8, 2))
        samples = [port.sample(jax.random.key(t), 0.4, 0.9) for port in (local, parts)]
        same(*samples)
        for port, sample in zip((local, parts), samples, strict=True):
            port.update(sample, np.linspace(0.5, 4, 8, dtype="f4"))
        same(local.state, parts.state)
    index, store, sampled = parts.state.index, parts.state.store, samples[1]
    for tree, device in ((index, 2), (sampled.indices, 2), (store, 5), (sampled.batch, 5)):
        for leaf in jax.tree.leaves(tree):
            assert leaf.devices() == {jax.devices()[device]}
    again = split(memory, local.state)
    same(again.sample(jax.random.key(1), 0.4, 0.9), local.sample(jax.random.key(1), 0.4, 0.9))
    # What is refused changes neither part.
    kept = jax.tree.map(np.array, parts.state)
    with pytest.raises(ValueError, match="steps added at once must be from 1 to"):
        parts.add(steps.rows(0, 40))
    same(parts.state, kept)
