"""The sharded pmap against `jax.vmap`, on one and on eight devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pim_emu import device_map, dpu_map, dpu_mesh, pad_axis

ONE, EIGHT = dpu_mesh(jax.devices()[:1]), dpu_mesh(jax.devices()[:8])


def row_sum(x, shared):
    return {"sum": jnp.sum(x["a"]) + shared, "copy": x["a"] * shared}


@pytest.mark.parametrize("mesh", [ONE, EIGHT], ids=["one", "eight"])
@pytest.mark.parametrize("num_dpus", [1, 5, 8, 19])
def test_equals_vmap(mesh, num_dpus):
    x = {"a": jnp.arange(num_dpus * 3, dtype=jnp.float32).reshape(num_dpus, 3)}
    mapped = jax.jit(dpu_map(row_sum, in_axes=(0, None), mesh=mesh))(x, jnp.float32(2))
    plain = jax.vmap(row_sum, in_axes=(0, None))(x, jnp.float32(2))
    jax.tree.map(np.testing.assert_array_equal, mapped, plain)


def test_under_vmap_scan_and_grad():
    mapped = dpu_map(lambda x: x * x, mesh=EIGHT)
    x = jnp.arange(10, dtype=jnp.float32).reshape(2, 5)
    np.testing.assert_array_equal(jax.vmap(mapped)(x), x * x)
    carried, _ = jax.lax.scan(lambda c, _: (mapped(c), None), x[0], length=2)
    np.testing.assert_array_equal(carried, x[0] ** 4)
    np.testing.assert_array_equal(jax.grad(lambda v: mapped(v).sum())(x[1]), 2 * x[1])


def test_the_axis_really_is_split():
    blocks = device_map(lambda x: jnp.full((1,), x.shape[0], jnp.int32), 0, EIGHT)(jnp.zeros(24))
    np.testing.assert_array_equal(blocks, np.full(8, 3))
    columns = device_map(lambda x: x.sum(0), 1, EIGHT)(jnp.ones((3, 16)))
    np.testing.assert_array_equal(columns, np.full(16, 3.0))


def test_padding():
    assert pad_axis(jnp.ones((3, 5)), EIGHT).shape == (8, 5)
    assert pad_axis(jnp.ones((3, 5)), EIGHT, axis=1).shape == (3, 8)
    assert float(pad_axis(jnp.ones(3), EIGHT).sum()) == 3


@pytest.mark.parametrize(
    ("in_axes", "args", "message"),
    [
        ((0, 0), (jnp.ones(3), jnp.ones(4)), r"share one DPU axis, got lengths \[3, 4\]"),
        (None, (jnp.ones(3),), r"share one DPU axis, got lengths \[\]"),
        ((0, 1), (jnp.ones(3), jnp.ones(4)), "entries must be 0 or None"),
        ((0,), (jnp.ones(3), jnp.ones(4)), "in_axes has 1 entries for 2 arguments"),
    ],
)
def test_bad_axes_are_named(in_axes, args, message):
    with pytest.raises(ValueError, match=message):
        dpu_map(lambda *xs: xs[0], in_axes=in_axes, mesh=ONE)(*args)


def test_a_mesh_needs_a_device():
    with pytest.raises(ValueError, match="devices must name at least one device"):
        dpu_mesh([])
