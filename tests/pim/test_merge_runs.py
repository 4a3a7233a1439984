"""Merges of runs, alone: against the merge of each entry's runs by tests/oracle.py."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from kernels_present import needs_kernels

from accel_rl import tabular
from accel_rl.pim import merge, merge_native, runs
from accel_rl.tabular.owners import Runs

ALPHA, S, A, D, R, TABLES = 0.1, 4, 3, 5, 6, 2
FORMS = [runs, pytest.param(merge_native, marks=needs_kernels)]
RULE = tabular.double_q_learning()
PROGRAM = tabular.PassProgram(RULE, tabular.make_order("SEQ"), S, A, 1, 2, R)
forms = pytest.mark.parametrize("form", FORMS, ids=["jax", "native"])
merges = pytest.mark.parametrize("name", merge.MERGES)


class Case:
    """Runs of two tables: entry 7 has most of them, entries 0 and S * A - 1 have none."""

    def __init__(self, dtype=np.float32, *leading, scale=1000.0):
        rng = np.random.default_rng(3)
        entry = np.sort(rng.integers(1, S * A - 1, D * R).reshape(D, R), axis=1).astype(np.int32)
        entry[1:4] = 7
        entry[2:, -2:] = S * A  # no run
        self.entry = entry
        self.order = runs.order_runs(PROGRAM, Runs(jnp.asarray(entry), jnp.zeros_like(entry)))
        shape = (D, TABLES * R)
        self.values = rng.normal(scale=scale, size=(*leading, *shape)).astype(dtype)
        self.base = rng.normal(scale=scale, size=(*leading, TABLES * S * A)).astype(dtype)
        self.visits = rng.choice(np.array([0, 1, 2, 300, 2**20 + 1], np.uint32), shape)

    def merged(self, form, name, most=2**29, alpha=ALPHA):
        bound = merge.weight_bound(name, D * R, most)
        run = jax.jit(functools.partial(form.merge_runs, name, bound=bound))
        return run(self.values, self.order, self.base, self.visits, jnp.float32(alpha))

    def wanted(self, name):
        out = self.base.copy()
        values, visits = (x.reshape(D, TABLES, R) for x in (self.values, self.visits))
        for k, e in np.ndindex(TABLES, S * A):
            held = self.entry == e
            if held.any() and (name == "mean" or visits[:, k][held].any()):
                own = (x[:, k][held][:, None] for x in (values, visits.astype(np.int64)))
                at = slice(k * S * A + e, k * S * A + e + 1)
                tables, counts = own
                out[at] = oracle.merge(name, tables, self.base[at], counts, ALPHA)
        return out


@forms
@merges
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_equals_the_merge_of_an_entrys_runs(dtype, name, form):
    case = Case(dtype)
    found = case.merged(form, name, 2**25)
    # XLA may contract a product and a sum.
    rtol = 1e-5 if (form, dtype) == (runs, np.float32) else 0
    np.testing.assert_allclose(found, case.wanted(name), rtol=rtol)


@forms
def test_int32_is_exact_at_the_largest_weights(form):
    case, limit = Case(np.int32), 2**31 - 1
    case.base[:] = -limit
    case.values[:] = limit
    case.values[:, 1::2] = -7
    case.visits[:] = 0
    case.visits[1, :2] = limit - 1, 1  # two runs of entry 7
    case.visits[0, R:] = 1
    found = case.merged(form, "visits", limit)
    np.testing.assert_array_equal(found, case.wanted("visits"))


@needs_kernels
@merges
def test_native_fp32_keeps_subnormals(name):
    case = Case(scale=1e-42)
    truth = case.wanted(name)
    assert np.any((truth != case.base) & (np.abs(truth) < np.finfo(np.float32).tiny))
    found = np.asarray(case.merged(merge_native, name))
    np.testing.assert_array_equal(found.view(np.int32), truth.view(np.int32))


@needs_kernels
@pytest.mark.parametrize("shared", ["visits", "alpha", "values"])
def test_native_replicas_under_vmap_equal_single_merges(shared):
    case = Case(np.float32, 3)
    operands = {"values": case.values, "base": case.base}
    operands["visits"] = np.stack([case.visits, case.visits[::-1], case.visits * 2])
    operands["alpha"] = np.linspace(0.1, 1, 3, dtype=np.float32)
    operands[shared] = operands[shared][0]
    axes = {key: None if key == shared else 0 for key in operands}

    def one(operands):
        return merge_native.merge_runs("damped", order=case.order, **operands, bound=2**29)

    found = jax.jit(jax.vmap(one, in_axes=(axes,)))(operands)
    for k in range(3):
        single = one({key: x if key == shared else x[k] for key, x in operands.items()})
        np.testing.assert_array_equal(found[k], single)
    assert len(np.unique(np.asarray(found), axis=0)) == 3


@needs_kernels
def test_native_merge_has_derivatives():
    case = Case()

    def of(form):
        def total(values, base):
            found = form.merge_runs(
                "visits", values, case.order, base, case.visits, jnp.float32(ALPHA), 2**29
            )
            return jnp.sum(found)

        return jax.grad(total, (0, 1))(case.values, case.base)

    jax.tree.map(np.testing.assert_array_equal, of(merge_native), of(runs))


@needs_kernels
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"values": np.zeros((D, TABLES * R), np.uint32)}, ValueError, "dtype of values must be"),
        ({"values": np.zeros(3, np.float32)}, ValueError, "values must have two axes"),
        ({"base": np.zeros(4, np.float32)}, ValueError, r"base must have shape \(24,\)"),
        ({"visits": np.zeros((2, 4), np.uint32)}, ValueError, "visits must have shape"),
        ({"alpha": np.zeros(1, np.float32)}, ValueError, "alpha must have shape"),
        ({"name": "x"}, ValueError, "merge must be one of visits, mean, visited, damped"),
    ],
)
def test_wrong_operands_of_a_native_merge_are_refused(wrong, error, message):
    case = Case()
    right = {"name": "visits", "values": case.values, "base": case.base, "order": case.order}
    right |= {"visits": case.visits, "alpha": np.float32(0.1), "bound": 6}
    with pytest.raises(error, match=message):
        merge_native.merge_runs(**(right | wrong))
