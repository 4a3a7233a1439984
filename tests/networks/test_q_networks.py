"""Networks: gradients of dense layers, streams of dueling ones, windows of convolutions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from flax import linen as nn

from accel_rl.networks import MLP, ConvTorso, Dense, NatureTorso, QNetwork
from accel_rl.networks.convolution import windows
from accel_rl.networks.dense import product


def draw(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


@pytest.mark.parametrize("leading", [(5,), (2, 3), ()])
def test_product_and_its_gradients_are_those_of_matmul(leading):
    x, kernel, weight = draw(0, *leading, 4), draw(1, 4, 6), draw(2, *leading, 6)

    def total(multiply):
        return jax.jit(
            jax.value_and_grad(lambda x, kernel: jnp.sum(multiply(x, kernel) * weight), (0, 1))
        )

    found, expected = total(product)(x, kernel), total(jnp.matmul)(x, kernel)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_gradients_of_products_under_vmap():
    x, kernels = draw(0, 5, 4), draw(1, 3, 4, 6)
    slope = jax.grad(lambda kernel, x: jnp.sum(product(x, kernel) ** 2))
    found = jax.jit(jax.vmap(slope, (0, None)))(kernels, x)
    for kernel, each in zip(kernels, found, strict=True):
        np.testing.assert_allclose(each, 2 * x.T @ (x @ kernel), rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="what is slow is so on CPUs")
def test_no_product_of_a_compiled_gradient_takes_its_left_operand_by_columns():
    network = MLP((16, 16))
    params = network.init(jax.random.key(0), draw(0, 8, 4))
    gradient = jax.grad(lambda params, x: jnp.sum(network.apply(params, x)))
    text = jax.jit(gradient).lower(params, draw(0, 8, 4)).compile().as_text()
    assert "lhs_contracting_dims={1}" in text
    assert "lhs_contracting_dims={0}" not in text


def test_dense_is_a_dense_layer():
    x = draw(0, 3, 4)
    ours, theirs = Dense(5), nn.Dense(5)
    params = ours.init(jax.random.key(0), x)
    expected = theirs.init(jax.random.key(0), x)
    assert jax.tree.structure(params) == jax.tree.structure(expected)
    jax.tree.map(np.testing.assert_array_equal, params, expected)
    np.testing.assert_allclose(ours.apply(params, x), theirs.apply(params, x), rtol=1e-6)


def test_mlp_reads_features_made_flat():
    network, pictures = MLP([8, 3]), draw(0, 2, 4, 5)
    params = network.init(jax.random.key(0), pictures)
    x = np.asarray(pictures).reshape(2, 20)
    for name in ("Dense_0", "Dense_1"):
        layer = params["params"][name]
        x = np.maximum(x @ np.asarray(layer["kernel"]) + np.asarray(layer["bias"]), 0)
    np.testing.assert_allclose(network.apply(params, pictures), x, rtol=1e-5, atol=1e-6)
    assert (x > 0).any()


@pytest.mark.parametrize("num_atoms", quick.only([5], [None, 5]))
@pytest.mark.parametrize("dueling", [False, True])
def test_values_of_a_q_network(num_atoms, dueling):
    network = QNetwork(MLP((8,)), 3, num_atoms=num_atoms, dueling=dueling)
    x = draw(0, 4, 6)
    params = network.init(jax.random.key(0), x)
    found = network.apply(params, x)
    assert found.shape == ((4, 3) if num_atoms is None else (4, 3, 5))
    assert found.dtype == jnp.float32
    hidden = MLP((8,)).apply({"params": params["params"]["torso"]}, x)

    def head(name, num):
        layer = params["params"][name]
        return np.asarray(hidden @ layer["kernel"] + layer["bias"]).reshape(4, num, num_atoms or 1)

    expected = head("values", 3)
    if dueling:
        advantages = expected - expected.mean(axis=1, keepdims=True)
        expected = head("state_value", 1) + advantages
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-4, atol=1e-5)


def test_windows_are_squares_of_the_picture():
    pictures = np.arange(2 * 4 * 5 * 3).reshape(2, 4, 5, 3)
    found = np.asarray(windows(jnp.asarray(pictures), 2))
    assert found.shape == (2, 3, 4, 12)
    for i in range(3):
        for j in range(4):
            square = pictures[:, i : i + 2, j : j + 2].reshape(2, 12)
            np.testing.assert_array_equal(found[:, i, j], square)


def test_a_convolutional_torso_convolves():
    network = ConvTorso(filters=(4, 5), size=3, hidden=(7,))
    pictures = draw(0, 2, 10, 10, 3)
    params = network.init(jax.random.key(0), pictures)
    x = pictures
    for name in ("Dense_0", "Dense_1"):
        layer = params["params"][name]
        kernel = layer["kernel"].reshape(3, 3, x.shape[-1], -1)
        x = jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = nn.relu(x + layer["bias"])
    assert x.shape == (2, 6, 6, 5)
    expected = MLP((7,)).apply({"params": params["params"]["MLP_0"]}, x)
    found = network.apply(params, pictures)
    assert found.shape == (2, 7)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_torso_for_atari_has_the_published_layers():
    network = NatureTorso()
    pictures = jax.random.randint(jax.random.key(0), (2, 84, 84, 4), 0, 256, jnp.uint8)
    params = network.init(jax.random.key(1), pictures.astype(jnp.float32))
    x = pictures / 255
    for number, (stride, side) in enumerate(((4, 20), (2, 9), (1, 7))):
        layer = params["params"][f"Conv_{number}"]
        x = jax.lax.conv_general_dilated(
            x, layer["kernel"], (stride,) * 2, "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = nn.relu(x + layer["bias"])
        assert x.shape[1:3] == (side, side)
    expected = MLP((512,)).apply({"params": params["params"]["MLP_0"]}, x)
    found = network.apply(params, pictures.astype(jnp.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    assert weights == 8_224 + 32_832 + 36_928 + (3_136 + 1) * 512


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Dense(0), ValueError, "features must be at least 1, got 0"),
        (lambda: Dense(2.5), TypeError, "features must be an int, got 2.5"),
        (lambda: windows(draw(0, 2, 2, 9, 1), 3), ValueError, "H and W at least 3, got"),
        (lambda: windows(draw(0, 9, 9, 1), 3), ValueError, r"pictures must be \[B, H, W, C\]"),
    ],
)
def test_bad_sizes_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
