"""Bad input to the Python side: what the error says, and that nothing has changed after it."""

import re
from pathlib import Path

import numpy as np
import pytest
from sdk_present import needs_sdk

import pim_emu
from pim_emu import host_library as lib

pytestmark = needs_sdk

TEXT = """#include <defs.h>
#include <mram.h>
#include <stdint.h>
__host uint32_t n = 1;
__host uint8_t bytes[48];
static uint64_t inner[2];
__mram_noinit int32_t rows[16];
__dma_aligned char here[16];
int main(void) {
    inner[0] += n;
    mram_read((__mram_ptr void *)((uintptr_t)rows + n), here, 8);
    return (int)inner[0];
}
"""


@pytest.fixture(scope="module")
def program():
    return pim_emu.build(TEXT)


@pytest.fixture
def dpus(program):
    """Two DPUs, which must hold at the end what they held at the beginning."""
    pim_emu.configure(quiet=True)
    with pim_emu.DpuSet(2, program) as dpus:
        dpus.scatter("n", np.array([7, 8], np.uint32))
        dpus.broadcast("rows", np.arange(16, dtype=np.int32))
        sent = dpus.set_counters()
        yield dpus
        assert dpus.set_counters() == sent
        assert dpus.gather("n", np.uint32).tolist() == [7, 8]
        assert dpus.gather("rows", np.int32, 16).tolist() == [list(range(16))] * 2
        assert dpus.gather("bytes", np.uint8, 48).tolist() == [[0] * 48] * 2
        dpus.scatter("n", np.array([9, 10], np.uint32))
        assert dpus.gather("n", np.uint32).tolist() == [9, 10]
    pim_emu.configure(quiet=False)


def refuses(call, error, says):
    with pytest.raises(error, match=re.escape(says)) as caught:
        call()
    assert type(caught.value) is error, "not a subclass"


