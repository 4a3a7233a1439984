"""AMPER and rank-based replay through the conformance test, and in place in loops.

No formula gives these samplers' probabilities, which are only looked at for sense there.
"""

import functools

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import replay
from accel_rl.testing import assert_inplace

# Where the order is old, what was added since is not drawn; conformance wants every item to be.
CASES = {
    "amper_fr dithered rejection": functools.partial(replay.amper_fr, form="rejection"),
    "amper_fr dithered match": functools.partial(replay.amper_fr, form="match"),
    "amper_k rejection": functools.partial(replay.amper_k, form="rejection"),
    "rank_based": functools.partial(replay.rank_based, 1e-6),
}
FAST = (
    ("items_of_priority_zero_are_never_drawn", "rank_based"),
    ("where_masks_updates", "amper_fr dithered match"),
)


@pytest.mark.parametrize(
    ("check", "name"),
    [
        pytest.param(check, name, marks=() if (check, name) in FAST else pytest.mark.slow)
        for check in conformance.CHECKS
        for name in CASES
    ],
)
def test_conformance(check, name, monkeypatch):
    case = conformance.Case(CASES[name], probabilities=None)
    monkeypatch.setitem(conformance.SAMPLERS, name, case)
    conformance.CHECKS[check](name)


@pytest.mark.parametrize(
    ("name", "num_envs"),
    [
        ("rank_based", 8),
        pytest.param("amper_fr", 8, marks=pytest.mark.long),
        pytest.param("amper_k", 8, marks=pytest.mark.slow),
        *(
            pytest.param(name, None, marks=pytest.mark.slow)
            for name in ("amper_fr", "amper_k", "rank_based")
        ),
    ],
)
def test_loops_are_in_place(name, num_envs):
    """Temporary memory is that of the seldom taken search of all slots, or of the sort."""
    memory = replay.make({"x": np.zeros(8, np.float32)}, 100_000, 32, name, num_envs=num_envs)
    shape = (8,) if num_envs is None else (num_envs, 8)

    def run(state, keys):
        def step(state, key):
            state = memory.add(state, {"x": jax.random.normal(key, shape)})
            drawn = memory.sample(state, key, 0.5)
            state = memory.update(state, drawn, jnp.abs(drawn.batch["x"].sum(-1)))
            return state, (drawn.probabilities, drawn.weights)

        return jax.lax.scan(step, state, keys)

    keys = jax.random.split(jax.random.key(0), 4)
    # Of the memory's 3.6 MB, items are 3.2.
    assert_inplace(run, memory.init(), keys, temporary_bytes=3_000_000)
