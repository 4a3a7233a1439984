"""The vendor's module `dpu`, as host programs import it from the SDK folder."""

import array
import gc
import importlib
import io
import os
import struct
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from sdk_present import needs_sdk

import pim_emu
from pim_emu.sdk import sdk_path
from pim_emu.toolchain.layout import SdkLayout

pytestmark = [needs_sdk, pytest.mark.usefixtures("settings")]

PROGRAM = r"""
#include <mram.h>
#include <stdint.h>
#include <stdio.h>

__host int8_t i8[4] = {-1, 2, -3, 4};
__host uint8_t u8[4] = {255, 254, 1, 0};
__host int16_t i16[2] = {-300, 300};
__host uint16_t u16[2] = {65535, 1};
__host int32_t i32 = -70000;
__host uint32_t u32 = 4000000000u;
__host int64_t i64 = -5000000000ll;
__host uint64_t u64 = 18000000000000000000ull;
__host float f32 = 0.5f;
__host double f64 = -0.1;
__host uint32_t calls;
__host uint32_t log;
__mram_noinit uint32_t values[64];
__dma_aligned uint32_t block[64];

int main(void) {
    mram_read(values, block, sizeof block);
    for (int i = 0; i < 64; ++i) block[i] = 3 * block[i] + i32;
    mram_write(block, values, sizeof block);
    printf("launch %u\n", ++calls);
    return 0;
}
"""
OTHER = r"""
#include <mram.h>
#include <stdint.h>

__host uint32_t only = 9;

int main(void) {
    return 0;
}
"""
FAULT = "#include <stdlib.h>\nint main(void) { abort(); }\n"


def expected(rows, addend=-70000):
    """Compute what a launch makes of values."""
    return (3 * rows.astype(np.int64) + addend).astype(np.uint32)


@pytest.fixture(scope="module")
def program():
    return pim_emu.build(PROGRAM).path