NO_COPY = "cannot be copied to or from a DPU"
PYTHON_8 = "values take 8 B each, and Python's numbers become such"
TRANSFERS = {
    "offset below": (
        lambda s: s.gather("n", "u4", offset=-4),
        *(ValueError, "offset must be a whole number from 0 to 4294967295, got -4"),
    ),
    "offset beyond": (
        lambda s: s.scatter("n", np.zeros(2, "u4"), offset=2**32),
        *(ValueError, "offset must be a whole number from 0 to 4294967295, got 4294967296"),
    ),
    "offset a text": (
        lambda s: s.broadcast("n", np.uint32(5), offset="4"),
        *(TypeError, "offset must be a whole number from 0 to 4294967295, got '4'"),
    ),
    "number as symbol": (
        lambda s: s.gather(5, "u4"),
        *(TypeError, "symbol must be the name of a variable, got 5"),
    ),
    "bytes as symbol": (
        lambda s: s.scatter(b"n", np.zeros(2, "u4")),
        *(TypeError, "symbol must be the name of a variable, got b'n'"),
    ),
    "no symbol": (
        lambda s: s.broadcast("", np.uint32(5)),
        *(ValueError, "symbol must be the name of a variable, got ''"),
    ),
    "NUL in symbol": (
        lambda s: s.broadcast("n\0", np.uint32(5)),
        *(ValueError, r"symbol must be the name of a variable, got 'n\x00'"),
    ),
    "unknown symbol": (
        lambda s: s.gather("rowz", "u4"),
        *(pim_emu.DpuError, 'no symbol "rowz"; it has bytes, here, inner, n, rows and heap'),
    ),
    "unknown symbol to all": (
        lambda s: s.broadcast("rowz", np.uint32(1)),
        *(pim_emu.DpuError, 'no symbol "rowz"; it has bytes, here, inner, n, rows and heap'),
    ),
    "text": (lambda s: s.broadcast("n", "5"), TypeError, f"symbol 'n': dtype <U1 {NO_COPY}"),
    "texts": (
        lambda s: s.scatter("n", np.array(["a", "b"])),
        *(TypeError, f"symbol 'n': dtype <U1 {NO_COPY}"),
    ),
    "bytes": (lambda s: s.broadcast("n", b"1234"), TypeError, f"'n': dtype |S4 {NO_COPY}"),
    "None": (lambda s: s.broadcast("n", None), TypeError, f"'n': dtype object {NO_COPY}"),
    "date": (
        lambda s: s.broadcast("rows", np.datetime64("2020-01-01")),
        *(TypeError, f"symbol 'rows': dtype datetime64[D] {NO_COPY}"),
    ),
    "text in structure": (
        lambda s: s.scatter("rows", np.zeros(2, [("a", "u4"), ("b", "U1")])),
        *(TypeError, f"symbol 'rows': dtype [('a', '<u4'), ('b', '<U1')] {NO_COPY}"),
    ),
    "byte order": (
        lambda s: s.scatter("n", np.arange(2, dtype=">u4")),
        *(TypeError, "dtype >u4 has its bytes in another order than a DPU; convert it to uint32"),
    ),
    "byte order in structure": (
        lambda s: s.broadcast("rows", np.zeros(1, [("a", "<u4"), ("b", (">u2", 2))])),
        *(TypeError, "has its bytes in another order than a DPU"),
    ),
    "ragged": (
        lambda s: s.broadcast("rows", [[1, 2], [3]]),
        *(ValueError, "symbol 'rows': values are not an array: "),
    ),
    "gathered texts": (lambda s: s.gather("n", "U1"), TypeError, f"'n': dtype <U1 {NO_COPY}"),
    "gathered objects": (lambda s: s.gather("n", "O"), TypeError, f"'n': dtype object {NO_COPY}"),
    "gathered byte order": (
        lambda s: s.gather("n", ">u4"),
        *(TypeError, "symbol 'n': dtype >u4 has its bytes in another order"),
    ),
    "no dtype": (lambda s: s.gather("n", None), TypeError, "'n': dtype must be a type of NumPy"),
    "unknown dtype": (
        lambda s: s.gather("n", "word"),
        *(TypeError, "'n': dtype must be a type of NumPy such as np.uint32, got 'word'"),
    ),
    "negative shape": (
        lambda s: s.gather("n", "u4", -1),
        *(ValueError, "symbol 'n': shape must be a whole number from 0 to 4294967295, got -1"),
    ),
    "shape a text": (
        lambda s: s.gather("rows", "u4", ("4",)),
        *(TypeError, "symbol 'rows': shape must be a whole number from 0 to 4294967295, got '4'"),
    ),
    "Python number": (
        lambda s: s.broadcast("n", 5),
        *(pim_emu.DpuError, f"exceeds its 4 bytes; int64 {PYTHON_8}"),
    ),
    "Python numbers": (
        lambda s: s.broadcast("n", [1, 2, 3, 4]),
        *(pim_emu.DpuError, "exceeds its 4 bytes; int64 values take 8 B each"),
    ),
    "arange": (
        lambda s: s.scatter("n", np.arange(2)),
        *(pim_emu.DpuError, "the variable's type in C, as in np.uint32(5)"),
    ),
    "Python float": (
        lambda s: s.broadcast("n", 0.5),
        *(pim_emu.DpuError, f"exceeds its 4 bytes; float64 {PYTHON_8}"),
    ),
    "Python type": (
        lambda s: s.gather("n", int),
        *(pim_emu.DpuError, f"exceeds its 4 bytes; int64 {PYTHON_8}"),
    ),
    "rows": (
        lambda s: s.scatter("n", np.zeros(3, "u4")),
        *(ValueError, "symbol 'n': values must have 2 rows, one per DPU, got shape (3,)"),
    ),
    "no rows": (
        lambda s: s.scatter("n", np.uint32(3)),
        *(ValueError, "symbol 'n': values must have 2 rows, one per DPU, got shape ()"),
    ),
    "heap": (
        lambda s: s.broadcast("heap", np.zeros(2, "u4"), offset=2**26),
        *(pim_emu.DpuError, 'symbol "heap": offset 67108864 + length 8 exceeds'),
    ),
    "program": (
        lambda s: s.load(5),
        *(TypeError, "program must be what pim_emu.build returned, or a path, got 5"),
    ),
    "text of a program": (
        lambda s: s.load(TEXT),
        *(ValueError, "program must be built before it is loaded, by pim_emu.build"),
    ),
    "file of a program": (
        lambda s: s.load(Path("x.c")),
        *(ValueError, "built before it is loaded, by pim_emu.build: got the source code 'x.c'"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), TRANSFERS.values(), ids=TRANSFERS)
def test_a_set_refuses(dpus, call, error, says):
    before = repr(dpus)
    refuses(lambda: call(dpus), error, says)
    assert repr(dpus) == before


def test_larger_types_of_the_right_size_get_no_hint(dpus):
    with pytest.raises(pim_emu.DpuError, match=r"exceeds its 4 bytes$"):
        dpus.broadcast("n", np.zeros(2, np.uint32))


@pytest.mark.parametrize("direction", ["scatter", "gather"])
def test_an_interrupted_transfer_leaves_nothing_prepared(dpus, monkeypatch, direction):
    call = lib.call

    def interrupted(name, *arguments, **allowed):
        if name == "dpu_push_xfer":
            raise KeyboardInterrupt
        call(name, *arguments, **allowed)

    with monkeypatch.context() as patched:
        patched.setattr(lib, "call", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(dpus, direction)("n", *([np.zeros(2, "u4")] if direction == "scatter" else "I"))


def test_what_c_has_a_type_for_arrives_bit_by_bit(program):
    draw = np.random.default_rng(0)
    pair = np.dtype([("a", np.float32), ("b", np.uint8, 4)])
    with pim_emu.DpuSet(2, program) as dpus:
        for dtype in ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "V8", pair):
            raw = draw.integers(0, 2, (2, 16), np.uint8)
            values = raw.view(dtype)
            dpus.scatter("bytes", values, offset=np.int64(16))
            assert dpus.gather("bytes", np.uint8, 16, 16).tobytes() == raw.tobytes()
            found = dpus.gather("bytes", dtype, np.int64(values.shape[1]), 16)
            assert (found.dtype, found.tobytes()) == (values.dtype, raw.tobytes())
        dpus.broadcast("rows", np.arange(16, dtype=np.int32).reshape(4, 4).T)  # not contiguous
        found = dpus.gather("rows", np.dtype((np.int32, 4)), [2, 2])
        np.testing.assert_array_equal(found[1].reshape(4, 4), np.arange(16).reshape(4, 4).T)


def test_few_symbols_are_listed_and_none_of_a_program_that_is_gone(tmp_path, capfd):
    many = "".join(f"__host int v{number:02};\n" for number in range(25))
    text = f"#include <defs.h>\n{many}int main(void) {{ return 0; }}\n"
    listed = ", ".join(f"v{number:02}" for number in range(20))
    built = pim_emu.build(text, output=tmp_path / "program")
    with pim_emu.DpuSet(1, built) as dpus:
        with pytest.raises(pim_emu.DpuError, match=rf"it has {listed}, \.\.\. and heap$"):
            dpus.gather("x", np.uint32)
        built.path.unlink()
        with pytest.raises(pim_emu.DpuError, match=r'no symbol "x"$'):
            dpus.gather("x", np.uint32)


ALLOCATIONS = {
    "none": ((0,), ValueError, "dpus must be a whole number of at least 1, got 0"),
    "text": (("4",), TypeError, "dpus must be a whole number of at least 1, got '4'"),
    "float": ((2.0,), TypeError, "dpus must be a whole number of at least 1, got 2.0"),
    "truth": ((True,), TypeError, "dpus must be a whole number of at least 1, got True"),
    "too many": ((2561,), pim_emu.DpuError, "allocate: 2561 DPUs asked for, 40 ranks of 64 DPUs"),
    "all": ((2**32 - 1,), pim_emu.DpuError, "DPUs asked for, 40 ranks of 64 DPUs are left"),
    "wrapping": ((2**32 + 1,), pim_emu.DpuError, "DPUs asked for, 40 ranks of 64 DPUs are left"),
    "machine": (
        (1, None, "nowhere"),
        *(ValueError, "machine must be one of upmem-2560, upmem-v1b, got 'nowhere'"),
    ),
    "no machine": ((1, None, ""), ValueError, "must be one of upmem-2560, upmem-v1b, got ''"),
    "more than a machine": (
        (1, None, "upmem-2560,sgXferEnable=1"),
        *(ValueError, "machine must be one of upmem-2560, upmem-v1b, got 'upmem-2560,sg"),
    ),
    "description": (
        (1, None, pim_emu.load_machine()),
        *(TypeError, "machine must be one of upmem-2560, upmem-v1b, got Machine("),
    ),
    "program": ((1, 5), TypeError, "program must be what pim_emu.build returned, or a path, got 5"),
    "no program": ((1, ""), ValueError, "program must be the path of a file, got ''"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "error", "says"), ALLOCATIONS.values(), ids=ALLOCATIONS)
def test_no_set_is_made_of(arguments, error, says):
    refuses(lambda: pim_emu.DpuSet(*arguments), error, says)
    with pim_emu.DpuSet(2560):
        pass


def test_a_set_without_a_program_cannot_be_used():
    with pim_emu.DpuSet(1) as dpus:
        for use in (dpus.launch, dpus.logs, lambda: dpus.gather("n", "u4")):
            with pytest.raises(pim_emu.DpuError, match=r"no program is loaded|program has no log"):
                use()


RUNS = {
    "pair of one": (
        {"gather": {"n": (np.uint32,)}},
        *(TypeError, "gather['n'] must be a dtype, or (dtype, shape of one DPU's values), got ("),
    ),
    "shape alone": ({"gather": {"n": 4}}, TypeError, "symbol 'n': dtype must be a type of NumPy"),
    "list": ({"gather": ["n"]}, TypeError, "gather must be a dict by symbol, got ['n']"),
    "pairs": ({"scatter": [("n", 1)]}, TypeError, "scatter must be a dict by symbol, got [('n',"),
    "number as symbol": (
        {"broadcast": {3: np.uint32(1)}},
        *(TypeError, "symbol must be the name of a variable, got 3"),
    ),
    "dpus": ({"dpus": "4"}, TypeError, "dpus must be a whole number of at least 1, got '4'"),
    "no rows": (
        {"scatter": {"n": np.uint32(1)}},
        *(ValueError, "symbol 'n': values must have 1 rows, one per DPU, got shape ()"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "error", "says"), RUNS.values(), ids=RUNS)
def test_run_refuses(program, arguments, error, says):
    refuses(lambda: pim_emu.run(program, **arguments), error, says)
    with pim_emu.DpuSet(2560):
        pass


@pytest.mark.parametrize("source", [TEXT, "int main(void){return 0;}", "x.c", Path("x.c")])
def test_run_points_to_build(source):
    refuses(lambda: pim_emu.run(source), ValueError, "built before it is loaded, by pim_emu.build")
    refuses(lambda: pim_emu.run(None), TypeError, "program must be what pim_emu.build returned")


def test_what_is_to_be_gathered_is_checked_before_the_launch(program, monkeypatch):
    monkeypatch.setattr(lib, "call", lambda *arguments: pytest.fail(f"{arguments} was called"))
    for wanted in ({"n": "word"}, {"n": (np.uint32, -1)}, {"": np.uint32}, {"n": "U4"}):
        with pytest.raises((TypeError, ValueError), match="symbol"):
            pim_emu.run(program, gather=wanted)


NEWLINE = "the text of a program needs a newline"
BUILDS = {
    "number": (5, {}, TypeError, "sources must be a path or a sequence of paths, got 5"),
    "bytes": (b"x.c", {}, TypeError, "sources must be a path or a sequence of paths, got b'x.c'"),
    "number among paths": ([5], {}, TypeError, "sources: a path must be a str or Path, got 5"),
    "no path": ("", {}, ValueError, "sources: a path cannot be ''"),
    "no paths": ([], {}, ValueError, "sources must name at least one file"),
    "text in a line": (
        *("int main(){return 0;}", {}, FileNotFoundError),
        f"sources: there is no file 'int main(){{return 0;}}'; {NEWLINE}",
    ),
    "absent": ("absent.c", {}, FileNotFoundError, f"there is no file 'absent.c'; {NEWLINE}"),
    "folder": (Path("/tmp"), {}, FileNotFoundError, "sources: there is no file '/tmp'"),
    "tasklets a text": (
        *(TEXT, {"tasklets": "4"}),
        *(TypeError, "tasklets must be a whole number of at least 1, got '4'"),
    ),
    "no tasklets": (
        *(TEXT, {"tasklets": 0}),
        *(ValueError, "tasklets must be a whole number of at least 1, got 0"),
    ),
    "too many tasklets": (TEXT, {"tasklets": 25}, pim_emu.BuildError, "NR_TASKLETS is 25"),
    "stack": (
        *(TEXT, {"stack_bytes": 0}),
        *(ValueError, "stack_bytes must be a whole number of at least 8, got 0"),
    ),
    "macro's name": (
        *(TEXT, {"define": {"A B": 3}}),
        *(ValueError, "define: the name of a macro cannot be 'A B'"),
    ),
    "macro's option": (
        *(TEXT, {"define": {"A=1 -DB": 3}}),
        *(ValueError, "define: the name of a macro cannot be 'A=1 -DB'"),
    ),
    "macro's value": (
        *(TEXT, {"define": {"A": None}}),
        *(TypeError, "define['A'] must be a number or a text of one line, got None"),
    ),
    "macro's lines": (
        *(TEXT, {"define": {"A": "1\n2"}}),
        *(TypeError, r"define['A'] must be a number or a text of one line, got '1\n2'"),
    ),
    "macros": (TEXT, {"define": ["A"]}, TypeError, "define must map names of macros to values"),
    "macro of an argument": (
        *(TEXT, {"define": {"NR_TASKLETS": 4}}),
        *(ValueError, "define: NR_TASKLETS is given by the argument tasklets"),
    ),
    "include": (TEXT, {"include": 5}, TypeError, "include must be a path or a sequence of paths"),
    "level": (TEXT, {"optimise": 2}, ValueError, 'optimise must be a level such as "-O2", got 2'),
    "option": (TEXT, {"optimise": "-g"}, ValueError, "optimise must be a level such as"),
    "output": (TEXT, {"output": 5}, TypeError, "output: a path must be a str or Path, got 5"),
    "kinds": (
        *(TEXT, {"traced": True, "fast": True}),
        *(ValueError, "traced and fast exclude each other"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sources", "arguments", "error", "says"), BUILDS.values(), ids=BUILDS)
def test_build_refuses(tmp_path, monkeypatch, sources, arguments, error, says):
    monkeypatch.chdir(tmp_path)
    refuses(lambda: pim_emu.build(sources, **{"output": "out", **arguments}), error, says)
    assert not list(tmp_path.iterdir())


def test_the_folder_of_the_output_must_exist(tmp_path):
    folder = tmp_path / "absent"
    says = f"output '{folder / 'prog'}': there is no folder {folder}"
    refuses(lambda: pim_emu.build(TEXT, output=folder / "prog"), FileNotFoundError, says)
    assert not list(tmp_path.iterdir())


NAN = float("nan")
SETTINGS = {
    "seed between": ({"seed": 1.5}, TypeError, "seed must be a whole number from 0 to 9007199254"),
    "seed nan": ({"seed": NAN}, TypeError, "seed must be a whole number from 0 to 90071992547409"),
    "seed below": ({"seed": -1}, ValueError, "seed must be a whole number from 0 to 900719925474"),
    "seed above": ({"seed": 2**53 + 1}, ValueError, "0 to 9007199254740992, got 9007199254740993"),
    "seed truth": ({"seed": True}, TypeError, "seed must be a whole number from 0 to 90071992547"),
    "time nan": (
        {"timeout_seconds": NAN},
        *(ValueError, "timeout_seconds must be a number from 0 to 9007199254740992, got nan"),
    ),
    "time below": ({"timeout_seconds": -0.1}, ValueError, "timeout_seconds must be a number from"),
    "time without end": ({"timeout_seconds": 10**400}, ValueError, "timeout_seconds must be a num"),
    "time a text": ({"timeout_seconds": "3"}, TypeError, "timeout_seconds must be a number from 0"),
    "quiet": ({"quiet": "no"}, TypeError, "quiet must be True or False, got 'no'"),
    "random": ({"random": 7}, TypeError, "random must be True or False, got 7"),
    "checks": ({"checks": 1}, TypeError, "checks must be True or False, got 1"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "error", "says"), SETTINGS.values(), ids=SETTINGS)
def test_settings_that_are_refused_set_nothing(program, arguments, error, says):
    pim_emu.configure(quiet=True, dma="strict")
    try:
        refuses(lambda: pim_emu.configure(dma="hardware", **arguments), error, says)
        with pytest.raises(pim_emu.EmulatorFault, match="misaligned DMA"):  # still strict
            pim_emu.run(program)
    finally:
        pim_emu.configure(dma="hardware", quiet=False)
