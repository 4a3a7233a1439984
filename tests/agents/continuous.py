"""What the tests of agents with continuous actions share: a batch, and their networks in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Batch, Box

OBSERVATIONS = Box((-np.inf,) * 3, (np.inf,) * 3, (3,))
ACTIONS = Box((-1.0, 0.0), (3.0, 10.0), (2,))  # two components, neither range around 0
NET = {"hidden": (8, 8)}
ITEMS = 16


def batch(seed=0):
    """Transitions of which one ends its episode; actions over the whole of their ranges."""
    rng = np.random.default_rng(seed)
    discount = np.full(ITEMS, 0.9)
    discount[3] = 0
    arrays = (
        rng.normal(size=(ITEMS, 3)),
        rng.uniform(ACTIONS.low, ACTIONS.high, (ITEMS, 2)),
        rng.normal(size=ITEMS),
        discount,
        rng.normal(size=(ITEMS, 3)),
    )
    return Batch(*(jnp.asarray(each, jnp.float32) for each in arrays))


def weights(seed=0):
    """Importance-sampling weights, one of them 0."""
    values = np.random.default_rng(seed).uniform(0.2, 1, ITEMS)
    values[5] = 0
    return jnp.asarray(values, jnp.float32)


def after_two_steps(agent, state, batch, weights):
    """A state whose targets are not its networks."""
    keys = jax.random.split(jax.random.key(1))
    return jax.lax.scan(
        lambda state, key: (agent.learn(state, batch, weights, key)[0], None), state, keys
    )[0]


def double(tree):
    """A pytree as float64 NumPy, to take differences of."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def unit(action):
    """Actions as numbers from -1 to 1."""
    low, high = np.asarray(ACTIONS.low), np.asarray(ACTIONS.high)
    return (np.asarray(action, np.float64) - low) / (high - low) * 2 - 1


def layers(params, x, last):
    """The network's layers, float64, written out: ReLU after each but the last."""
    params = params["params"]
    for name in ("Dense_0", "Dense_1"):
        layer = params["body"][name]
        x = np.maximum(x @ layer["kernel"] + layer["bias"], 0)
    return x @ params[last]["kernel"] + params[last]["bias"]


def critics(params, observation, action):
    """Values [B, C] of actions in [-1, 1]."""
    x = np.concatenate([observation, action], axis=1)
    num = params["params"]["value"]["bias"].shape[0]
    each = [jax.tree.map(lambda leaf, i=i: leaf[i], params) for i in range(num)]
    return np.concatenate([layers(one, x, "value") for one in each], axis=1)


def slope(loss, params, seed=0, size=1e-6):
    """A random direction, and how much the loss of float64 parameters rises in it."""
    leaves, tree = jax.tree.flatten(params)
    rng = np.random.default_rng(seed)
    direction = [rng.normal(size=leaf.shape) for leaf in leaves]

    def at(size):
        moved = [leaf + size * way for leaf, way in zip(leaves, direction, strict=True)]
        return loss(jax.tree.unflatten(tree, moved))

    return jax.tree.unflatten(tree, direction), (at(size) - at(-size)) / (2 * size)


def along(direction, old, new):
    """How far parameters have moved against a direction: the slope, after a step of rate 1."""
    moved = jax.tree.map(lambda way, a, b: np.sum(way * (a - b)), direction, old, new)
    return sum(jax.tree.leaves(moved))