@pytest.fixture
def dpu(monkeypatch):
    """The module, imported anew."""
    monkeypatch.syspath_prepend(SdkLayout(sdk_path()).root / "lib/python3/dist-packages")
    for name in [name for name in sys.modules if name.partition(".")[0] == "dpu"]:
        monkeypatch.delitem(sys.modules, name)
    yield importlib.import_module("dpu")
    for name in ("dpu", "dpu.driver"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("count", [1, 3])
def test_variables_of_every_type_are_attributes(dpu, program, count):
    numbers = {
        "int32": ("i32", -70000), "uint32": ("u32", 4000000000), "int64": ("i64", -5000000000),
        "uint64": ("u64", 18000000000000000000), "float": ("f32", 0.5), "double": ("f64", -0.1),
    }  # fmt: skip
    arrays = {
        "int8": ("i8", [-1, 2, -3, 4]), "uint8": ("u8", [255, 254, 1, 0]),
        "int16": ("i16", [-300, 300]), "uint16": ("u16", [65535, 1]),
    }  # fmt: skip
    with dpu.DpuSet(nr_dpus=count, binary=str(program)) as dpus:
        for kind, (name, value) in numbers.items():
            read = getattr(getattr(dpus, name), kind)()
            assert read == (value if count == 1 else [value] * count)
        for kind, (name, values) in arrays.items():
            read = getattr(getattr(dpus, name), kind)()
            rows = [read] if count == 1 else read
            assert [row.tolist() for row in rows] == [values] * count
        last = dpus.dpus()[-1]
        assert bytes(last.f64.data()) == struct.pack("<d", -0.1)
        dpus.i32 = struct.pack("<i", 7)
        last.i32 = bytearray(struct.pack("<i", 8))
        assert [each.i32.int32() for each in dpus] == [*[7] * (count - 1), 8]
        dpus.u16 = [array.array("H", [index, 500]) for index in range(count)]
        assert [each.u16.uint16().tolist() for each in dpus] == [[i, 500] for i in range(count)]


def test_a_variable_is_not_hidden_by_an_attribute_set_before_the_load(dpu, program):
    with dpu.DpuSet(2) as dpus:
        first = dpus.dpus()[0]
        dpus.i32 = first.i32 = dpus.note = "stale"
        dpus.load(program)
        assert (dpus.i32.int32(), first.i32.int32()) == ([-70000, -70000], -70000)
        assert dpus.note == "stale"
    with dpu.DpuSet(1) as dpus:
        dpus.i32 = "stale"
        dpus.dpus()[0].load(program)  # by which the set has the variable
        dpus.i32 = struct.pack("<i", 7)
        assert dpus.i32.int32() == 7


def test_a_program_is_not_taken_for_one_whose_place_it_got(dpu):
    programs = {
        name: pim_emu.build(OTHER.replace("only", name)).path for name in ("one", "two", "three")
    }
    with dpu.DpuSet(1) as dpus:
        first = dpus.load(programs["one"]).pointer.value
        for name in 50 * ("two", "three"):  # the library frees a program and reuses its memory
            if dpus.dpus()[0].load(programs[name]).pointer.value == first:
                break
        for part in (dpus, dpus.ranks()[0], dpus.dpus()[0]):
            assert getattr(part, name).uint32() == 9


def test_copies_of_one_buffer_and_of_one_for_each_dpu(dpu, program):
    rows = np.random.default_rng(0).integers(0, 2**32, (3, 64), np.uint32)
    with dpu.DpuSet(3, binary=program) as dpus:
        assert len(dpus) == 3
        dpus.copy("values", bytearray(rows[0].tobytes()))
        dpus.copy("values", [None, memoryview(rows[1]), bytearray(rows[2].tobytes())])
        dpus.exec()
        results = [bytearray(256) for _ in dpus]
        dpus.copy(results, "values")
        assert np.array_equal(
            np.array([np.frombuffer(x, np.uint32) for x in results]), expected(rows)
        )
        middle = np.zeros(64, np.uint32)
        symbol = dpus.load(binary=program).get_symbol("values")  # MRAM outlives a load
        assert (symbol.name, symbol.size(), symbol.value() >> 27) == ("values", 256, 1)
        dpus.dpus()[1].copy(middle, symbol, 16, 32)
        assert np.array_equal(middle[:4], expected(rows[1])[8:12])
        assert not middle[4:].any()
        dpus.copy([None, middle, None], "values", offset=8, size=248)
        assert np.array_equal(middle[:62], expected(rows[1])[2:])
        dpus.copy("__sys_used_mram_end", bytearray(b"in a heap"[:8]), offset=1 << 20)
        heap = [bytearray(8) for _ in dpus]
        dpus.copy(heap, "__sys_used_mram_end", offset=1 << 20)
        assert heap == [b"in a hea"] * 3


def test_ranks_are_sets(dpu, program):
    with dpu.DpuSet(nr_ranks=2, binary=str(program)) as dpus:
        first, second = dpus.ranks()
        assert (len(dpus), len(first), len(second)) == (128, 64, 64)
        assert [*dpus] == dpus.dpus() == first.dpus() + second.dpus()
        assert second.dpus()[5].ranks() == [second]
        second.exec()
        second.dpus()[3].exec()
        counts = [0] * 64 + [1] * 64
        counts[67] = 2
        assert dpus.calls.uint32() == counts
        assert first.load(c_source=io.StringIO(OTHER)).fetch_all_symbols().keys() == {"only"}
        assert first.only.uint32() == [9] * 64
        assert second.calls.uint32() == counts[64:]
        for absent in (lambda: dpus.calls, lambda: second.only):
            with pytest.raises(AttributeError):
                absent()


def test_asynchronous_calls_run_in_their_order(dpu, program):
    rows = np.arange(3 * 64, dtype=np.uint32).reshape(3, 64)
    with dpu.DpuSet(3, binary=program, async_mode=True) as dpus:
        results = np.zeros_like(rows)
        dpus.copy("values", [bytearray(row.tobytes()) for row in rows])  # kept by the set alone
        gc.collect()
        dpus.exec()
        dpus.exec()
        dpus.copy(list(results), "values")
        dpus.sync()
        assert np.array_equal(results, expected(expected(rows)))
        assert dpus.calls.uint32() == [2] * 3  # reading a variable waits
        dpus.exec(async_mode=False)
        dpus.copy(list(results), "values", async_mode=False)
        assert np.array_equal(results, expected(expected(expected(rows))))


def test_callbacks(dpu, program):
    seen = []

    def note(part, index, arg):
        seen.append((part, index, arg, part.calls.uint32()[0] if len(part) > 1 else None))

    with dpu.DpuSet(nr_ranks=2, binary=program) as dpus:
        dpus.call(note, "now")
        assert sorted(each[1:] for each in seen) == [(0, "now", 0), (1, "now", 0)]
        assert {each[0] for each in seen} == set(dpus.ranks())
        seen.clear()
        dpus.exec(async_mode=True)
        dpus.call(note, "queued", async_mode=True)
        dpus.exec(async_mode=True)
        dpus.sync()
        assert sorted(each[1:] for each in seen) == [(0, "queued", 1), (1, "queued", 1)]
        seen.clear()
        dpus.call(note, None, single_call=True)
        assert [(each[0], each[3]) for each in seen] == [(dpus, 2)]
        dpus.ranks()[1].call(note, None)
        dpus.dpus()[70].call(note, None)
        assert [each[0] for each in seen[1:]] == [dpus.ranks()[1], dpus.dpus()[70]]
        begun, go_on = threading.Event(), threading.Event()

        def wait(part, index, arg):
            begun.set()
            assert go_on.wait(30)

        dpus.ranks()[0].call(wait, None, async_mode=True, is_blocking=False)
        assert begun.wait(30)
        dpus.exec()  # it waits for no callback
        go_on.set()
        with pytest.raises(dpu.DpuError, match="cannot be non-blocking"):
            dpus.call(note, None, is_blocking=False)
        with pytest.raises(TypeError, match="fn must be a function"):
            dpus.call("note", None)


@pytest.mark.parametrize("queued", [False, True])
def test_a_callbacks_exception_is_raised(dpu, program, queued):
    def fail(part, index, arg):
        raise ZeroDivisionError(arg)

    with dpu.DpuSet(1, binary=program) as dpus:
        if queued:
            dpus.call(fail, "late", async_mode=True)
        with pytest.raises(ZeroDivisionError, match="late"):
            dpus.sync() if queued else dpus.call(fail, "late")
        dpus.exec()
        assert dpus.calls.uint32() == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda dpus, path: dpus.calls,
        lambda dpus, path: dpus.copy("i32", bytes(4)),
        lambda dpus, path: dpus.copy("i32", bytes(4), async_mode=True),
        lambda dpus, path: dpus.load(path),
        lambda dpus, path: dpus.free(),
    ],
    ids=["read", "copy", "queued copy", "load", "free"],
)  # fmt: skip
def test_a_queued_exception_is_raised_once_by_the_call_that_meets_it(dpu, program, use):
    go_on, ran = threading.Event(), threading.Event()

    def fail(part, index, arg):
        assert go_on.wait(30)  # or the call that queues the second would meet the exception
        ran.set()
        raise ZeroDivisionError("late")

    with dpu.DpuSet(1, binary=program) as dpus:
        dpus.call(fail, None, async_mode=True)
        dpus.call(fail, None, async_mode=True)  # skipped
        go_on.set()
        assert ran.wait(30)
        time.sleep(0.05)  # a queued copy does not wait, and may come before the exception
        with pytest.raises(ZeroDivisionError, match="late"):
            use(dpus, program)
        if dpus._state.allocation.is_open:
            dpus.sync()
            use(dpus, program)


