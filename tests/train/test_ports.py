"""The replay port of this process."""

import jax
import numpy as np
import port_conformance
import pytest

from accel_rl import replay, train


def make_port(example, capacity, batch_size, *, num_envs, n_step, sampler, alpha):
    memory = replay.make(example, capacity, batch_size, sampler, num_envs=num_envs, n_step=n_step)
    return train.LocalPort(memory, {} if sampler == "uniform" else {"alpha": alpha})


def test_conforms():
    port_conformance.check_port(make_port)


def test_is_the_memory_on_a_device():
    memory = replay.make(port_conformance.EXAMPLE, 64, 8, "prioritised", num_envs=2, n_step=2)
    steps, device = port_conformance.Steps(10), jax.devices()[3]
    state = memory.add(memory.init(alpha=0.7), steps.rows(0, 8))
    port = train.LocalPort(memory, state=state, device=device)
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


def test_bad_arguments():
    memory = replay.make(port_conformance.EXAMPLE, 64, 8, "prioritised", num_envs=2)
    with pytest.raises(ValueError, match="hyper-parameters are the state's"):
        train.LocalPort(memory, {"alpha": 0.5}, state=memory.init())
    with pytest.raises(TypeError, match="beta"):
        train.LocalPort(memory, {"beta": 0.5})
