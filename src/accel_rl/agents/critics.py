"""Ensembles of critics with one architecture, as parameters with a leading axis."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from accel_rl.networks import Critic
from accel_rl.types import Array, PyTree


class Critics(NamedTuple):
    """Ensemble of C independently initialised critics."""

    network: Critic
    num: int

    def init(self, key: Array, features: Array, action: Array) -> PyTree:
        """Return parameters with leaves [C, ...]."""
        return jax.vmap(self.network.init, (0, None, None))(
            jax.random.split(key, self.num), features, action
        )

    def values(self, params: PyTree, features: Array, action: Array) -> Array:
        """Return the critics' values [B, C] of features [B, ...] and actions [B, D]."""
        values = jax.vmap(self.network.apply, (0, None, None), -1)(params, features, action)
        return jnp.asarray(values)

    def first(self, params: PyTree, features: Array, action: Array) -> Array:
        """Return the first critic's values [B]; arguments as of `values`."""
        params = jax.tree.map(lambda leaf: leaf[0], params)
        return jnp.asarray(self.network.apply(params, features, action))