def test_errors_of_what_is_queued_outlast_the_set(dpu, program):
    def fail(part, index, arg):
        raise ZeroDivisionError(arg)

    for is_blocking in (True, False):
        with (
            pytest.raises(ZeroDivisionError, match="late"),
            dpu.DpuSet(1, binary=program, async_mode=True) as dpus,
        ):
            dpus.call(fail, "late", is_blocking=is_blocking)
        with pytest.raises(dpu.DpuError, match="the set was freed"):
            dpus.sync()
    faulty = io.StringIO(FAULT)
    with (
        pytest.raises(pim_emu.EmulatorFault, match="stopped by the program"),
        dpu.DpuSet(1, c_source=faulty, async_mode=True) as dpus,
    ):
        dpus.exec()

    def end_by_an_error():
        with dpu.DpuSet(1, binary=program, async_mode=True) as dpus:
            dpus.call(fail, "late")
            raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        end_by_an_error()


def test_an_error_is_not_taken_for_that_of_another_call(dpu, program):
    with dpu.DpuSet(1, c_source=io.StringIO(FAULT)) as dpus:
        with pytest.raises(pim_emu.EmulatorFault):
            dpus.exec()
        with pytest.raises(dpu.DpuError, match="nothing"):
            dpus.copy("nothing", bytes(8))
        with pytest.raises(dpu.DpuError, match="file not found"):
            dpus.load("/no/file")


