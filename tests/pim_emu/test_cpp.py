"""The host interface for C++, `#include <dpu>`: hosts of C++11 that check what DPUs return."""

import os
import subprocess
from pathlib import Path

import pytest
from sdk_present import needs

from pim_emu.sdk import sdk_path

pytestmark = needs("gcc", "g++")

DPU_PROGRAM = """
#include <defs.h>
#include <mram.h>
#include <stdint.h>
#include <stdio.h>

__host uint32_t factor = 1, launches, fail;
__host uint64_t sum;
__mram_noinit uint32_t numbers[1024];

int main(void) {
    ++launches;
    if (fail) mram_read((__mram_ptr void *)0x0c000000, &sum, 8);
    sum = 0;
    for (uint32_t i = 0; i < 1024; ++i) sum += factor * numbers[i];
    printf("launch %u: %llu\\n", launches, (unsigned long long)sum);
    return 0;
}
"""
PRELUDE = """
#include <dpu>
#include <algorithm>
#include <iostream>
#include <sstream>

using namespace dpu;
typedef std::vector<uint32_t> Words;
typedef std::vector<std::vector<uint32_t>> Buffers;
typedef std::vector<std::vector<uint64_t>> Sums;

inline Buffers different(size_t dpus) {
    Buffers all(dpus, Words(1024));
    for (size_t i = 0; i < dpus; ++i)
        for (size_t j = 0; j < 1024; ++j) all[i][j] = uint32_t(i * 7919 + j * j);
    return all;
}
#define HOPE(condition) \\
    if (!(condition)) throw std::runtime_error("line " + std::to_string(__LINE__) + ": " #condition)
"""
TAIL = """
int main() {
    try {
        run();
    } catch (const std::exception &error) {
        std::cout << "caught: " << error.what() << std::endl;
        return 1;
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the DPU program `program`."""
    folder = tmp_path_factory.mktemp("cpp")
    (folder / "program.c").write_text(DPU_PROGRAM)
    compiler = sdk_path() / "bin" / "dpu-upmem-dpurte-clang"
    subprocess.run([compiler, "-O2", "-o", "program", "program.c"], cwd=folder, check=True)
    return folder


