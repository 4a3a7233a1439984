"""The SDK folder, the compiler driver and dpu-pkg-config.

Programs are judged by what binutils (readelf, nm) say of them; running them is for other tests.
"""

import os
import platform
import re
import shutil
import struct
import subprocess
import sys

import pytest
from sdk_present import needs, needs_sdk

import pim_emu.sdk
from pim_emu.__main__ import main as pim_emu_main
from pim_emu.machine import load_machine
from pim_emu.sdk import SdkError, build_library, sdk_path
from pim_emu.toolchain import driver, pkg_config, tail_calls
from pim_emu.toolchain.errors import DriverError
from pim_emu.toolchain.layout import SdkLayout
from pim_emu.toolchain.options import parse

pytestmark = needs_sdk

MAIN = """
#include <stdint.h>
#include <defs.h>
#include <mram.h>
#include <mutex.h>
__mram_noinit uint8_t buffer[4096];
__mram uint32_t table[3] = {1, 2, 3};
__host uint32_t answer = 41;
MUTEX_INIT(guard);
int helper(int x);
int main(void) {
    mutex_lock(guard);
    answer += (uint32_t)helper((int)me());
    mutex_unlock(guard);
    return 0;
}
"""
HELPER = "int helper(int x) { return x + 1; }\nint unused(int x) { return x / 3 + x * 17; }\n"