def test_memory_and_functions_are_kept_as_long_as_they_are_queued(dpu, program):
    class Function:
        def __call__(self, part, index, arg):
            pass

    waits = (
        lambda dpus: dpus.calls, lambda dpus: dpus.exec(), lambda dpus: dpus.sync(),
        lambda dpus: dpus.load(program), lambda dpus: dpus.call(Function(), None),
    )  # fmt: skip
    with dpu.DpuSet(1, binary=program) as dpus:
        for wait in waits:
            rows, function = np.zeros(64, np.uint32), Function()
            held = weakref.ref(rows), weakref.ref(function)
            dpus.copy("values", rows, async_mode=True)
            dpus.call(function, None, async_mode=True)
            del rows, function
            wait(dpus)
            gc.collect()
            assert [each() for each in held] == [None, None]
        go_on, kept = threading.Event(), []

        def read(part, index, arg):
            assert go_on.wait(30)
            assert part.calls.uint32() == 0  # a wait, but not for what is queued after this
            kept.append(held[0]() is not None)

        rows = np.full(64, 5, np.uint32)
        held = (weakref.ref(rows),)
        dpus.call(read, None, async_mode=True)
        dpus.copy("values", rows, async_mode=True)
        del rows
        go_on.set()
        assert dpus.values.uint32().tolist() == [5] * 64
        assert (kept, held[0]()) == ([True], None)


def test_logs_go_where_they_are_sent(dpu, program, capsys):
    def text(index, launch):
        return f"=== DPU#{index:#x} ===\nlaunch {launch}\n"

    own, other = io.StringIO(), io.StringIO()
    with dpu.DpuSet(2, binary=program, log=own) as dpus:
        dpus.exec()
        assert own.getvalue() == text(0, 1) + text(1, 1)
        dpus.exec(log=other)
        dpus.exec(log=[None, other])
        dpus.exec(log={dpus.dpus()[0]: other})
        assert own.getvalue() == text(0, 1) + text(1, 1) + text(0, 3) + text(1, 4)
        assert other.getvalue() == text(0, 2) + text(1, 2) + text(1, 3) + text(0, 4)
        dpus.exec(async_mode=True)
        dpus.sync()
        assert own.getvalue().endswith(text(1, 4))
        for bad, why in (([own], "1 streams for 2 DPUs"), ("file", "no method write")):
            with pytest.raises(dpu.DpuError, match=why):
                dpus.log(bad)
        with pytest.raises(dpu.DpuError, match="is no DPU of the set"):
            dpus.exec(log={"0": own})
    each = [io.StringIO(), None]
    with dpu.DpuSet(2, binary=program, log=each) as dpus:
        dpus.exec()
        assert capsys.readouterr().out == ""
        dpus.log()
        assert each[0].getvalue() == 2 * text(0, 1)
        assert capsys.readouterr().out == text(1, 1)
    with pytest.raises(dpu.DpuError, match="1 streams for 2 DPUs"):
        dpu.DpuSet(2, log=[own])


