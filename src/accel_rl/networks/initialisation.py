"""Initialisation of a network's parameters, whatever its layers."""

import flax.linen as nn
import jax
import numpy as np

from accel_rl.types import Array, PyTree

INITIALISATIONS = ("lecun", "orthogonal")
OUTPUTS = ("values", "state_value", "value")  # layers without an activation after them
SMALL = ("action", "distribution")  # whose initialisation keeps first actions near mid-range


def initialise(name: str, params: PyTree, key: Array) -> PyTree:
    """Return the parameters, for "orthogonal" with orthogonal kernels.

    Their gain is sqrt(2), or 1 in layers of values. Biases, and the last layers of policies, keep
    their values.

    Args:
      name: of `INITIALISATIONS`.
      params: of one network, without further axes.
      key: PRNG key.

    Reference: Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning
      in deep linear neural networks", ICLR 2014.
    """
    if name == "lecun":
        return params
    leaves, tree = jax.tree_util.tree_flatten_with_path(params)
    keys = jax.random.split(key, len(leaves))

    def one(path: tuple[PyTree, ...], leaf: Array, key: Array) -> Array:
        names = [entry.key for entry in path]
        if names[-1] != "kernel" or names[-2] in SMALL:
            return leaf
        gain = 1.0 if names[-2] in OUTPUTS else float(np.sqrt(2))
        return nn.initializers.orthogonal(gain)(key, leaf.shape, leaf.dtype)

    return jax.tree.unflatten(
        tree, [one(path, leaf, key) for (path, leaf), key in zip(leaves, keys, strict=True)]
    )