@pytest.fixture(scope="module")
def sdk():
    return SdkLayout(sdk_path())


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Tests work in a folder of their own, whatever the user has set."""
    for name in ("PIM_EMU_TRACE", "PIM_EMU_FAST", "PIM_EMU_MACHINE", "PIM_EMU_CC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "helper.c").write_text(HELPER)
    return tmp_path


@pytest.fixture
def build(sdk, capfd):
    """Runs the driver: returns its status, and what it and gcc said on stdout and stderr."""

    def run(*arguments):
        status = driver.main(sdk, list(arguments))
        said = capfd.readouterr()
        return status, said.out, said.err

    return run


def tool(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def symbols(program):
    lines = (line.split() for line in tool("nm", program).splitlines())
    return {words[2]: int(words[0], 16) for words in lines if len(words) == 3}


def sections(program):
    """Address, size and flags of each section."""
    rows = re.findall(
        r"^ *\[ *\d+\] (\S+) +\S+ +([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ +([A-Z]*) ",
        tool("readelf", "-SW", program),
        re.MULTILINE,
    )
    return {name: (int(at, 16), int(size, 16), flags) for name, at, size, flags in rows}


def words_of(program, section):
    copy = f"{program}{section}.bin"
    tool("objcopy", "-O", "binary", "--set-section-flags", f"{section}=alloc",
         f"--only-section={section}", "--change-section-address", f"{section}=0",
         program, copy)  # fmt: skip
    with open(copy, "rb") as file:
        data = file.read()
    return struct.unpack(f"<{len(data) // 4}I", data)


# --- Programs.


def test_program_has_the_layout_that_the_engine_loads(build):
    assert build("-O2", "-DNR_TASKLETS=3", "main.c", "helper.c", "-o", "program")[0] == 0
    at, where = symbols("program"), sections("program")
    assert "EXEC" in tool("readelf", "-hW", "program")
    assert at["table"] == 0x0800_0000
    assert at["buffer"] == 0x0800_0010
    assert at["__sys_used_mram_end"] == 0x0800_1010
    assert at["__emu_text_start"] == 0x1000_0000 <= at["main"] < at["__emu_text_end"]
    parts = ("__emu_text_end", "__emu_environment", "__emu_wram_start")
    pages = [at[name] // 4096 for name in parts]
    assert pages == sorted(set(pages))
    assert at["__emu_wram_start"] % 4096 == 0
    assert at["__emu_wram_start"] <= at["answer"] < at["__emu_wram_end"]
    assert at["__emu_environment"] < at["__emu_atomic_start"] < at["__emu_atomic_end"]
    assert at["__emu_atomic_end"] <= at["__emu_wram_start"]
    assert {".rela.text", ".debug_line", ".emu.info"} <= where.keys()
    assert where[".wram"][2] == "WA"
    assert not {".eh_frame", ".init_array", ".note.GNU-split-stack"} & where.keys()


def test_nothing_of_a_program_is_writable_code(build):
    assert build("main.c", "helper.c", "-o", "program")[0] == 0
    segments = re.findall(r"LOAD.* ([RWE ]{3}) 0x\w+$", tool("readelf", "-lW", "program"), re.M)
    assert sorted(segments) == ["R E", "RW ", "RW ", "RW "]


def test_unused_functions_are_left_out_and_take_no_iram(build):
    assert build("-O2", "main.c", "helper.c", "-o", "program")[0] == 0
    assert "helper" in symbols("program")
    assert "unused" not in symbols("program")
    with_main = sum(words_of("program", ".emu.iram"))
    assert 5 <= with_main <= 40
    with open("helper.c", "a") as file:
        file.write("int main2(int x) { return unused(x); }\n")
    with open("main.c", "a") as file:
        file.write("int main2(int);\n__host int (*keep)(int) = main2;\n")
    assert build("-O2", "main.c", "helper.c", "-o", "program")[0] == 0
    assert sum(words_of("program", ".emu.iram")) > with_main + 10


INFO = {
    (): (1, [1024]),
    ("-DNR_TASKLETS=3",): (3, [1024] * 3),
    ("-D", "NR_TASKLETS=2", "-DSTACK_SIZE_DEFAULT=256"): (2, [256] * 2),
    ("-DNR_TASKLETS=3", "-DSTACK_SIZE_TASKLET_1=2048"): (3, [1024, 2048, 1024]),
    ("-DNR_TASKLETS=(2)", "-DSTACK_SIZE_TASKLET_3=64U"): (2, [1024, 1024, 0, 64]),
    ("-Wl,--defsym=NR_TASKLETS=4,--defsym,STACK_SIZE_DEFAULT=0x80",): (4, [128] * 4),
    ("-DNR_TASKLETS=24", "-DNR_TASKLETS=5"): (5, [1024] * 5),  # the last one counts
}


@pytest.mark.parametrize("flags", INFO)
def test_tasklets_and_stacks_are_those_of_the_link(build, flags):
    assert build("-w", *flags, "main.c", "helper.c", "-o", "program")[0] == 0
    magic, abi, kind, tasklets, *stacks = words_of("program", ".emu.info")
    expected, sizes = INFO[flags]
    assert (magic, abi, kind) == (0x554D4550, 3, 3)
    assert tasklets == expected
    assert stacks == sizes + [0] * (24 - len(sizes))


def test_tasklets_are_a_macro_too(build):
    for flags, value in (((), "1"), (("-DNR_TASKLETS=7",), "7")):
        _, said, _ = build("-E", "-dM", *flags, "main.c")
        assert re.search(r"#define NR_TASKLETS (.*)", said)[1] == value


MODES = {
    (): 3, ("PIM_EMU_TRACE",): 7, ("PIM_EMU_FAST",): 0, ("-fsanitize=thread",): 7,
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_ways_to_build(build, monkeypatch, mode):
    flags = [word for word in mode if word.startswith("-")]
    for name in set(mode) - set(flags):
        monkeypatch.setenv(name, "1")
    assert build("-O2", *flags, "main.c", "helper.c", "-S")[0] == 0
    assert build("-O2", *flags, "main.c", "helper.c", "-o", "program")[0] == 0
    with open("main.s") as file:
        text = file.read()
    assert ("(%r15), %r15" in text) == bool(MODES[mode] & 1)
    assert ("%fs:112" in text) == bool(MODES[mode] & 2)
    assert ("__tsan_" in text) == bool(MODES[mode] & 4)
    assert words_of("program", ".emu.info")[2] == MODES[mode]


def test_an_object_built_fast_makes_the_program_not_counted(build, monkeypatch):
    assert build("-c", "main.c")[0] == 0
    monkeypatch.setenv("PIM_EMU_FAST", "1")
    assert build("main.o", "helper.c", "-o", "program")[0] == 0
    assert words_of("program", ".emu.info")[2] == 0
    monkeypatch.setenv("PIM_EMU_TRACE", "1")
    status, _, said = build("main.o", "helper.c")
    assert (status, "PIM_EMU_FAST" in said) == (1, True)


# --- What is refused, and how it is said.

HEADERS = "#include <stdint.h>\n#include <mram.h>\n#include <mutex.h>\n"
REFUSED = {
    "too many tasklets": ("", "-DNR_TASKLETS=25", "too many tasklets: NR_TASKLETS is 25, .* 24"),
    "no tasklet": ("", "-DNR_TASKLETS=0", "NR_TASKLETS: must be 1 to 24, got 0"),
    "not a number": ("", "-DNR_TASKLETS=x+1", r"NR_TASKLETS: must be a number, got 'x\+1'"),
    "odd stack": ("", "-DSTACK_SIZE_DEFAULT=1001", "STACK_SIZE_DEFAULT: .* of 8, got 1001"),
    "odd stack of one": ("", "-DSTACK_SIZE_TASKLET_0=4", "STACK_SIZE_TASKLET_0: .* of 8, got 4"),
    "no such stack": ("", "-DSTACK_SIZE_TASKLET_24=8", "STACK_SIZE_TASKLET_24: .* 0 to 23"),
    "stacks": ("", "-DSTACK_SIZE_DEFAULT=65600", r"WRAM overflow: globals \d+ B \+ stacks 65,600 B"
               " exceed 65,536 B"),
    "globals": ("char data[70000];", "-O2", r"WRAM overflow: globals 70,\d+ B \+ stacks 1,024 B"),
    "MRAM": ("__mram_noinit char big[(64 << 20) + 8];", "-O2",
             "MRAM overflow: variables 67,112,984 B exceed 67,108,864 B"),
    "more MRAM": ("__mram_noinit char big[1 << 28];", "-O2", "MRAM overflow: .* 268,439,568 B"),
    "mutexes": ("__atomic_bit uint8_t more[60];", "-O2", r"too many mutexes: .* \d+, a DPU 56"),
    "section": ('__attribute__((section(".mine"))) int x = 1;int *y = &x;', "-O2",
                "section '.mine'"),
    "thread-local": ("__thread int x = 1;", "-O2", "thread-local variables"),
    "assembly": ('\nvoid f(void) { __asm__ volatile("move r0, r1"); }', "-O2",
                 r"extra\.c:5: inline assembly"),
    "host library": ("", "-lm", r"-lm: no libm\.a in the folders given with -L"),
    "sanitizer": ("", "-fsanitize=address", "-fsanitize=address: .*-fsanitize=thread only"),
    "core": ("", "-mcpu=v2", "-mcpu=v2: unknown DPU version; known: v1A, v1B"),
    "script": ("", "-Tmy.lds", "-T: .*own script"),
    "shared": ("", "-shared", "-shared: "),
    "C++": ("", "program.cpp", "program.cpp: C"),
    "C++ by name": ("", "-xc++", "-x c.*compiles C only"),
    "DPU assembly": ("", "start.S", "start.S: assembly"),
    "missing": ("", "missing.c", "missing.c: no such file"),
    "undefined": ("int f(void); int (*h)(void) = f;", "-O2", "undefined reference to `f'"),
    "error": ("int x = y;", "-O2", "extra.c:4:.*undeclared"),
    "no response": ("", "-o", "-o: its value is missing"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_what_is_wrong_and_leave_no_program(build, folder, case):
    source, flag, message = REFUSED[case]
    (folder / "extra.c").write_text(HEADERS + source)
    status, _, said = build("main.c", "helper.c", "extra.c", "-o", "program", flag)
    assert status == 1
    assert re.search(message, said), said
    assert sorted(path.name for path in folder.iterdir()) == ["extra.c", "helper.c", "main.c"]


@pytest.mark.parametrize("flags", [("-c", "main.c"), ("-S", "main.c"), ("main.c", "helper.c")])
def test_a_failed_command_removes_the_output_of_an_earlier_one(build, folder, flags):
    assert build(*flags, "-o", "output")[0] == 0
    assert (folder / "output").exists()
    (folder / "main.c").write_text("int main(void) { return x; }")
    assert build(*flags, "-o", "output")[0] == 1
    assert not (folder / "output").exists()


def test_other_compilers_objects_are_refused(build):
    subprocess.run(["gcc", "-c", "helper.c"], check=True)
    status, _, said = build("main.c", "helper.o")
    assert status == 1
    assert "helper.o: not an object file of this compiler" in said


def test_traced_objects_do_not_mix(build, monkeypatch):
    assert build("-c", "helper.c")[0] == 0
    monkeypatch.setenv("PIM_EMU_TRACE", "1")
    status, _, said = build("main.c", "helper.o", "-o", "program")
    assert status == 1
    assert "main.o is traced" in said
    assert "helper.o is not traced" in said
    assert not os.path.exists("program")


def test_limits_are_those_of_the_machine(build, monkeypatch):
    most = load_machine("upmem-v1b").max_tasklets
    for flags, name in ((["-mcpu=v1B"], None), ([], "upmem-v1b"), (["-mcpu=v1A"], "upmem-v1b")):
        if name:
            monkeypatch.setenv("PIM_EMU_MACHINE", name)
        assert build(*flags, f"-DNR_TASKLETS={most}", "main.c", "helper.c")[0] == 0
        status, _, said = build(*flags, f"-DNR_TASKLETS={most + 1}", "main.c", "helper.c")
        assert status == 1
        assert f"machine upmem-v1b has {most}" in said
    monkeypatch.setenv("PIM_EMU_MACHINE", "abacus")
    status, _, said = build("main.c", "helper.c")
    assert (status, "unknown machine 'abacus'" in said, "upmem-2560" in said) == (1, True, True)


def test_too_long_a_program_is_warned_of(build, folder):
    calls = "".join(f"x = x * {i} + (x ^ {i});" for i in range(3, 1500))
    (folder / "long.c").write_text(f"int helper(int x) {{ {calls} return x; }}")
    status, _, said = build("-O1", "main.c", "long.c", "-o", "program")
    assert status == 0
    assert re.search(r"warning: IRAM: .* about [\d,]+ instructions, .* 4,096; .* estimate", said)


# --- Options of clang.


def test_flags_of_published_makefiles(build):
    flags = "--std=c99 -Wall -Wextra -Werror -Wgcc-compat -Wno-such-thing -g -O3 -flto=thin -fPIC"
    flags += " -fno-builtin-bcmp -funknown-option -mllvm -inline=5 -march=native -Xclang -x -Wl,-s"
    status, _, said = build(*flags.split(), "-I.", "-DX=1", "main.c", "helper.c", "-o", "program")
    assert status == 0, said
    assert "error" not in said


def test_warnings_are_errors_only_where_the_program_is_wrong(build, folder):
    (folder / "cast.c").write_text(
        "#include <stdint.h>\n#include <stdio.h>\n#include <mram.h>\n"
        "uint32_t f(__mram_ptr char *p) {\n#pragma unroll\nfor (int i = 0; i < 3; i++) p++;\n"
        'printf("%u", sizeof(int)); return (uint32_t)p; }\n'
        "__mram_ptr void *g(uint32_t a) { return (__mram_ptr void *)a; }\n"
    )
    assert build("-Wall", "-Wextra", "-Werror", "-c", "cast.c")[0] == 0
    (folder / "wrong.c").write_text("void f(void) { int x; }\n")
    status, _, said = build("-Wall", "-Werror", "-c", "wrong.c")
    assert status == 1
    assert "unused variable" in said
    assert not (folder / "wrong.o").exists()


DOUBTFUL = {
    "uninitialized": "int f(void) { int x; return x + 1; }",
    "return-type": "int f(void) { }",
    "parentheses": "int f(int x) { if (x = 2) return 1; return x; }",
    "switch": "enum e { A, B };\nint f(enum e x) { switch (x) { case A: return 1; } return 0; }",
    "unused-value": "void f(int x) { x + 1; }",
    "empty-body": "int f(int x) { if (x); return x; }",
    "absolute-value": "#include <stdlib.h>\nint f(unsigned x) { return abs(x); }",
    "comment": "/* one /* two */ int x;",
    "enum-conversion": "enum a { A };\nenum b { B };\nenum a f(void) { return B; }",
    "sizeof-pointer-memaccess": "#include <string.h>\nvoid f(char *p) { memset(p, 0, sizeof p); }",
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_warnings_of_clang_are_on_by_default(build, folder, name):
    (folder / "doubtful.c").write_text(DOUBTFUL[name] + "\n")
    status, _, said = build("-O2", "-c", "doubtful.c")
    assert (status, f"[-W{name}]" in said) == (0, True), said
    assert build("-O2", f"-Wno-{name}", "-c", "doubtful.c") == (0, "", "")
    assert build("-O2", "-w", "-c", "doubtful.c") == (0, "", "")
    lenient = name in ("uninitialized", "parentheses")  # clang's own are errors then
    assert (build("-O2", "-Werror", "-c", "doubtful.c")[0] == 0) == lenient
    assert build("-O2", "-Wall", "-Werror", "-c", "doubtful.c")[0] != 0


def test_macros_are_those_of_a_dpu(build):
    for std, strict in (((), False), (("-std=c11",), True), (("-std=gnu11",), False)):
        _, said, _ = build("-E", "-dM", *std, "main.c")
        names = set(re.findall(r"#define (\w+)", said))
        assert {"__DPU__", "__dpu__"} <= names
        assert ("DPU" in names) != strict
        assert not {"__linux__", "linux", "unix", "__x86_64__", "__amd64__"} & names


def test_steps_give_the_program_of_one_command(build, folder):
    assert build("-O2", "main.c", "helper.c", "-o", "at-once")[0] == 0
    assert build("-O2", "-c", "main.c", "helper.c")[0] == 0
    assert build("-O2", "main.o", "helper.o", "-o", "by-objects")[0] == 0
    assert build("-O2", "-S", "main.c")[0] == 0
    assert build("-c", "main.s", "-o", "main.o")[0] == 0
    assert build("main.o", "helper.o", "-o", "by-assembly")[0] == 0
    for name in ("by-objects", "by-assembly"):
        assert (
            tool("objdump", "-d", name).split("\n", 2)[2]
            == (tool("objdump", "-d", "at-once").split("\n", 2)[2])
        )
    assert os.access(folder / "at-once", os.X_OK)
    (folder / "foreign.s").write_text("main:\n\tmove r0, r1\n")
    status, _, said = build("-c", "foreign.s")
    assert (status, "foreign.s: assembly" in said) == (1, True)


def test_libraries_of_the_user_are_found(build, folder):
    assert build("-c", "helper.c")[0] == 0
    (folder / "libs").mkdir()
    tool("ar", "rcs", "libs/libhelp.a", "helper.o")
    assert build("main.c", "-Llibs", "-lhelp", "-o", "program")[0] == 0
    assert "helper" in symbols("program")


def test_response_files(build, folder):
    (folder / "flags").write_text("-DNR_TASKLETS=6\n'-DTEXT=\"a b\"' @more")
    (folder / "more").write_text("main.c helper.c")
    assert build("@flags", "-o", "program")[0] == 0
    assert words_of("program", ".emu.info")[3] == 6


def test_dependencies_are_named_after_the_object(build, folder):
    (folder / "part.h").write_text("int helper(int x);\n")
    (folder / "uses.c").write_text('#include "part.h"\nint f(int x) { return helper(x); }\n')
    (folder / "out").mkdir()
    assert build("-MMD", "-MP", "-c", "uses.c", "-o", "out/uses.o")[0] == 0
    said = (folder / "out" / "uses.d").read_text()
    assert said.split("\n")[0] == "out/uses.o: uses.c part.h"
    assert build("-MD", "-MF", "named.d", "-MT", "goal", "-c", "uses.c")[0] == 0
    assert (folder / "named.d").read_text().startswith("goal: uses.c")
    (folder / "all.c").write_text('#include "part.h"\nint main(void) { return 0; }\n')
    assert build("-MMD", "all.c", "-o", "out/program")[0] == 0
    assert (folder / "out" / "program.d").read_text() == "out/program: all.c part.h\n"
    status, said, _ = build("-MM", "uses.c")
    assert (status, said) == (0, "uses.o: uses.c part.h\n")
    assert build("-fsyntax-only", "uses.c")[0] == 0
    assert not (folder / "uses.s").exists()


def test_questions(build):
    assert build("-dumpmachine")[1] == "dpu-upmem-dpurte\n"
    assert "dpu-upmem-dpurte" in build("--version")[1]
    assert "-DNR_TASKLETS=N" in build("--help")[1]
    assert build("-v")[::2][0] == 0
    status, _, said = build("-v", "-c", "helper.c")
    assert status == 0
    assert "-ffixed-r15" in said
    assert build()[0] == 1


def test_standard_input_and_output(sdk):
    words = [sdk.root / "bin" / "dpu-upmem-dpurte-clang", "-x", "c", "-", "-S", "-o", "-"]
    text = "int f(int x) { return x; }"
    done = subprocess.run(words, input=text, check=True, capture_output=True, text=True)
    assert "f:\n" in done.stdout
    assert not done.stderr


def test_output_to_nowhere(build):
    for flags in (("-S",), ("-c",), ("-O2", "helper.c")):
        status, _, said = build(*flags, "main.c", "-o", "none/output")
        assert status == 1
        assert "none/output" in said


def test_output_to_a_device(build):
    assert build("main.c", "helper.c", "-o", "/dev/null")[0] == 0
    assert not os.path.isfile("/dev/null")


OPTIONS = {
    "-std=c99": ["-std=gnu99"],
    "--std=c11": ["--std=gnu11"],
    "-std=gnu17": ["-std=gnu17"],
    "-std=iso9899:1999": ["-std=gnu99"],
    "-ansi": ["-std=gnu89"],
    "-Oz": ["-Os"],
    "-O4": ["-O3"],
    "-g0": [],
    "-gline-tables-only": [],
    "-ggdb": ["-ggdb"],
    "-flto": [],
    "-m32": [],
    "-Weverything": ["-Wall", "-Wextra"],
    "-funroll-loops": ["-funroll-loops"],
    "-DX": ["-DX"],
    "-U X": ["-U", "X"],
    "-include a.h": ["-include", "a.h"],
    "-target dpu": [],
    "--target=dpu-upmem-dpurte": [],
    "-pthread": [],
}


@pytest.mark.parametrize("text", OPTIONS)
def test_options_as_gcc_knows_them(text):
    assert parse(text.split()).compile_flags == OPTIONS[text]


@pytest.mark.parametrize("option", ["-o", "-D", "-I", "-x", "-MF", "-target", "-Xlinker", "-L"])
def test_options_without_their_value(option):
    with pytest.raises(DriverError, match=f"{option}: its value is missing"):
        parse([option])


def test_tail_calls_of_the_library_return(sdk):
    """All but what may have arguments on the stack, or never returns, are known."""
    listing = tool("nm", "-g", "--defined-only", sdk.runtime_library)
    defined = set(re.findall(r" T (\w+)$", listing, re.MULTILINE))
    others = {name for name in defined if name.startswith(("__tsan_", "__morestack"))}
    others |= {"printf", "process_inputs_all_tasklets", "process_inputs_each_tasklet"}
    others |= {"abort", "exit", "halt"}
    inside = (
        "assertion_failed",
        "boot",
        "entry",
        "heap_take",
        "perfcounter_boot",
        "stack_overflow",
    )
    others |= {f"__emu_{name}" for name in (*inside, "start", "vmutex_lock", "vmutex_unlock")}
    assert defined - others == tail_calls.LIBRARY
    text = "f:\n\tjmp\tmram_read\ng:\n\tjmp\tstrlen\nstrlen:\n\tjmp\t.L2\n\tjmp\tf\n"
    call = "\tsubq\t$8, %rsp\n\tcall\tmram_read\n\taddq\t$8, %rsp\n\tret\n"
    changed = tail_calls.return_from_library(text)
    assert changed == text.replace("\tjmp\tmram_read\n", call)


def test_a_program_that_is_run_by_itself_says_what_it_is(sdk, folder):
    tool(sdk.root / "bin" / "dpu-upmem-dpurte-clang", "main.c", "helper.c", "-o", "program")
    done = subprocess.run([folder / "program"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "a program for DPUs" in done.stderr


# --- dpu-pkg-config.


def test_pkg_config(sdk, capsys):
    def answer(*words):
        status = pkg_config.main(sdk, list(words))
        return status, capsys.readouterr().out

    libs = f"-L{sdk.root}/lib -Wl,--no-as-needed -Wl,-rpath,{sdk.root}/lib -ldpu"
    cflags = f"-I{sdk.root}/include/dpu"
    assert answer("--cflags", "--libs", "dpu") == (0, f"{cflags} {libs}\n")
    assert answer("--libs") == (0, f"{libs}\n")
    assert answer("--libs-only-L", "dpu") == (0, f"-L{sdk.root}/lib\n")
    assert answer("--modversion", "dpu") == (0, "2025.1.0\n")
    assert answer("--exists", "dpu") == (0, "")
    assert answer("--variable=prefix", "dpu") == (0, f"{sdk.root}\n")
    assert answer("--atleast-version=2021.3", "dpu")[0] == 0
    assert answer("--atleast-version=2025.2", "dpu")[0] == 1
    assert answer("--cflags", "gtk")[0] == 1
    assert answer("--nonsense", "dpu")[0] == 1


# --- dpu-diag and dpu-lldb.


def test_dpu_diag_tells_version_and_machines(sdk, monkeypatch):
    monkeypatch.setenv("PIM_EMU_MACHINE", "upmem-v1b")
    said = tool(sdk.root / "bin" / "dpu-diag").splitlines()
    assert "2025.1.0" in said[0]
    [used] = [line for line in said if "(used)" in line]
    machine = load_machine("upmem-v1b")
    assert used.startswith("machine upmem-v1b")
    assert f"{machine.ranks} ranks of {machine.dpus_per_rank} DPUs" in used
    assert f"{machine.max_tasklets} tasklets" in used


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["dpu-diag", "--rank", "0"], "no hardware to test with --rank"),
        (["dpu-lldb", "program"], "gdb"),
    ],
)
def test_what_needs_hardware_or_lldb_is_refused(sdk, words, reason):
    name, *arguments = words
    done = subprocess.run([sdk.root / "bin" / name, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{name}: error: " in done.stderr
    assert reason in done.stderr


# --- The folder.


def test_folder_can_be_moved(sdk, folder):
    moved = folder / "else where"
    shutil.copytree(sdk.root, moved)
    (folder / "link").symlink_to(moved / "bin" / "dpu-upmem-dpurte-clang")
    tool(folder / "link", "-O2", "main.c", "helper.c", "-o", "program")
    assert words_of("program", ".emu.info")[3] == 1
    query = [moved / "bin" / "dpu-pkg-config", "--libs-only-L", "dpu"]
    refused = subprocess.run(query, capture_output=True, text=True)
    assert refused.returncode == 1  # make and the shell would take the answer apart
    assert f"{moved} has a space; name another folder in PIM_EMU_CACHE" in refused.stderr
    whole = moved.rename(folder / "elsewhere")
    assert tool(whole / "bin" / "dpu-pkg-config", *query[1:]) == f"-L{whole}/lib\n"


def test_host_program_links_and_loads(sdk, folder):
    (folder / "host.c").write_text(
        "#include <dpu.h>\nint main(void) { return dpu_error_to_string(DPU_OK)[0] != 0; }\n"
    )
    flags = tool(sdk.root / "bin" / "dpu-pkg-config", "--cflags", "--libs", "dpu").split()
    sources = ("host.c", "-Werror")
    # Some distributions have their gcc drop libraries that nothing before them needs.
    for words in ((*sources, *flags), ("-Wl,--as-needed", *flags, *sources)):
        tool("gcc", *words, "-o", "host")
        assert str(sdk.library / "libdpu.so") in tool("ldd", "host")
        assert subprocess.run(["./host"]).returncode == 1


def test_clang_is_the_driver_for_the_target_and_the_hosts_otherwise(sdk, folder):
    clang, other = sdk.root / "bin" / "clang", folder / "bin" / "clang"
    other.parent.mkdir()
    script(other, 'echo "the host\'s: $*"\n')
    path = f"{sdk.root / 'bin'}:{other.parent}:{os.environ['PATH']}"

    def run(*words, path=path):
        environment = {**os.environ, "PATH": path}
        return subprocess.run([clang, *words], capture_output=True, text=True, env=environment)

    name = "dpu-upmem-dpurte"
    for number, target in enumerate(([f"--target={name}"], ["-target", name])):
        done = run(*target, "-mcpu=v1A", "-O2", "main.c", "helper.c", "-o", f"program{number}")
        assert (done.returncode, done.stderr) == (0, "")
        assert words_of(f"program{number}", ".emu.info")[3] == 1
    assert run("-O2", "a file.c").stdout == "the host's: -O2 a file.c\n"
    second = folder / "second SDK"  # both are in PATH, and neither calls the other
    shutil.copytree(sdk.root / "bin", second)
    done = run("a.c", path=f"{second}:{path}")
    assert done.stdout == "the host's: a.c\n"
    other.unlink()
    for needed in ("dirname", "readlink"):
        other.with_name(needed).symlink_to(shutil.which(needed))
    absent = run("x.c", path=f"{sdk.root / 'bin'}:{other.parent}")
    assert absent.returncode == 127
    assert "--target=dpu-upmem-dpurte" in absent.stderr


DPU_PROJECT = """
cmake_minimum_required(VERSION 3.13)
project(kernel C)
add_executable(kernel main.c helper.c)
target_compile_definitions(kernel PUBLIC NR_TASKLETS=7)
target_link_options(kernel PUBLIC -DNR_TASKLETS=7)
"""
HOST_PROJECT = """
cmake_minimum_required(VERSION 3.13)
project(host C)
include(${UPMEM_HOME}/share/upmem/cmake/include/host/DpuHost.cmake)
link_directories("${DPU_HOST_LINK_DIRECTORIES}")
add_executable(host host.c)
target_include_directories(host PUBLIC ${DPU_HOST_INCLUDE_DIRECTORIES})
target_link_libraries(host ${DPU_HOST_LIBRARIES})
"""


@needs("cmake", "make")
def test_cmake_projects_of_dpus_and_hosts(sdk, folder):
    (folder / "CMakeLists.txt").write_text(DPU_PROJECT)
    toolchain = sdk.root / "share" / "upmem" / "cmake" / "dpu.cmake"
    tool("cmake", "-S", ".", "-B", "build", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}")
    tool("cmake", "--build", "build")
    assert words_of("build/kernel", ".emu.info")[3] == 7
    (folder / "host").mkdir()
    (folder / "host" / "CMakeLists.txt").write_text(HOST_PROJECT)
    (folder / "host" / "host.c").write_text(
        "#include <dpu.h>\nint main(void) { return dpu_error_to_string(DPU_OK)[0] != 0; }\n"
    )
    tool("cmake", "-S", "host", "-B", "host-build", f"-DUPMEM_HOME={sdk.root}")
    tool("cmake", "--build", "host-build")
    assert subprocess.run(["host-build/host"]).returncode == 1


def test_the_engine_knows_the_machines(sdk, folder):
    (folder / "machines.c").write_text(
        '#include <stdio.h>\n#include "engine.h"\nint main(void) {\n'
        'const char *names[] = {NULL, "upmem-2560", "upmem-v1b", "abacus"};\n'
        "for (int i = 0; i < 4; ++i) {\nconst struct emu_machine *m = emu_find_machine(names[i]);\n"
        'if (m) printf("%s %u %u %u %.17g %.17g\\n", m->name, m->max_tasklets, m->wram_bytes,'
        'm->dma_max_bytes, m->clock_hz, m->broadcast_bandwidth); else puts("none"); } }\n'
    )
    engine = f"-I{pim_emu.sdk.__file__.removesuffix('sdk.py')}native/engine"
    flags = [f"-L{sdk.library}", f"-Wl,-rpath,{sdk.library}", "-ldpu"]
    tool("gcc", "machines.c", engine, *flags, "-o", "machines")
    said = [line.split() for line in tool("./machines").splitlines()]
    assert said[0] == said[1]
    assert said[3] == ["none"]
    for name, row in (("upmem-2560", said[1]), ("upmem-v1b", said[2])):
        machine = load_machine(name)
        assert row[0] == name
        assert [float(value) for value in row[1:]] == [
            *(machine.max_tasklets, machine.wram_bytes, machine.dma_max_bytes),
            *(machine.clock_hz, machine.broadcast_bandwidth),
        ]


@pytest.mark.long  # builds the library
def test_library_with_other_flags(folder):
    build_library(["-O0", "-fsanitize=undefined"], folder / "libdpu.so")
    assert "__ubsan_handle" in tool("nm", "-D", "libdpu.so")


@pytest.mark.long  # builds the library
def test_folder_is_made_once_by_many(folder):
    program = "from pim_emu.sdk import sdk_path; print(sdk_path())"
    environment = {**os.environ, "PIM_EMU_CACHE": str(folder / "cache")}
    made = [
        subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = {process.communicate()[0] for process in made}
    assert [process.returncode for process in made] == [0, 0, 0]
    (path,) = said
    assert sorted(os.listdir(folder / "cache")) == [".lock", os.path.basename(path.strip())]
    assert "main" in tool(f"{path.strip()}/bin/dpu-upmem-dpurte-clang", "-S", "-o-", "main.c")


@pytest.fixture
def fresh(folder, monkeypatch):
    """An empty cache, and no memory of earlier answers."""
    monkeypatch.setenv("PIM_EMU_CACHE", str(folder / "cache"))
    sdk_path.cache_clear()
    yield folder
    sdk_path.cache_clear()


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_host_without_gcc(fresh, monkeypatch, capsys):
    monkeypatch.setenv("PIM_EMU_CC", "no-such-gcc")
    with pytest.raises(SdkError, match=r"gcc is needed .*'no-such-gcc' cannot be run.*PIM_EMU_CC"):
        sdk_path()
    assert pim_emu_main(["--sdk-path"]) == 1
    assert "no-such-gcc" in capsys.readouterr().err
    other = script(fresh / "clang", "echo clang version 19")
    monkeypatch.setenv("PIM_EMU_CC", other)
    with pytest.raises(SdkError, match=r"PIM_EMU_CC must name gcc; .* says: clang version 19"):
        sdk_path()
    old = script(fresh / "old", "echo '6.3.0'; echo Free Software Foundation")
    script(fresh / "old", '[ "$1" = -dumpversion ] && echo 6 || echo Free Software Foundation')
    monkeypatch.setenv("PIM_EMU_CC", old)
    with pytest.raises(SdkError, match=r"gcc must be at least version 10, .* is 6"):
        sdk_path()
    assert not (fresh / "cache").exists()


def test_a_cache_that_cannot_be_written(fresh):
    (fresh / "cache").write_text("a file")
    with pytest.raises(SdkError, match=r"cannot be written to .*cache .*PIM_EMU_CACHE"):
        sdk_path()


def test_a_source_that_does_not_compile_leaves_nothing(fresh, monkeypatch):
    monkeypatch.setattr(pim_emu.sdk, "_RUNTIME_FLAGS", ("-DEMU_MAGIC=", "-include", "none.h"))
    with pytest.raises(SdkError, match=r"failed:\n.*none\.h"):
        sdk_path()
    assert os.listdir(fresh / "cache") == [".lock"]


@pytest.mark.parametrize("host", [("Darwin", "x86_64"), ("Linux", "aarch64")])
def test_another_host(fresh, monkeypatch, host):
    monkeypatch.setattr(platform, "system", lambda: host[0])
    monkeypatch.setattr(platform, "machine", lambda: host[1])
    with pytest.raises(SdkError, match=f"x86-64 Linux only; this host is {host[1]} {host[0]}"):
        sdk_path()


def test_commands_of_the_module(sdk, capsys):
    for words in (["sdk-path"], ["--sdk-path"]):
        assert pim_emu_main(words) == 0
        assert capsys.readouterr().out == f"{sdk.root}\n"
    assert pim_emu_main(["--env"]) == 0
    assert pim_emu_main(["env"]) == 0
    twice = capsys.readouterr().out
    assert twice == 2 * sdk.environment.read_text()
    shell = "command -v dpu-pkg-config; echo $UPMEM_HOME; echo $PYTHONPATH; echo $LD_LIBRARY_PATH"
    paths = f"{sdk.root}/lib/python3/dist-packages{{}}\n{sdk.root}/lib{{}}\n"
    before = "unset PYTHONPATH; LD_LIBRARY_PATH=/x:/y"
    expected = f"{sdk.root}/bin/dpu-pkg-config\n{sdk.root}\n{paths.format('', ':/x:/y')}"
    for read in (sdk.environment.read_text(), f". '{sdk.root}/upmem_env.sh'"):
        assert tool("sh", "-c", f"{before}\n{read}\n{shell}") == expected
    words = (sys.executable, "-m", "pim_emu", "run", "sh", "-c", f"{shell}; exit 3")
    done = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": "/z"}
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines()[:3] == [
        f"{sdk.root}/bin/dpu-pkg-config",
        str(sdk.root),
        f"{sdk.root}/lib/python3/dist-packages:/z",
    ]


def test_command_refuses_what_it_cannot_do(sdk, capsys, monkeypatch):
    for words in ([], ["start"]):
        with pytest.raises(SystemExit) as stopped:
            pim_emu_main(words)
        assert stopped.value.code == 2
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert pim_emu_main(["run"]) == 2
    assert "name a program" in capsys.readouterr().err
    assert pim_emu_main(["run", "no-such-program", "-x"]) == 127
    assert "no-such-program: No such file" in capsys.readouterr().err
    assert pim_emu_main(["run", "--", "/"]) == 126


def test_importing_pim_emu_does_not_import_jax():
    program = (
        "import sys, pim_emu, pim_emu.sdk, pim_emu.__main__; dir(pim_emu);"
        "assert not {'jax', 'numpy'} & set(sys.modules);"
        "missing = [name for name in pim_emu.__all__ if not callable(getattr(pim_emu, name))];"
        "assert not missing, missing; assert 'jax' in sys.modules;"
        "assert set(pim_emu.__all__) <= set(dir(pim_emu))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pim_emu.nothing  # noqa: B018 the access is what fails
