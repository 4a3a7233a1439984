"""Building and running DPU programs from Python, against NumPy."""

import dataclasses
import gc
import os
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sdk_present import needs_sdk

import pim_emu
from accel_rl.pim import cost
from pim_emu import host_library as lib

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
    if (bad) mram_read((__mram_ptr void *)0x0c000000, here, 8);
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
        with pytest.raises(pim_emu.DpuError, match=f'symbol "heap": offset {size} .* exceeds'):
            dpus.broadcast("heap", np.zeros(2, np.int32), offset=size)


def test_a_fault_names_the_place_and_spares_the_other_dpus():
    program = pim_emu.build(WRONG)
    pim_emu.configure(quiet=True)
    with pim_emu.DpuSet(3, program) as dpus:
        dpus.scatter("bad", np.array([0, 1, 0], np.int32))
        with pytest.raises(
            pim_emu.EmulatorFault, match=r"DPU 1, tasklet 0, .*\.c:8 \(main\)"
        ) as caught:
            dpus.launch()
        assert caught.value.fault == "MRAM out of bounds"
        assert caught.value.dpu == 1
        assert caught.value.log == "so far\n"
        assert dpus.logs() == ["so far\n"] * 3
        dpus.load(program)
        dpus.launch()
    pim_emu.configure(quiet=False)


def test_a_set_says_what_it_is(scale):
    with pim_emu.DpuSet(np.int64(3), machine="upmem-v1b") as dpus:
        assert repr(dpus) == "<DpuSet of 3 DPUs, machine upmem-v1b, no program>"
        dpus.load(scale)
        assert repr(dpus) == "<DpuSet of 3 DPUs, machine upmem-v1b, program program>"
    assert repr(dpus) == "<DpuSet of 3 DPUs, machine upmem-v1b, program program, closed>"


def all_can_be_had():
    with pim_emu.DpuSet(pim_emu.load_machine().total_dpus) as dpus:
        return len(dpus) == pim_emu.load_machine().total_dpus


def test_a_set_that_cannot_be_made_keeps_no_dpus(monkeypatch, recwarn):
    for _ in range(41):  # a rank each
        with pytest.raises(pim_emu.DpuError, match='cannot read "absent"'):
            pim_emu.DpuSet(64, "absent")
        with pytest.raises(pim_emu.DpuError, match='cannot read "absent"'):
            pim_emu.run("absent")

    def interrupted(handle):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(lib, "member_handles", interrupted)
        for _ in range(41):
            with pytest.raises(KeyboardInterrupt):
                pim_emu.DpuSet(64)
    gc.collect()
    assert not recwarn.list  # nothing was left for the collector
    assert all_can_be_had()


def test_a_set_that_is_not_closed_is_freed_when_it_is_collected(scale):
    half = pim_emu.load_machine().total_dpus // 2
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(4):
            dpus = pim_emu.DpuSet(half, scale)  # two at a time, until the name is bound again
        with pytest.raises(pim_emu.DpuError, match="a DpuSet keeps its DPUs until it is closed"):
            pim_emu.DpuSet(half + 1)
        del dpus
        gc.collect()
    assert {warning.category for warning in warned} == {ResourceWarning}
    assert [str(each.message) for each in warned] == [
        f"a DpuSet of {half} DPUs was never closed"
    ] * 4
    assert all_can_be_had()


def test_a_set_that_is_closed_is_not_freed_again(scale, recwarn):
    dpus = pim_emu.DpuSet(1, scale)
    dpus.close()
    with pim_emu.DpuSet(1) as other:  # has the rank of the first
        dpus.close()
        del dpus
        gc.collect()
        other.load(scale)
        assert other.gather("factor", np.int32).tolist() == [1]
    assert not recwarn.list


