"""A state that was saved and restored goes on as if it never was, to the bit."""

import functools

import jax
import numpy as np
import pytest
from conformance import SAMPLERS

from accel_rl import replay
from accel_rl.types import Transition

EXAMPLE = Transition(
    np.zeros((2, 2), np.uint8), np.int8(0), np.float32(0), np.float32(1), np.bool_(False)
)
ENVS, BATCH = 2, 8


def through_numpy(state, folder):
    leaves, structure = jax.tree.flatten(state)
    np.savez(folder / "state.npz", *leaves)
    with np.load(folder / "state.npz") as saved:
        return jax.tree.unflatten(structure, [saved[name] for name in saved.files])


def through_orbax(state, folder):
    """Orbax takes no arrays without elements, of which states have some."""
    import orbax.checkpoint as ocp

    leaves, structure = jax.tree.flatten(state)
    kept = {str(k): leaf for k, leaf in enumerate(leaves) if leaf.size}
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "state", kept)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(folder / "state", jax.eval_shape(lambda: kept))
    return jax.tree.unflatten(
        structure, [restored.get(str(k), leaf) for k, leaf in enumerate(leaves)]
    )


@functools.cache
def memory(name):
    case = SAMPLERS[name]
    made = replay.make(
        EXAMPLE, 40, BATCH, case.make(), num_envs=ENVS, n_step=2, frame_stack=2, least_size=1
    )

    @jax.jit
    def step(state, key):
        keys = jax.random.split(key, 4)
        items = Transition(
            jax.random.bits(keys[0], (ENVS, 2, 2), "uint8"),
            jax.random.randint(keys[1], (ENVS,), 0, 4, "int8"),
            jax.random.normal(keys[2], (ENVS,)),
            (jax.random.uniform(keys[3], (ENVS,)) > 0.2).astype("float32"),
            jax.random.uniform(keys[2], (ENVS,)) > 0.8,
        )
        state = made.add(state, items)
        drawn = made.sample(state, key, 0.5, 0.9)
        return made.update(state, drawn, abs(drawn.batch.reward)), drawn

    return made.init(**case.hyperparameters), step


MARKS = {("tree", through_numpy): (), ("tree", through_orbax): pytest.mark.long}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "through"),
    [
        pytest.param(name, through, marks=MARKS.get((name, through), pytest.mark.slow))
        for name in SAMPLERS
        for through in (through_numpy, through_orbax)
    ],
)
def test_what_follows_is_the_same(name, through, tmp_path):
    state, step = memory(name)
    for k in range(30):  # more than a lap
        state, _ = step(state, jax.random.key(k))
    restored = through(state, tmp_path)
    same = functools.partial(jax.tree.map, np.testing.assert_array_equal)
    assert jax.tree.map(lambda x: x.dtype, restored) == jax.tree.map(lambda x: x.dtype, state)
    same(restored, state)
    for k in range(30, 60):
        state, drawn = step(state, jax.random.key(k))
        restored, again = step(restored, jax.random.key(k))
        same(drawn, again)
    same(restored, state)
