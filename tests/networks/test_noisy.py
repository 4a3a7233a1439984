"""Noisy layers against their equations in NumPy."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl.networks import MLP, NoisyDense, QNetwork
from accel_rl.networks.initialisation import initialise
from accel_rl.networks.noisy import NOISE

KEY = jax.random.key(0)
X = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)
LAYER = NoisyDense(3)
PARAMS = LAYER.init(KEY, X)


def test_without_noise_a_layer_uses_its_means():
    params = PARAMS["params"]
    expected = X @ np.asarray(params["kernel"]) + np.asarray(params["bias"])
    np.testing.assert_allclose(LAYER.apply(PARAMS, X), expected, rtol=1e-5, atol=1e-6)


def test_parameters_start_as_in_the_paper():
    params = NoisyDense(400).init(KEY, jnp.zeros((1, 64)))["params"]
    for name, bound in (("kernel", 1 / 8), ("bias", 1 / 8)):
        values = np.asarray(params[name])
        assert np.abs(values).max() <= bound
        # The deviation of a uniform law; of 400 or more values, 5 standard errors.
        assert abs(values.std() - bound / np.sqrt(3)) < 5 * bound / np.sqrt(values.size)
        np.testing.assert_allclose(params[f"{name}_deviation"], 0.5 / 8)


def test_noise_is_factorised():
    """Rank one, shared by the rows of a batch: a linear system gives it back."""
    params = PARAMS["params"]
    draws = jax.vmap(
        lambda key: LAYER.apply(PARAMS, np.eye(5, dtype=np.float32), rngs={NOISE: key})
    )
    zero = jax.vmap(lambda key: LAYER.apply(PARAMS, np.zeros((1, 5)), rngs={NOISE: key}))
    keys = jax.random.split(jax.random.key(1), 2_000)
    bias = np.asarray(zero(keys))  # [draws, 1, 3]
    kernels = (np.asarray(draws(keys)) - bias - np.asarray(params["kernel"])) / np.asarray(
        params["kernel_deviation"]
    )
    columns = (bias[:, 0] - np.asarray(params["bias"])) / np.asarray(params["bias_deviation"])
    rank = [np.linalg.matrix_rank(each, tol=1e-3) for each in kernels[:50]]
    assert rank == [1] * 50
    rows = kernels[:, :, 0] / columns[:, :1]
    np.testing.assert_allclose(
        kernels[:50], rows[:50, :, None] * columns[:50, None], rtol=2e-2, atol=2e-3
    )
    # f(e) squared is |e|, of mean sqrt(2 / pi) and variance 1 - 2 / pi; 5 standard errors.
    for each in (columns, rows):
        error = np.sqrt((1 - 2 / np.pi) / each.size)
        assert abs((each**2).mean() - np.sqrt(2 / np.pi)) < 5 * error
        assert abs(np.sign(each).mean()) < 5 / np.sqrt(each.size)


def test_gradients_are_numeric_ones():
    def total(params):
        return jnp.sum(jnp.sin(LAYER.apply(params, X, rngs={NOISE: KEY})))

    gradient = jax.grad(total)(PARAMS)
    direction = jax.tree.map(
        lambda leaf: jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape), PARAMS
    )
    slope = sum(
        jnp.vdot(a, b)
        for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
    )
    step = 1e-2
    ends = [
        total(jax.tree.map(lambda a, b, s=sign: a + s * step * b, PARAMS, direction))
        for sign in (-1, 1)
    ]
    np.testing.assert_allclose((ends[1] - ends[0]) / (2 * step), slope, rtol=2e-2)


def test_a_width_is_checked():
    with pytest.raises(ValueError, match="features must be at least 1, got 0"):
        NoisyDense(0)


def test_orthogonal_initialisation():
    network = QNetwork(MLP((8, 8)), 3, num_atoms=4, dueling=True)
    params = network.init(KEY, jnp.zeros((1, 5)))
    found = initialise("orthogonal", params, jax.random.key(2))
    assert jax.tree.structure(found) == jax.tree.structure(params)
    for path, leaf in jax.tree_util.tree_flatten_with_path(found)[0]:
        *_, layer, name = (entry.key for entry in path)
        if name == "bias":
            np.testing.assert_array_equal(leaf, 0)
            continue
        small = leaf.T @ leaf if leaf.shape[0] > leaf.shape[1] else leaf @ leaf.T
        gain = 1 if "value" in layer else 2
        np.testing.assert_allclose(small, gain * np.eye(len(small)), atol=1e-5)
    assert initialise("lecun", params, KEY) is params


def test_last_layers_of_policies_stay_small():
    params = {"params": {"action": nn.Dense(2).init(KEY, jnp.zeros((1, 4)))["params"]}}
    found = initialise("orthogonal", params, jax.random.key(2))
    jax.tree.map(np.testing.assert_array_equal, found, params)
