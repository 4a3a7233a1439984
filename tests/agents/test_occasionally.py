"""Work that is done in some steps only: counted by what it tells the host."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.agents.occasionally import occasionally


def test_work_is_done_where_due_and_skipped_where_nobody_needs_it():
    calls = []

    @jax.jit
    def run(due, x):
        def work(state):
            jax.debug.callback(lambda: calls.append(1))
            return {"x": state["x"] + 1}

        return jax.vmap(lambda due, x: occasionally(due, work, {"x": x}))(due, x)["x"]

    x = jnp.arange(3, dtype=jnp.float32)
    np.testing.assert_array_equal(run(jnp.array([False, False, False]), x), [0, 1, 2])
    jax.effects_barrier()
    assert not calls
    np.testing.assert_array_equal(run(jnp.array([True, False, True]), x), [1, 1, 3])
    jax.effects_barrier()
    assert calls