@pytest.mark.parametrize("close", [False, True], ids=["left", "closed"])
def test_what_is_left_at_the_end_of_the_process_is_freed(scale, close):
    code = f"import pim_emu\ndpus = pim_emu.DpuSet(3, {str(scale.path)!r})\n"
    code += "dpus.close()\n" if close else ""
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", code],
        env={**os.environ, "PIM_EMU_REPORT": "1"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("pim_emu: 3 DPUs in 1 ranks") == 1
    assert ("a DpuSet of 3 DPUs was never closed" in done.stderr) == (not close)


def test_a_closed_set_refuses_everything(scale):
    with pim_emu.DpuSet(2, scale) as dpus:
        pass
    for use in (
        lambda: dpus.load(scale),
        lambda: dpus.broadcast("factor", np.int32(1)),
        lambda: dpus.scatter("factor", np.zeros(2, np.int32)),
        lambda: dpus.gather("factor", np.int32),
        dpus.launch, dpus.logs, dpus.counters, dpus.set_counters, dpus.__enter__,
    ):  # fmt: skip
        with pytest.raises(pim_emu.DpuError, match=r"^the set is closed$"):
            use()
    dpus.close()
    assert len(dpus) == 2


def test_errors_survive_pickling():
    program = pim_emu.build(WRONG)
    pim_emu.configure(quiet=True)
    try:
        with pytest.raises(pim_emu.EmulatorFault) as fault:
            pim_emu.run(program, broadcast={"bad": np.int32(1)})
        with pytest.raises(pim_emu.DpuError) as refused:
            pim_emu.run("absent")
    finally:
        pim_emu.configure(quiet=False)
    with pytest.raises(pim_emu.BuildError) as unbuilt:
        pim_emu.build("int main(void) {\n    return absent;\n}\n")
    fault.value.add_note("in a worker")
    for error in (fault.value, refused.value, unbuilt.value):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        assert vars(again) == vars(error)
    again = pickle.loads(pickle.dumps(fault.value))
    assert (again.fault, again.dpu, again.log) == ("MRAM out of bounds", 0, "so far\n")
    assert (again.status, refused.value.status) == (23, 25)  # of dpu_error_t


def test_results_are_compared_by_identity(scale):
    first, second = (pim_emu.run(scale, gather={"factor": np.int32}) for _ in range(2))
    assert first["factor"].tolist() == second["factor"].tolist() == [1]
    assert first == first
    assert first != second
    assert len({first, second}) == 2


def test_dataclasses_say_what_their_fields_are():
    described = [getattr(of, name) for of in (pim_emu, cost) for name in of.__all__]
    described = [each for each in described if dataclasses.is_dataclass(each)]
    assert len(described) == 13
    for each in described:
        attributes = each.__doc__.partition("Attributes:")[2].partition("\n\n")[0]
        names = re.findall(r"^      (\w+):", attributes, re.MULTILINE)
        assert names == [field.name for field in dataclasses.fields(each)], each


def test_what_the_compiler_says_is_kept(tmp_path):
    with pytest.raises(pim_emu.BuildError, match="undeclared"):
        pim_emu.build("int main(void) {\n    return absent;\n}\n")
    with pytest.raises(pim_emu.BuildError, match="too many tasklets: NR_TASKLETS is 25"):
        pim_emu.build(SCALE, tasklets=25)
    built = pim_emu.build("int main(void) {\n    int unused;\n    return 0;\n}\n")
    assert "unused" in built.warnings
    source = tmp_path / "kernel.c"
    source.write_text(SCALE.replace("factor = 1", "factor = FACTOR"))
    built = pim_emu.build([source], define={"FACTOR": 7}, output=tmp_path / "kernel")
    assert built.path == tmp_path / "kernel"
    assert pim_emu.run(built, gather={"factor": (np.int32, ())})["factor"].tolist() == [7]


def test_the_text_of_a_program_touches_no_file_of_the_users(tmp_path):
    (tmp_path / "prog-0.c").write_text("mine")
    program = pim_emu.build(WRONG, output=tmp_path / "prog")
    assert (tmp_path / "prog-0.c").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prog", "prog-0.c"]
    with pytest.raises(pim_emu.EmulatorFault, match=r"prog-0\.c:8 \(main\)"):
        pim_emu.run(program, broadcast={"bad": np.int32(1)})


def test_build_takes_one_folder_or_several_and_macros_of_any_type(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.h").write_text(f"#define {name.upper()} (10 * TWICE(NUMBER))\n")
    text = """#include <stdint.h>
#include <one.h>
#include <two.h>
__host int32_t found = ONE + TWO
#if FLAG
    + 1
#endif
    ;
int main(void) { return 0; }
"""
    define = {"TWICE(x)": "(2 * (x))", "NUMBER": np.int64(3), "FLAG": True}
    folders = [tmp_path / "one", str(tmp_path / "two")]
    built = pim_emu.build(f"#include <defs.h>\n{text}", define=define, include=folders)
    assert pim_emu.run(built, gather={"found": np.int32})["found"].tolist() == [121]
    text = text.replace("#include <two.h>", "#define TWO 0")
    for folder in (tmp_path / "one", str(tmp_path / "one")):
        built = pim_emu.build(f"#include <defs.h>\n{text}", define=define, include=folder)
        assert pim_emu.run(built, gather={"found": np.int32})["found"].tolist() == [61]


def test_neither_building_nor_running_needs_jax(scale):
    code = (
        f"import sys, pim_emu\npim_emu.run({str(scale.path)!r})\nassert 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
