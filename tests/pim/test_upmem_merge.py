"""The C++ host's merge against NumPy: exact in INT32, to the bit in FP32."""

import ctypes
import subprocess

import hypothesis
import hypothesis.strategies as st
import numpy as np
import oracle
import pytest
from dpu_programs import KERNELS
from sdk_present import needs

from accel_rl.pim import MERGES

pytestmark = needs("g++")

WRAPPER = """
#include "merge.hpp"
using namespace accel_rl::upmem;
extern "C" void merge_for_test(int how, int numerics, size_t chunks, size_t entries,
                               const void *tables, const void *base, const uint32_t *visits,
                               float alpha, void *merged) {
  merge(static_cast<Merge>(how), static_cast<Numerics>(numerics), chunks, entries, tables, base,
        visits, alpha, merged);
}
"""


@pytest.fixture(scope="module")
def merge(tmp_path_factory):
    folder = tmp_path_factory.mktemp("merge")
    (folder / "wrapper.cpp").write_text(WRAPPER)
    host = KERNELS / "upmem" / "host"
    command = [
        *("g++", "-std=c++20", "-O2", "-shared", "-fPIC", "-ffp-contract=off", "-Wall", "-Werror"),
        *(f"-I{host}", str(folder / "wrapper.cpp"), str(host / "merge.cpp")),
        *("-o", str(folder / "merge.so")),
    ]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(folder / "merge.so")).merge_for_test

    def call(how, tables, base, visits, alpha):
        numerics = 1 if tables.dtype == np.float32 else 2
        merged = np.empty_like(base)
        arrays = (tables, base, visits.astype(np.uint32))
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        chunks, entries = (ctypes.c_size_t(size) for size in tables.shape)
        function(
            MERGES.index(how), numerics, chunks, entries, *pointers, ctypes.c_float(alpha),
            merged.ctypes.data_as(ctypes.c_void_p),
        )  # fmt: skip
        return merged

    return call


@pytest.mark.parametrize("how", MERGES)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@hypothesis.settings(max_examples=40)
@hypothesis.given(
    chunks=st.integers(1, 70), seed=st.integers(0, 2**32 - 1), alpha=st.floats(0, 1, width=32)
)
def test_merges(merge, how, dtype, chunks, seed, alpha):
    rng = np.random.default_rng(seed)
    entries = 9
    if dtype == np.float32:
        tables, base = (rng.normal(0, 100, shape).astype(dtype) for shape in ((chunks, 9), (9,)))
    else:
        # Differences of up to 32 bits: the sums need more than 64.
        limit = 2**31 - 1
        tables, base = (rng.integers(-limit, limit, shape, dtype) for shape in ((chunks, 9), (9,)))
        base = base // 2 if how != "mean" else base
        tables = tables // 2 if how != "mean" else tables
    visits = rng.integers(0, 400, (chunks, entries)) * (rng.random((chunks, entries)) < 0.5)
    visits[:, 0] = 0
    truth = oracle.merge(how, tables, base, visits, alpha)
    np.testing.assert_array_equal(merge(how, tables, base, visits, alpha), truth)
