"""Merges, alone: against their definitions in Python's integers and NumPy's floats."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from kernels_present import needs_kernels

from accel_rl.pim import merge, merge_native
from pim_emu import device_map, dpu_mesh

ALPHA = 0.1


FORMS = [merge, pytest.param(merge_native, marks=needs_kernels)]


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def merged(form, name, most, tables, base, visits):
    bound = merge.weight_bound(name, len(tables), most)
    return form.merge_tables(name, tables, base, visits, jnp.float32(ALPHA), bound)


@pytest.mark.parametrize("form", FORMS, ids=["jax", "native"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("name", merge.MERGES)
def test_merges_of_few_visits(name, dtype, form):
    """Entries that nobody, one DPU once, one DPU often, and several DPUs updated."""
    visits = np.array([[0, 1, 0, 2, 1, 3], [0, 0, 5, 2, 1, 0], [0, 0, 0, 0, 1, 1]], np.uint32)
    tables = np.random.default_rng(2).integers(-1000, 1000, visits.shape).astype(dtype)
    base = np.array([7, -3, 0, 12, 500, -500], dtype)
    truth = oracle.merge(name, tables, base, visits.astype(np.int64), ALPHA)
    found = merged(form, name, 8, tables, base, visits)
    # XLA may contract a product and a sum.
    rtol = 1e-5 if (form, dtype) == (merge, np.float32) else 0
    np.testing.assert_allclose(found, truth, rtol=rtol)


@pytest.mark.parametrize(
    "form",
    # JAX compiles each merge for many visits.
    [pytest.param(merge, marks=pytest.mark.long), FORMS[1]],
    ids=["jax", "native"],
)
def test_int32_merge_is_exact_at_the_extremes(form):
    rng = np.random.default_rng(0)
    limit = 2**31 - 1
    tables = rng.choice(np.asarray([-limit, limit, 0, 1, -1], np.int32), (9, 20))
    base = rng.choice(np.asarray([-limit, limit, 7], np.int32), 20)
    visits = rng.integers(0, 3_000_000, (9, 20)).astype(np.uint32)
    visits[:, 3] = 0
    for name in merge.MERGES:
        truth = oracle.merge(name, tables, base, visits.astype(np.int64), ALPHA)
        np.testing.assert_array_equal(merged(form, name, 2**25, tables, base, visits), truth)


@pytest.mark.parametrize("form", FORMS, ids=["jax", "native"])
def test_int32_merge_is_exact_at_the_largest_weights(form):
    limit = 2**31 - 1
    tables = np.array([[-limit, limit, -limit, 1], [-limit, limit, limit, -limit]], np.int32)
    base = np.array([limit, -limit, 7, 0], np.int32)
    visits = np.array([[limit - 1, 1, 2**30, limit - 1], [1, limit - 1, 2**30 - 1, 1]], np.uint32)
    truth = oracle.merge("visits", tables, base, visits.astype(np.int64), ALPHA)
    np.testing.assert_array_equal(merged(form, "visits", limit, tables, base, visits), truth)


@pytest.mark.parametrize("form", [merge, merge_native])
def test_too_many_visits_for_an_exact_int32_merge_are_refused(form):
    tables = jnp.zeros((2, 3), jnp.int32)
    visits = jnp.zeros((2, 3), jnp.uint32)
    with pytest.raises(ValueError, match=r"fewer than 2147483648 .* got up to 2147483648"):
        form.merge_tables("visits", tables, tables[0], visits, jnp.float32(0.1), 2**31)


def drawn(*leading, num_dpus=11, entries=40, dtype=np.float32):
    """Tables, base and visits, with replicas as leading axes."""
    rng = np.random.default_rng(3)
    tables = rng.normal(scale=1000, size=(*leading, num_dpus, entries)).astype(dtype)
    base = rng.normal(scale=1000, size=(*leading, entries)).astype(dtype)
    visits = rng.choice(np.array([0, 1, 2, 300, 2**24 + 1], np.uint32), tables.shape)
    return tables, base, visits


@needs_kernels
@pytest.mark.parametrize("name", merge.MERGES)
def test_native_fp32_merge_equals_numpy_bit_for_bit(name):
    tables, base, visits = drawn()
    tables[:, 0] *= np.float32(1e-42)  # subnormals, which XLA's threads flush to zero
    base[0] = 0
    truth = oracle.merge(name, tables, base, visits.astype(np.int64), ALPHA)
    assert truth[0] != 0
    found = merged(merge_native, name, 2**29, tables, base, visits)
    np.testing.assert_array_equal(np.asarray(found).view(np.int32), truth.view(np.int32))


@needs_kernels
@pytest.mark.parametrize("shared", ["visits", "alpha", "tables", ""])
@pytest.mark.parametrize("name", merge.MERGES)
def test_native_replicas_under_vmap_equal_single_merges(name, shared):
    tables, base, visits = drawn(2, 3, num_dpus=3, entries=5)
    operands = {
        "tables": tables,
        "base": base,
        "visits": visits,
        "alpha": np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3),
    }
    if shared:
        operands[shared] = operands[shared][0, 0]
    inner = {key: None if key == shared else 0 for key in operands}

    def one(operands):
        return merge_native.merge_tables(name, **operands, bound=2**30)

    mapped = jax.vmap(jax.vmap(one, in_axes=(inner,)), in_axes=(inner,))
    found = jax.jit(mapped)(operands)
    for k in np.ndindex(2, 3):
        single = one({key: x if key == shared else x[k] for key, x in operands.items()})
        np.testing.assert_array_equal(found[k], single)


@needs_kernels
def test_native_merge_on_several_devices_and_in_a_scan():
    tables, base, visits = drawn(dtype=np.int32)
    mesh = dpu_mesh(jax.devices("cpu"))

    def one(tables, base, visits):
        return merge_native.merge_tables("visits", tables, base, visits, jnp.float32(ALPHA), 2**29)

    def step(base, _):
        return device_map(one, (1, 0, 1), mesh)(tables, base, visits), None

    found = jax.jit(lambda base: jax.lax.scan(step, base, None, length=3)[0])(base)
    truth = base
    for _ in range(3):
        truth = oracle.merge("visits", tables, truth, visits.astype(np.int64), ALPHA)
    np.testing.assert_array_equal(found, truth)


@needs_kernels
def test_native_merge_has_derivatives():
    tables, base, visits = drawn()

    def of(form):
        def total(tables, base):
            found = form.merge_tables("visits", tables, base, visits, jnp.float32(ALPHA), 2**29)
            return jnp.sum(found)

        return jax.grad(total, (0, 1))(tables, base)

    jax.tree.map(np.testing.assert_array_equal, of(merge_native), of(merge))


@needs_kernels
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"tables": np.zeros((2, 3), np.uint32)}, ValueError, "dtype of tables must be one of"),
        ({"tables": np.zeros(3, np.float32)}, ValueError, "tables must have"),
        ({"base": np.zeros(4, np.float32)}, ValueError, r"base must have shape \(3,\)"),
        ({"base": np.zeros(3, np.int32)}, TypeError, "base must be float32"),
        ({"visits": np.zeros((2, 4), np.uint32)}, ValueError, "visits must have shape"),
        ({"visits": np.zeros((2, 3), np.int32)}, TypeError, "visits must be uint32"),
        ({"alpha": np.zeros(1, np.float32)}, ValueError, "alpha must have shape"),
        ({"name": "x"}, ValueError, "merge must be one of visits, mean, visited, damped"),
    ],
)
def test_wrong_operands_of_a_native_merge_are_refused(wrong, error, message):
    tables = np.zeros((2, 3), np.float32)
    right = {"name": "visits", "tables": tables, "base": tables[0], "alpha": np.float32(0.1)}
    right |= {"visits": np.zeros((2, 3), np.uint32), "bound": 6}
    with pytest.raises(error, match=message):
        merge_native.merge_tables(**(right | wrong))


def test_pairwise_sum_is_the_stated_tree():
    x = np.random.default_rng(1).normal(size=(11, 4)).astype(np.float32)
    np.testing.assert_array_equal(merge.pairwise_sum(jnp.asarray(x)), oracle.pairwise(x))


def test_damped_weights_approach_their_definition():
    weights = np.asarray(merge.damped_weights(jnp.float32(0.1))) / 32_768
    np.testing.assert_allclose(weights, 1 - 0.9 ** np.arange(256), atol=3e-4)