def run_host(folder: Path, body: str, *flags: str) -> str:
    """Build a host with `void run()`, run it, and return what it printed."""
    (folder / "host.cpp").write_text(f"{PRELUDE}\nstatic void run() {{\n{body}\n}}\n{TAIL}")
    sdk = sdk_path()
    library = subprocess.run(
        [sdk / "bin" / "dpu-pkg-config", "--cflags", "--libs", "dpu"],
        check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror"]
    build = ["g++", "-std=c++11", "-O1", *warnings, *flags, "host.cpp", "-o", "host", *library]
    subprocess.run([*build, "-lpthread"], cwd=folder, check=True)
    environment = {**os.environ, "PIM_EMU_QUIET": "1"}
    done = subprocess.run(
        ["./host"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def test_synchronous_copies_and_launches(folder: Path):
    run_host(
        folder,
        """
    auto set = DpuSet::allocate(70);
    HOPE(set.dpus().size() == 70 && set.ranks().size() == 2);
    HOPE(set.ranks()[0]->dpus().size() == 64 && set.ranks()[1]->dpus().size() == 6);
    HOPE(set.dpus()[65]->ranks()[0] == set.ranks()[1] && set.dpus()[3]->dpus()[0] == set.dpus()[3]);
    DpuProgram program; /* as a member of a class, before there is one */
    program = set.load("program");
    DpuSymbol sum = program.get("sum");
    const Buffers all = different(70);
    set.copy("numbers", all);
    set.copy("factor", Words(1, 3));
    set.exec();
    Sums sums(70, std::vector<uint64_t>(1));
    set.copy(sums, sum);
    for (size_t i = 0; i < 70; ++i) {
        uint64_t expected = 0;
        for (uint32_t x : all[i]) expected += uint32_t(3 * x);
        HOPE(sums[i][0] == expected);
    }
    /* one rank, one DPU, with sizes and offsets */
    set.ranks()[1]->copy("numbers", 8, Words{1, 2, 3, 4}, 8);
    set.dpus()[66]->copy(program.get("numbers"), 16, Words{5, 6});
    Buffers back(70, Words(6));
    set.copy(back, 24, "numbers", 0);
    for (size_t i = 0; i < 70; ++i)
        for (size_t j = 0; j < 6; ++j) {
            uint32_t expected = all[i][j];
            if (i >= 64 && (j == 2 || j == 3)) expected = uint32_t(j - 1);
            if (i == 66 && j >= 4) expected = uint32_t(j + 1);
            HOPE(back[i][j] == expected);
        }
    Buffers one(1, Words(2));
    set.dpus()[66]->copy(one, 8, "numbers", 16);
    HOPE((one[0] == Words{5, 6}));
    std::string name("launches");
    set.copy(back = Buffers(70, Words(1)), name);
    HOPE(std::count(back.begin(), back.end(), Words{1}) == 70);
    set.dpus()[5]->exec();
    set.copy(back, 4, name);
    HOPE(back[5] == Words{2} && back[6] == Words{1});
    """,
    )


def test_the_overloads_are_the_same_transfer(folder: Path):
    run_host(
        folder,
        """
    DpuSet set = DpuSet::allocateRanks(1, "backend=simulator");
    DpuProgram program = set.load("program");
    DpuSymbol symbol = program.get("numbers");
    const Buffers all = different(64);
    Buffers got(64, Words(1024));
    auto check = [&](size_t at, size_t bytes, bool broadcast) {
        set.copy(got, symbol);
        for (size_t i = 0; i < 64; ++i)
            for (size_t j = 0; j < 1024; ++j) {
                const bool in = 4 * j >= at && 4 * j < at + bytes;
                HOPE(got[i][j] == (in ? all[broadcast ? 1 : i][j - at / 4] : 7));
            }
        set.copy("numbers", Words(1024, 7));
    };
    set.copy("numbers", Words(1024, 7));
    Words some(all[1].begin(), all[1].begin() + 512);
    Buffers few(64);
    for (size_t i = 0; i < 64; ++i) few[i].assign(all[i].begin(), all[i].begin() + 512);
    set.copy("numbers", 1024, some, 1024), check(1024, 1024, true);
    set.copy("numbers", 1024, some), check(1024, 2048, true);
    set.copy("numbers", some, 1024), check(0, 1024, true);
    set.copy("numbers", some), check(0, 2048, true);
    set.copy(symbol, 1024, some, 1024), check(1024, 1024, true);
    set.copy(symbol, 1024, some), check(1024, 2048, true);
    set.copy(symbol, some, 1024), check(0, 1024, true);
    set.copy(symbol, some), check(0, 2048, true);
    set.copy("numbers", 1024, few, 1024), check(1024, 1024, false);
    set.copy("numbers", 1024, few), check(1024, 2048, false);
    set.copy("numbers", few, 1024), check(0, 1024, false);
    set.copy("numbers", few), check(0, 2048, false);
    set.copy(symbol, 1024, few, 1024), check(1024, 1024, false);
    set.copy(symbol, 1024, few), check(1024, 2048, false);
    set.copy(symbol, few, 1024), check(0, 1024, false);
    set.copy(symbol, few), check(0, 2048, false);
    set.copy("numbers", all);
    Buffers back(64, Words(256));
    auto same = [&](size_t at) {
        for (size_t i = 0; i < 64; ++i)
            HOPE(std::equal(back[i].begin(), back[i].end(), all[i].begin() + long(at)));
        back.assign(64, Words(256));
    };
    set.copy(back, 1024, "numbers", 512), same(128);
    set.copy(back, 1024, "numbers"), same(0);
    set.copy(back, "numbers", 512), same(128);
    set.copy(back, "numbers"), same(0);
    set.copy(back, 1024, symbol, 512), same(128);
    set.copy(back, 1024, symbol), same(0);
    set.copy(back, symbol, 512), same(128);
    set.copy(back, symbol), same(0);
    DpuSymbol third(0x08000000u, 8); /* by its address: MRAM begins with the only variable there */
    set.copy(third, Words{1, 2});
    set.copy(back, "numbers");
    HOPE(back[63][0] == 1 && back[63][1] == 2 && back[63][2] == all[63][2]);
    """,
    )


def test_asynchronous_operations_keep_their_order(folder: Path):
    run_host(
        folder,
        """
    auto set = DpuSet::allocate(130);
    set.load("program");
    const Buffers all = different(130);
    const Words two(1, 2), five(1, 5);
    auto async = set.async();
    Sums first(130, std::vector<uint64_t>(1)), second = first;
    std::atomic<unsigned> calls(0), seen(0), whole(0);
    async.copy("numbers", all);
    async.copy("factor", two);
    async.exec();
    async.call([&](DpuSet &rank, unsigned index) {
        Sums sums(rank.dpus().size(), std::vector<uint64_t>(1));
        rank.copy(sums, "sum"); /* synchronous, in a callback */
        bool good = rank.ranks().size() == 1 && index < 3;
        for (size_t i = 0; i < sums.size(); ++i) {
            uint64_t expected = 0;
            for (uint32_t x : all[64 * index + i]) expected += uint32_t(2 * x);
            good = good && sums[i][0] == expected;
        }
        ++calls;
        seen += good ? sums.size() : 0;
    });
    async.copy(first, "sum");
    async.copy("factor", five);
    async.exec();
    async.copy(second, "sum");
    async.call([&](DpuSet &all_of_it, unsigned) { whole += all_of_it.dpus().size(); }, true, true);
    async.call([&](DpuSet &, unsigned) { ++calls; }, false, false);
    async.sync();
    HOPE(seen == 130 && whole == 130);
    for (size_t i = 0; i < 130; ++i) {
        uint64_t expected = 0, later = 0;
        for (uint32_t x : all[i]) expected += uint32_t(2 * x), later += uint32_t(5 * x);
        HOPE(first[i][0] == expected && second[i][0] == later);
    }
    std::cout << "synced" << std::endl;
    { DpuSet last(std::move(set)); } /* frees, after callbacks that nobody waits for */
    HOPE(calls == 6);
    """,
        "-fsanitize=address,undefined",
    )


def test_logs_go_to_a_stream(folder: Path):
    output = run_host(
        folder,
        """
    auto set = DpuSet::allocate(3);
    set.load("program");
    set.copy("numbers", Words(1024, 2));
    set.exec();
    std::ostringstream text;
    set.log(text);
    set.dpus()[1]->log(text);
    std::cout << text.str();
    """,
    )
    lines = [f"=== DPU#0x{dpu:x} ===\nlaunch 1: 2048\n" for dpu in (0, 1, 2, 1)]
    assert output == "".join(lines)


ERRORS = {
    'set.load("nosuch")': "DPU_ERR_ELF_NO_SUCH_FILE",
    'program.get("nosuch")': "DPU_ERR_UNKNOWN_SYMBOL",
    'DpuProgram().get("sum")': "DPU_ERR_NO_PROGRAM_LOADED",
    "DpuSet::allocate(1000000)": "DPU_ERR_ALLOCATION",
    'DpuSet::allocate(1, "colour=red")': "DPU_ERR_INVALID_PROFILE",
    'set.copy("nosuch", Words(2))': "DPU_ERR_UNKNOWN_SYMBOL",
    'set.copy("nosuch", Buffers(3, Words(2)))': "DPU_ERR_UNKNOWN_SYMBOL",
    'set.copy("numbers", Words(1026))': "DPU_ERR_INVALID_SYMBOL_ACCESS",
    'set.copy("numbers", Words(3))': "DPU_ERR_INVALID_MRAM_ACCESS",
    'set.copy("numbers", Buffers(2, Words(2)))': "DPU_ERR_INVALID_MEMORY_TRANSFER",
    'set.copy("numbers", Buffers())': "DPU_ERR_INVALID_MEMORY_TRANSFER",
    'set.copy("numbers", Buffers{Words(2), Words(4), Words(2)})': "DPU_ERR_INVALID_MEMORY_TRANSFER",
    'set.copy("numbers", Buffers(3, Words(2)), 16)': "DPU_ERR_INVALID_MEMORY_TRANSFER",
    'set.copy("numbers", Words(2), size_t(-1))': "DPU_ERR_INVALID_MEMORY_TRANSFER",
    'set.copy("numbers", Words(2)); set.copy("fail", Words{1}); set.exec()': "DPU_ERR_DPU_FAULT",
    "set.async().exec(); set.async().sync()": "DPU_ERR_DPU_FAULT",
    'set.async().call([](DpuSet &in, unsigned) { in.load("nosuch"); }); set.async().sync()':
        "DPU_ERR_ELF_NO_SUCH_FILE",
    "set.async().call([](DpuSet &, unsigned) { throw 1; }); set.async().sync()": "DPU_ERR_INTERNAL",
}  # fmt: skip


def test_errors_are_exceptions_that_say_what_c_says(folder: Path):
    """After each, the set works on: nothing is left prepared, and sync tells an error once."""
    attempts = "\n".join(
        f"""try {{ {call}; HOPE(!"an error"); }} catch (const DpuError &error) {{
            char *text = dpu_error_to_string({code});
            if (error.what() != std::string(text))
                std::cout << "{code}: " << error.what() << std::endl;
            free(text);
        }}"""
        for call, code in ERRORS.items()
    )
    body = f"""
    auto set = DpuSet::allocate(3);
    DpuProgram program = set.load("program");
    {attempts}
    set.load("program");
    set.copy("numbers", Buffers(3, Words(1024, 1)));
    set.exec();
    """
    assert run_host(folder, body) == ""


def test_copies_of_a_set_are_the_same_and_the_last_one_frees_it(folder: Path):
    run_host(
        folder,
        """
    const unsigned most = unsigned(DpuSet::allocate().dpus().size());
    HOPE(most == 2560);
    auto all = DpuSet::allocate(ALLOCATE_ALL); /* the one above was freed */
    DpuSet *copy = new DpuSet(all);
    { DpuSet moved(std::move(all)); }
    HOPE(copy->dpus().size() == most);
    DpuSet view = *copy->dpus()[0];
    view.load("program");
    view.exec();
    bool refused = false;
    try { DpuSet::allocate(1); } catch (const std::exception &) { refused = true; }
    HOPE(refused);
    delete copy;
    DpuSet::allocate(1);
    """,
        "-fsanitize=address,undefined",
    )


def test_two_sources_of_a_program_may_include_it(folder: Path):
    (folder / "other.cpp").write_text(
        "#include <dpu>\n"
        "unsigned other() { return unsigned(dpu::DpuSet::allocate(2).dpus().size()); }\n"
    )
    (folder / "extern.cpp").write_text('extern "C" {\n#include <dpu.h>\n}\n#include <dpu>\n')
    body = "unsigned other(void); std::cout << other() << std::endl;"
    assert run_host(folder, body, "other.cpp", "extern.cpp") == "2\n"
