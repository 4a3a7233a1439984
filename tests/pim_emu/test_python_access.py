"""Building and running DPU programs from Python, against NumPy."""

import subprocess
import sys

import numpy as np
import pytest
from sdk_present import needs_sdk

import pim_emu

pytestmark = needs_sdk

SCALE = r"""
#include <defs.h>
#include <mram.h>
#include <stdint.h>
#include <stdio.h>

__host uint32_t elements;
__host int32_t factor = 1;
__host int64_t sums[NR_TASKLETS];
__mram_noinit int32_t values[1024];
__dma_aligned int32_t blocks[NR_TASKLETS][16];

int main(void) {
    int32_t *block = blocks[me()];
    sums[me()] = 0;
    for (uint32_t at = 16 * me(); at < elements; at += 16 * NR_TASKLETS) {
        mram_read(values + at, block, sizeof blocks[0]);
        for (int i = 0; i < 16; ++i) sums[me()] += block[i] *= factor;
        mram_write(block, values + at, sizeof blocks[0]);
    }
    if (me() == 0) printf("factor %d\n", factor);
    return 0;
}
"""
WRONG = """#include <mram.h>
#include <stdio.h>
__mram_noinit char there[16];
__host int bad;
__dma_aligned char here[16];
int main(void) {
    printf("so far\\n");
    if (bad) mram_read(there + 4, here, 8);
    return 0;
}
"""


@pytest.fixture(scope="module")
def scale():
    return pim_emu.build(SCALE, tasklets=4)


def test_run_goes_from_arrays_to_arrays(scale):
    rng = np.random.default_rng(0)
    values = rng.integers(-1000, 1000, (5, 1024), np.int32)
    factors = np.arange(5, dtype=np.int32)
    result = pim_emu.run(
        scale,
        dpus=5,
        broadcast={"elements": np.uint32(1024)},
        scatter={"values": values, "factor": factors},
        gather={"values": (np.int32, 1024), "sums": (np.int64, 4)},
    )
    expected = values * factors[:, None]
    np.testing.assert_array_equal(result["values"], expected)
    np.testing.assert_array_equal(result["sums"].sum(1), expected.sum(1))
    assert result.logs == [f"factor {factor}\n" for factor in factors]
    for counters in result.counters:
        assert (counters.dma_reads, counters.dma_read_bytes) == (64, 4096)
        assert (counters.dma_writes, counters.dma_write_bytes) == (64, 4096)
        assert counters.cycles > 0
        assert counters.instructions > 1024
    assert result.totals.launches == 1
    assert result.totals.broadcast_bytes == 5 * 4
    assert result.totals.bytes_to_dpus == 5 * (4096 + 4)
    assert result.totals.bytes_from_dpus == 5 * (4096 + 32)
    assert result.totals.slowest_cycles == max(c.cycles for c in result.counters)


def test_a_set_keeps_its_memory_between_launches(scale):
    values = np.arange(2048, dtype=np.int32).reshape(2, 1024)
    with pim_emu.DpuSet(2, scale) as dpus:
        dpus.broadcast("elements", np.uint32(1024))
        dpus.broadcast("factor", np.int32(3))
        dpus.scatter("values", values)
        for _ in range(3):
            dpus.launch()
        np.testing.assert_array_equal(dpus.gather("values", np.int32, 1024), values * 27)
        part = dpus.gather("values", np.int32, (2, 4), offset=32)
        np.testing.assert_array_equal(part, (values * 27)[:, 8:16].reshape(2, 2, 4))
        assert dpus.set_counters().launches == 3
        dpus.load(scale)  # begins anew, but for MRAM that is not initialised
        assert dpus.gather("factor", np.int32).tolist() == [1, 1]
        np.testing.assert_array_equal(dpus.gather("values", np.int32, 1024), values * 27)


def test_the_heap_is_what_variables_leave(scale):
    size = pim_emu.load_machine().mram_bytes - 4096
    with pim_emu.DpuSet(1, scale) as dpus:
        dpus.broadcast("heap", np.arange(2, dtype=np.int32), offset=size - 8)
        assert dpus.gather("heap", np.int32, 2, offset=size - 8).tolist() == [[0, 1]]
        with pytest.raises(pim_emu.DpuError, match="symbol"):
            dpus.broadcast("heap", np.zeros(2, np.int32), offset=size)


def test_a_fault_names_the_place_and_spares_the_other_dpus():
    program = pim_emu.build(WRONG)
    pim_emu.configure(quiet=True)
    with pim_emu.DpuSet(3, program) as dpus:
        dpus.scatter("bad", np.array([0, 1, 0], np.int32))
        with pytest.raises(pim_emu.DpuFault, match=r"DPU 1, tasklet 0, .*\.c:8 \(main\)") as caught:
            dpus.launch()
        assert caught.value.fault == "misaligned DMA"
        assert caught.value.dpu == 1
        assert caught.value.log == "so far\n"
        assert dpus.logs() == ["so far\n"] * 3
        dpus.load(program)
        dpus.launch()
    pim_emu.configure(quiet=False)


def test_bad_calls_are_refused(scale, tmp_path):
    with pytest.raises(ValueError, match="dpus must be at least 1, got 0"):
        pim_emu.DpuSet(0)
    with pytest.raises(pim_emu.DpuError, match="2561 DPUs asked for, 40 ranks of 64"):
        pim_emu.DpuSet(2561)
    with pytest.raises(pim_emu.DpuError, match='machine cannot be "nowhere"'):
        pim_emu.DpuSet(1, machine="nowhere")
    with pim_emu.DpuSet(2) as dpus:
        with pytest.raises(pim_emu.DpuError, match="dpu_launch"):
            dpus.launch()
        with pytest.raises(pim_emu.DpuError, match=r'dpu_load: .* cannot read ".*absent"'):
            dpus.load(tmp_path / "absent")
        dpus.load(scale)
        with pytest.raises(ValueError, match=r"2 rows, one per DPU, got \(3,\)"):
            dpus.scatter("factor", np.zeros(3, np.int32))
        with pytest.raises(pim_emu.DpuError, match='no symbol "nothing"'):
            dpus.broadcast("nothing", np.zeros(1, np.int32))
    with pytest.raises(pim_emu.DpuError, match="closed"):
        dpus.launch()
    dpus.close()
    with pytest.raises(ValueError, match="seed must be a number from 0"):
        pim_emu.configure(seed=-1)


def test_what_the_compiler_says_is_kept(tmp_path):
    with pytest.raises(pim_emu.BuildError, match="undeclared"):
        pim_emu.build("int main(void) {\n    return absent;\n}\n")
    with pytest.raises(pim_emu.BuildError, match="too many tasklets: NR_TASKLETS is 25"):
        pim_emu.build(SCALE, tasklets=25)
    with pytest.raises(ValueError, match="traced and fast exclude each other"):
        pim_emu.build(SCALE, traced=True, fast=True)
    built = pim_emu.build("int main(void) {\n    int unused;\n    return 0;\n}\n")
    assert "unused" in built.warnings
    source = tmp_path / "kernel.c"
    source.write_text(SCALE.replace("factor = 1", "factor = FACTOR"))
    built = pim_emu.build([source], define={"FACTOR": 7}, output=tmp_path / "out" / "kernel")
    assert built.path == tmp_path / "out" / "kernel"
    assert pim_emu.run(built, gather={"factor": (np.int32, ())})["factor"].tolist() == [7]


def test_neither_building_nor_running_needs_jax(scale):
    code = (
        f"import sys, pim_emu\npim_emu.run({str(scale.path)!r})\nassert 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
