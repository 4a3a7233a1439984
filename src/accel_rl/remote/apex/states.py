"""States of a learner as files between its processes and the launcher."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.io import atomic_write
from accel_rl.remote.apex.training import ApexTraining
from accel_rl.train import TrainState


def template(training: ApexTraining) -> TrainState:
    """Return the shapes and dtypes of a learner's state; the buffer is the server's."""
    init = training.experiment.program.init
    whole = jax.eval_shape(lambda: init(training.key, **training.hyper))
    return dataclasses.replace(whole, replay=None, delayed_priorities=None)


def write(path: Path, state: TrainState) -> None:
    """Write a state atomically."""
    with atomic_write(path, "wb") as file:
        np.savez(file, *[np.asarray(leaf) for leaf in jax.tree.leaves(state)])


def read(path: Path, training: ApexTraining) -> TrainState:
    """Read a state that a learner of the same training has written."""
    with np.load(path, allow_pickle=False) as found:
        leaves = [jnp.asarray(found[name]) for name in found.files]
    return jax.tree.unflatten(jax.tree.structure(template(training)), leaves)