def test_programs_are_loaded_from_files_bytes_and_sources(dpu, program, tmp_path):
    source = tmp_path / "other.c"
    source.write_text(OTHER)
    with dpu.DpuSet(nr_dpus=1, c_source=str(source)) as one:
        assert one.only.uint32() == 9
        with source.open() as file:
            assert one.load(c_source=[file]).get_symbol("only").size() == 4
        assert one.load(program.read_bytes()).get_symbol("only") is None
        assert one.i32.int32() == -70000
        assert one.load(str(program)).get_symbol("log").name == "log"
    with dpu.driver.allocate(2) as two:
        two.load(str(program))
        assert two.i32.int32() == [-70000, -70000]
    with dpu.DpuSet(nr_ranks=dpu.ALLOCATE_ALL) as every, pytest.raises(dpu.DpuError, match="left"):
        dpu.DpuSet(len(every) + 1)


@pytest.mark.parametrize(
    ("use", "error", "why"),
    [
        (lambda s: s.copy("nothing", bytes(8)), "DpuError", '"nothing"; it has block, calls, f32'),
        (lambda s: s.nothing, AttributeError, "'nothing'; it has block, calls, f32"),
        (lambda s: s.copy("i32", bytes(8)), "DpuError", "offset 0 . length 8 exceeds its 4"),
        (lambda s: setattr(s, "i32", bytes(8)), "DpuError", "exceeds its 4 bytes"),
        (lambda s: s.copy("i32", bytes(4), offset=4), "DpuError", "offset 4"),
        (lambda s: s.copy("values", bytes(6)), "DpuError", "multiples of 8"),
        (lambda s: s.copy("i32", bytes(4), size=8), "DpuError", "size is 8 B, the buffer has 4 B"),
        (lambda s: s.copy("i32", bytes(4), size=-1), ValueError, "size must be"),
        (lambda s: s.copy("i32", [bytes(4)]), "DpuError", "1 buffers for 2 DPUs"),
        (lambda s: s.copy("i32", [None, None]), "DpuError", "no DPU has a buffer"),
        (lambda s: s.copy("i32", [bytes(4), bytes(8)]), "DpuError", r"one size, got \[4, 8\]"),
        (lambda s: s.copy(bytearray(4), "i32"), "DpuError", "1 buffers for 2 DPUs"),
        (lambda s: s.copy([bytes(4)] * 2, "i32"), TypeError, "constant"),
        (lambda s: s.copy("i32", np.zeros((4, 4))[:, 0]), TypeError, "contiguous"),
        (lambda s: s.copy("i32", 5), TypeError, "got 5"),
        (lambda s: setattr(s, "i32", 5), TypeError, "got 5"),
        (lambda s: s.copy("i32", "u32"), "DpuError", "one of dst and src must be a symbol"),
        (lambda s: s.copy(bytes(4), bytes(4)), "DpuError", "one of dst and src must be a symbol"),
        (lambda s: s.i32.int64(), "DpuError", "'i32' has 4 B, no multiple of 8"),
        (lambda s: setattr(s, "log", bytes(4)), AttributeError, "'log' is a method"),
        (lambda s: s.load(), "DpuError", "either binary or c_source"),
        (lambda s: s.load("x", c_source="y.c"), "DpuError", "either binary or c_source"),
        (lambda s: s.load(asm_source="x.S"), "DpuError", "assembly is not emulated"),
        (lambda s: s.load("/no/file"), "DpuError", "file not found"),
        (lambda s: s.load(5), TypeError, "binary must be a path or bytes, got 5"),
        (lambda s: s.load(c_source=5), TypeError, "c_source must be a path"),
        (lambda s: s.load(c_source="/no/file.c"), "DpuError", "there is no file"),
        (lambda s: s.load(c_source=io.StringIO("int main(")), "DpuError", "source-0.c:1"),
        (lambda s: s.checkpoint(mram=False), "DpuError", "registers and IRAM are not emulated"),
        (lambda s: s.restore(None), "DpuError", "registers and IRAM are not emulated"),
        (lambda s: s.dpus()[0].free(), "DpuError", "no part of it"),
        (lambda s: type(s)(nr_dpus=1, nr_ranks=1), "DpuError", "exclude each other"),
        (lambda s: type(s)(nr_dpus=0), ValueError, "nr_dpus must be a whole number"),
        (lambda s: type(s)(1, profile="a=b"), "DpuError", 'unknown key "a"'),
    ],
)  # fmt: skip
def test_mistakes(dpu, program, use, error, why):
    with dpu.DpuSet(2, binary=program) as dpus:
        with pytest.raises(dpu.DpuError if error == "DpuError" else error, match=why):
            use(dpus)
        dpus.copy("i32", [struct.pack("<i", 1), struct.pack("<i", 2)])
        dpus.exec()
        assert dpus.calls.uint32() == [1, 1]
        assert dpus.i32.int32() == [1, 2]


def test_faults_and_sets_that_are_no_more(dpu, program):
    with dpu.DpuSet(2, c_source=io.StringIO(FAULT)) as dpus:
        with pytest.raises(dpu.DpuError, match="stopped by the program: DPU 0") as fault:
            dpus.exec()
        assert (fault.value.fault, fault.value.dpu) == ("stopped by the program", 0)
        dpus.load(program)
        dpus.exec(async_mode=True)
        dpus.sync()
        dpus.load(c_source=io.StringIO(FAULT))
        dpus.exec(async_mode=True)
        with pytest.raises(dpu.DpuError, match="stopped by the program"):
            dpus.sync()
    last = dpus.dpus()[1]
    for use in (dpus.exec, dpus.free, dpus.sync, dpus.log, last.exec, lambda: last.calls):
        with pytest.raises(dpu.DpuError, match="the set was freed"):
            use()
    with pytest.raises(dpu.DpuError, match="the set was freed"), dpus:
        pass
    with dpu.DpuSet(1) as empty:
        with pytest.raises(dpu.DpuError, match="no program"):
            empty.exec()
        with pytest.raises(AttributeError, match="no program is loaded"):
            empty.values  # noqa: B018 the access is what fails
        empty.note = 3
        assert empty.note == 3
        empty.load(program)
        with pytest.warns(UserWarning, match="no variable 'vals'"):
            empty.vals = bytes(8)
        empty.free()
    with pytest.raises(AttributeError, match="could be verified"):
        dpu.driver.DpuContext  # noqa: B018 the access is what fails


def test_a_set_that_nobody_holds_is_freed(dpu):
    whole = dpu.DpuSet()
    whole.ranks()[0].dpus()[0].note = "kept"
    gc.disable()  # no collection by chance
    try:
        del whole
        again = dpu.DpuSet()
    finally:
        gc.enable()
    with again:
        assert len(again) == 2560


HOST = f"""
import sys
from io import StringIO
from dpu import ALLOCATE_ALL, DpuSet, driver
assert not [name for name in ("numpy", "jax", "accel_rl") if name in sys.modules]
with DpuSet(nr_dpus=2, c_source=StringIO({OTHER!r}), log=sys.stdout) as dpus:
    dpus.exec()
    print(dpus.only.uint32(), driver.DpuSet is DpuSet, ALLOCATE_ALL)
"""
PRINTED = "=== DPU#0x0 ===\n=== DPU#0x1 ===\n[9, 9] True 4294967295\n"


@pytest.mark.parametrize("flags", [(), ("-S",)])
def test_any_interpreter_has_the_module_in_the_sdks_environment(flags, tmp_path):
    """With -S it has no site-packages, hence no pim_emu of its own."""
    (tmp_path / "host.py").write_text(HOST)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= SdkLayout(sdk_path()).variables(environment)
    done = subprocess.run(
        [sys.executable, *flags, "host.py"], cwd=tmp_path, env=environment, text=True,
        capture_output=True, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (PRINTED, "")
