"""The host interface: error codes, sets, transfers, queues, callbacks, counters.

Hosts are C programs that the SDK builds. What they must return is a table written from the
documented meaning of the codes; what transfers must take is the cost model of `pim_emu.cost`.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from sdk_present import needs, needs_sdk

from pim_emu.cost.transfers import broadcast_seconds, pull_seconds, push_seconds
from pim_emu.machine import load_machine
from pim_emu.sdk import sdk_path

pytestmark = needs_sdk

DPU_PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include <barrier.h>
#include <defs.h>
#include <mram.h>

__host uint32_t mode, extra, runs, words[6];
__mram_noinit uint64_t buffer[32];
BARRIER_INIT(all, NR_TASKLETS);

int main(void) {
    barrier_wait(&all);
    if (me() != 0) return 0;
    printf("run %u\\n", ++runs);
    if (mode == 1) mram_read((__mram_ptr void *)0x0c000000, words, 8);
    for (uint32_t i = 0; i < 6; ++i) words[i] += runs;
    for (uint32_t i = 0; i < extra; ++i) words[i % 2] += i;
    return 0;
}
"""

PRELUDE = """
#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <dpu.h>
#include <dpu_log.h>
#include <dpu_management.h>
#include <dpu_memory.h>
#include <dpu_program.h>
#include <pim_emu.h>
#define OK(call) DPU_ASSERT(call)
#define SHOW(...) (printf(__VA_ARGS__), putchar('\\n'))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the DPU program `program`."""
    folder = tmp_path_factory.mktemp("host_api")
    (folder / "program.c").write_text(DPU_PROGRAM)
    compiler = sdk_path() / "bin" / "dpu-upmem-dpurte-clang"
    flags = ["-DNR_TASKLETS=2", "-O2", "-g", "-o", "program", "program.c"]
    subprocess.run([compiler, *flags], cwd=folder, check=True)
    return folder


def run_host(folder: Path, source: str, cpp: bool = False, **environment: str) -> list[str]:
    """Build a host of the C text, run it, and return its lines of output."""
    sdk = sdk_path()
    path = folder / ("host.cpp" if cpp else "host.c")
    path.write_text(PRELUDE + source)
    build = ["g++", "-std=c++17"] if cpp else ["gcc", "-std=gnu11"]
    build += ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-o", "host", path.name]
    build += [f"-I{sdk}/include/dpu", f"-L{sdk}/lib", f"-Wl,-rpath,{sdk}/lib", "-ldpu", "-lpthread"]
    subprocess.run(build, cwd=folder, check=True)
    done = subprocess.run(
        ["./host"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


# A call of the state that ERROR_HOST makes, and the code without DPU_ERR_.
ERRORS = [
    ("dpu_alloc(0, NULL, &other)", "ALLOCATION"),
    ("dpu_alloc(2561, NULL, &other)", "ALLOCATION"),
    ("dpu_alloc_ranks(41, NULL, &other)", "ALLOCATION"),
    ("dpu_alloc(2560, NULL, &other)", "ALLOCATION"),  # ranks are in use
    ("dpu_alloc(1, NULL, NULL)", "INTERNAL"),
    ('dpu_alloc(1, "nosuchkey=1", &other)', "INVALID_PROFILE"),
    ('dpu_alloc(1, "backend", &other)', "INVALID_PROFILE"),
    ('dpu_alloc(1, "backend=abacus", &other)', "INVALID_PROFILE"),
    ('dpu_alloc(1, "nrJobsPerRank=many", &other)', "INVALID_PROFILE"),
    ('dpu_alloc(1, "machine=nosuch", &other)', "INVALID_PROFILE"),
    ("dpu_free(dpu)", "INVALID_DPU_SET"),
    ("dpu_free(rank)", "INVALID_DPU_SET"),
    ("dpu_free(stale)", "INVALID_DPU_SET"),
    ("dpu_free(unknown)", "INTERNAL"),
    ("dpu_sync(stale)", "INVALID_DPU_SET"),
    ("dpu_sync(stale_dpu)", "INVALID_DPU_SET"),
    ("dpu_sync(empty)", "INVALID_DPU_SET"),
    ("dpu_sync(unknown)", "INTERNAL"),
    ("dpu_sync(too_many)", "INVALID_DPU_SET"),
    ("dpu_sync(twice)", "INVALID_DPU_SET"),
    ("dpu_get_nr_dpus(stale, &number)", "INVALID_DPU_SET"),
    ("dpu_get_nr_dpus(set, NULL)", "INTERNAL"),
    ("dpu_get_nr_ranks(unknown, &number)", "INTERNAL"),
    ("dpu_status(set, NULL, &flag)", "INTERNAL"),
    ('dpu_load(set, "nosuchfile", NULL)', "ELF_NO_SUCH_FILE"),
    ('dpu_load(set, ".", NULL)', "ELF_NO_SUCH_FILE"),
    ("dpu_load(set, NULL, NULL)", "ELF_NO_SUCH_FILE"),
    ('dpu_load(set, "program.c", NULL)', "ELF_INVALID_FILE"),
    ('dpu_load(set, "host", NULL)', "ELF_INVALID_FILE"),  # an ELF file, not of a DPU
    ('dpu_load(stale, "program", NULL)', "INVALID_DPU_SET"),
    ("dpu_load_from_memory(set, (uint8_t *)data, 8, NULL)", "ELF_INVALID_FILE"),
    ("dpu_load_from_memory(set, NULL, 8, NULL)", "ELF_INVALID_FILE"),
    ("dpu_load_from_incbin(set, NULL, NULL)", "ELF_INVALID_FILE"),
    ('dpu_get_symbol(program, "nosuch", &symbol)', "UNKNOWN_SYMBOL"),
    ("dpu_get_symbol(program, NULL, &symbol)", "UNKNOWN_SYMBOL"),
    ('dpu_get_symbol(program, "mode", NULL)', "INTERNAL"),
    ('dpu_get_symbol(stale_program, "mode", &symbol)', "NO_PROGRAM_LOADED"),
    ("dpu_launch(bare, DPU_SYNCHRONOUS)", "NO_PROGRAM_LOADED"),
    ("dpu_launch(bare, DPU_ASYNCHRONOUS)", "NO_PROGRAM_LOADED"),
    ("dpu_launch(set, (dpu_launch_policy_t)7)", "INVALID_LAUNCH_POLICY"),
    ("dpu_launch(stale, DPU_SYNCHRONOUS)", "INVALID_DPU_SET"),
    ('dpu_copy_to(bare, "words", 0, data, 8)', "NO_PROGRAM_LOADED"),
    ('dpu_copy_from(bare_dpu, "words", 0, data, 8)', "NO_PROGRAM_LOADED"),
    ('dpu_copy_to(mixed, "words", 0, data, 8)', "DIFFERENT_DPU_PROGRAMS"),
    ('dpu_copy_to(set, "nosuch", 0, data, 8)', "UNKNOWN_SYMBOL"),
    ('dpu_copy_to(set, "words", 0, NULL, 8)', "INVALID_MEMORY_TRANSFER"),
    ('dpu_copy_to(set, "words", 20, data, 8)', "INVALID_SYMBOL_ACCESS"),
    ('dpu_copy_to(set, "words", 28, data, 0)', "INVALID_SYMBOL_ACCESS"),
    ('dpu_copy_to(set, "words", 0, data, (size_t)-4)', "INVALID_SYMBOL_ACCESS"),
    ('dpu_copy_to(set, "words", 2, data, 4)', "INVALID_WRAM_ACCESS"),
    ('dpu_copy_to(set, "words", 0, data, 6)', "INVALID_WRAM_ACCESS"),
    ('dpu_copy_to(set, "buffer", 4, data, 8)', "INVALID_MRAM_ACCESS"),
    ('dpu_copy_to(set, "buffer", 0, data, 12)', "INVALID_MRAM_ACCESS"),
    ('dpu_copy_to(set, "buffer", 256, data, 8)', "INVALID_SYMBOL_ACCESS"),
    ("dpu_copy_to(set, heap, 67108864, data, 8)", "INVALID_SYMBOL_ACCESS"),
    ('dpu_copy_to(set, "main", 0, data, 8)', "INVALID_IRAM_ACCESS"),
    ("dpu_copy_to_symbol(set, all_mram, 67108864, data, 8)", "INVALID_MRAM_ACCESS"),
    ("dpu_copy_to_symbol(set, all_wram, 65536, data, 4)", "INVALID_WRAM_ACCESS"),
    ('dpu_copy_from(set, "words", 0, data, 8)', "INVALID_DPU_SET"),
    ('dpu_copy_from(dpu, "words", 0, NULL, 8)', "INVALID_MEMORY_TRANSFER"),
    ('dpu_copy_from(disabled, "words", 0, data, 8)', "DPU_DISABLED"),
    ('dpu_broadcast_to(set, "buffer", 0, data, 8, DPU_XFER_PARALLEL)',
     "INVALID_PARALLEL_MEMORY_TRANSFER"),
    ('dpu_broadcast_to(set, "words", 0, data, 8, (dpu_xfer_flags_t)64)', "INVALID_MEMORY_TRANSFER"),
    ('dpu_push_xfer(set, (dpu_xfer_t)2, "words", 0, 8, DPU_XFER_DEFAULT)',
     "INVALID_MEMORY_TRANSFER"),
    ('dpu_push_xfer(set, DPU_XFER_TO_DPU, "words", 0, 28, DPU_XFER_DEFAULT)',
     "INVALID_SYMBOL_ACCESS"),
    ("dpu_prepare_xfer(stale, data)", "INVALID_DPU_SET"),
    ("dpu_prepare_xfer(set, data), dpu_prepare_xfer(dpu, data)", "TRANSFER_ALREADY_SET"),
    ("dpu_prepare_xfer(set, NULL)", None),
    ("dpu_prepare_xfer(set, data)", None),
    ("dpu_prepare_xfer(set, NULL)", None),
    ('dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "buffer", 0, 8, NULL, DPU_SG_XFER_DEFAULT)',
     "INVALID_MEMORY_TRANSFER"),
    ('dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "words", 0, 8, &blocks, DPU_SG_XFER_DEFAULT)',
     "SG_NOT_MRAM_SYMBOL"),
    ('dpu_push_sg_xfer(dpu, DPU_XFER_TO_DPU, "buffer", 0, 8, &blocks, DPU_SG_XFER_DEFAULT)',
     "INTERNAL"),
    ('dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "buffer", 0, 24, &blocks, DPU_SG_XFER_DEFAULT)',
     "SG_LENGTH_MISMATCH"),
    ('dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "buffer", 0, 8, &blocks, DPU_SG_XFER_DEFAULT)',
     "SG_LENGTH_MISMATCH"),
    ('dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "buffer", 0, 16, &blocks, DPU_SG_XFER_DEFAULT)', None),
    ('dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "buffer", 4, 16, &blocks, DPU_SG_XFER_DEFAULT)',
     "INVALID_MRAM_ACCESS"),
    ('dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "buffer", 0, 24, &many, DPU_SG_XFER_DEFAULT)',
     "SG_TOO_MANY_BLOCKS"),
    ('dpu_push_sg_xfer(mixed, DPU_XFER_TO_DPU, "buffer", 0, 8, &blocks, DPU_SG_XFER_DEFAULT)',
     "DIFFERENT_DPU_PROGRAMS"),
    ('dpu_push_sg_xfer(plain, DPU_XFER_TO_DPU, "buffer", 0, 16, &blocks, DPU_SG_XFER_DEFAULT)',
     "SG_NOT_ACTIVATED"),
    ("dpu_callback(set, NULL, NULL, DPU_CALLBACK_DEFAULT)", "INTERNAL"),
    ("dpu_callback(set, failing, NULL, DPU_CALLBACK_NONBLOCKING)", "NONBLOCKING_SYNC_CALLBACK"),
    ("dpu_callback(set, failing, NULL, DPU_CALLBACK_DEFAULT)", "TIMEOUT"),
    ("dpu_callback(set, failing, NULL, DPU_CALLBACK_ASYNC), dpu_sync(set)", "TIMEOUT"),
    ("dpu_sync(set)", None),
    ("dpu_log_read(set, stdout)", "INVALID_DPU_SET"),
    ("dpu_log_read(dpu, NULL)", "INTERNAL"),
    ("dpu_log_read(bare_dpu, stdout)", "LOG_CONTEXT_MISSING"),
    ("dpu_copy_to_mram(dpu.dpu, 67108864, (uint8_t *)data, 8)", "INVALID_MRAM_ACCESS"),
    ("dpu_copy_from_wram_for_dpu(dpu.dpu, (uint32_t *)data, 16384, 1)", "INVALID_WRAM_ACCESS"),
    ('pim_emu_get_machine_fact(set, "nosuch", &value)', "UNKNOWN_SYMBOL"),
    ("pim_emu_get_counters(set, &counters)", "INVALID_DPU_SET"),
]  # fmt: skip

ERROR_HOST = """
static bool two_blocks(struct sg_block_info *out, uint32_t dpu, uint32_t block, void *args) {
    static uint8_t zeros[16];
    (void)dpu, (void)args;
    *out = (struct sg_block_info){zeros, 8};
    return block < 2;
}
static bool many_blocks(struct sg_block_info *out, uint32_t dpu, uint32_t block, void *args) {
    two_blocks(out, dpu, 0, args);
    return block < 3;
}
static dpu_error_t failing(struct dpu_set_t set, uint32_t rank, void *args) {
    (void)set, (void)rank, (void)args;
    return DPU_ERR_TIMEOUT;
}
static struct dpu_set_t first_dpu(struct dpu_set_t set) {
    struct dpu_set_t dpu;
    DPU_FOREACH(set, dpu) return dpu;
    abort();
}
int main(void) {
    const char *heap = DPU_MRAM_HEAP_POINTER_NAME;
    uint64_t data[8] = {0};
    struct dpu_set_t set, rank, stale, bare, mixed, plain, other;
    const struct dpu_set_t unknown = {.kind = (dpu_set_kind_t)5}, empty = {.kind = DPU_SET_RANKS};
    struct dpu_program_t *program, *stale_program;
    const struct dpu_symbol_t all_mram = {0x08000000u, 0xffffffffu}, all_wram = {0, 0xffffffffu};
    struct dpu_symbol_t symbol;
    struct pim_emu_counters counters;
    get_block_t blocks = {two_blocks, NULL, 0}, many = {many_blocks, NULL, 0};
    uint32_t number;
    double value;
    bool flag;
    OK(dpu_alloc(1, NULL, &stale));
    OK(dpu_load(stale, "program", &stale_program));
    const struct dpu_set_t stale_dpu = first_dpu(stale);
    OK(dpu_free(stale));
    OK(dpu_alloc(70, "sgXferEnable=true, sgXferMaxBlocksPerDpu=2", &set));
    OK(dpu_load(set, "program", &program));
    OK(dpu_alloc(1, "backend=hw,regionMode=perf,nrThreadsPerRank=0", &bare));
    OK(dpu_alloc(2, NULL, &mixed));
    OK(dpu_load(mixed, "program", NULL));
    OK(dpu_load(first_dpu(mixed), "program", NULL));
    OK(dpu_alloc(1, "", &plain));
    OK(dpu_load(plain, "program", NULL));
    DPU_RANK_FOREACH(set, rank) break;
    const struct dpu_set_t dpu = first_dpu(set), bare_dpu = first_dpu(bare);
    struct dpu_set_t too_many = set, twice = set;
    too_many.list.nr_ranks = 900;
    struct dpu_rank_t *same[] = {set.list.ranks[0], set.list.ranks[0]};
    twice.list.ranks = same;
    const struct dpu_set_t disabled = dpu_set_from_dpu(dpu_get(set.list.ranks[1], 1, 0));
    assert(!dpu_is_enabled(disabled.dpu));
@CALLS@
    (void)symbol, (void)number, (void)other, (void)value, (void)flag, (void)counters;
    return 0;
}
"""


def test_misuse_returns_the_codes_of_the_documentation(folder: Path):
    lines = [f'    SHOW("%d", (int)({call}));' for call, _ in ERRORS]
    codes = [f"DPU_ERR_{name}" if name else "DPU_OK" for _, name in ERRORS]
    lines += [f'    SHOW("%d", (int){code});' for code in codes]
    source = ERROR_HOST.replace("@CALLS@", "\n".join(lines))
    output = run_host(folder, source, PIM_EMU_QUIET="1")
    got, expected = output[: len(ERRORS)], output[len(ERRORS) :]
    assert len(expected) == len(ERRORS)
    wrong = [
        f"{call}: {real}, not {code}"
        for (call, _), code, real, right in zip(ERRORS, codes, got, expected, strict=True)
        if real != right
    ]
    assert not wrong, "\n".join(wrong)


def test_codes_have_the_values_of_the_interface(folder: Path):
    values = {
        "OK": 0,
        "ERR_ALLOCATION": 4,
        "ERR_INVALID_DPU_SET": 5,
        "ERR_DPU_FAULT": 23,
        "ERR_SG_NOT_MRAM_SYMBOL": 42,
        "ERR_ASYNC_JOBS": -(2**31),
    }
    shows = "".join(f'SHOW("%d", (int)DPU_{name});' for name in values)
    output = run_host(folder, f"int main(void) {{ {shows} return 0; }}")
    assert [int(line) for line in output] == list(values.values())


def test_a_misuse_is_explained(folder: Path):
    source = """
    int main(void) {
        struct dpu_set_t set;
        uint64_t data[8] = {0};
        OK(dpu_alloc(1, NULL, &set));
        OK(dpu_load(set, "program", NULL));
        dpu_copy_to(set, "words", 20, data, 8);
        dpu_copy_to(set, "buffer", 0, data, 12);
        dpu_copy_to(set, DPU_MRAM_HEAP_POINTER_NAME, 64 << 20, data, 8);
        dpu_push_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, 8, DPU_XFER_DEFAULT);
        dpu_alloc(1, "colour=red", &set);
        return 0;
    }
    """
    bounds, alignment, heap, nothing, profile = run_host(folder, source)
    assert all(text in bounds for text in ('"words"', "20", "8", "24 bytes"))
    assert all(text in alignment for text in ('"buffer"', "12", "multiples of 8", "MRAM"))
    for text in (heap, nothing):
        assert text.startswith('pim_emu: symbol "DPU_MRAM_HEAP_POINTER_NAME": ')
    assert "offset 67108864 + length 8 exceeds its " in heap
    assert '"colour"' in profile


def test_a_profile_is_described_without_a_rank(folder: Path):
    source = """
    int main(void) {
        const char *profiles[] = {NULL, "machine=upmem-v1b"};
        for (int i = 0; i < 2; ++i) {
            dpu_description_t about;
            OK(dpu_get_profile_description(profiles[i], &about));
            SHOW("%u %u %u %u", about->hw.timings.fck_frequency_in_mhz /
                 about->hw.timings.clock_division, about->hw.memories.mram_size,
                 about->hw.memories.wram_size, about->hw.dpu.nr_of_threads);
            dpu_free_description(about);
        }
        dpu_free_description(NULL);
        dpu_description_t none;
        assert(dpu_get_profile_description("machine=abacus", &none) == DPU_ERR_INVALID_PROFILE);
        assert(dpu_get_profile_description(NULL, NULL) == DPU_ERR_INTERNAL);
        return 0;
    }
    """
    expected = [
        f"{m.clock_hz / 1e6:.0f} {m.mram_bytes} {m.wram_bytes // 4} {m.max_tasklets}"
        for m in (load_machine(), load_machine("upmem-v1b"))
    ]
    assert run_host(folder, source, PIM_EMU_QUIET="1") == expected


def test_sets_iterate_over_ranks_and_dpus(folder: Path):
    source = """
    int main(void) {
        struct dpu_set_t set, rank, dpu, spread;
        uint32_t r, d, ranks, dpus;
        OK(dpu_alloc(130, NULL, &set));
        DPU_RANK_FOREACH(set, rank, r) {
            OK(dpu_get_nr_ranks(rank, &ranks));
            OK(dpu_get_nr_dpus(rank, &dpus));
            SHOW("rank %u: %u %u", r, ranks, dpus);
            DPU_FOREACH(rank, dpu, d) if (d % 50 == 9) SHOW("%u 0x%x", d, dpu_get_id(dpu.dpu));
        }
        DPU_FOREACH(set, dpu, d) if (d == 129) SHOW("%u 0x%x", d, dpu_get_id(dpu_from_set(dpu)));
        DPU_FOREACH(dpu, rank, d) SHOW("itself %u %d", d, rank.dpu == dpu.dpu);
        OK(dpu_alloc(64, "dispatchOnAllRanks=true", &spread));
        OK(dpu_get_nr_ranks(spread, &ranks));
        OK(dpu_get_nr_dpus(spread, &dpus));
        SHOW("spread %u %u", ranks, dpus);
        OK(dpu_free(set));
        DPU_FOREACH(set, dpu) SHOW("a DPU of a freed set");
        OK(dpu_free(spread));
        return 0;
    }
    """
    assert run_host(folder, source) == [
        "rank 0: 1 64", "9 0x101", "59 0x703",
        "rank 1: 1 64", "9 0x10101", "59 0x10703",
        "rank 2: 1 2",
        "129 0x20001",
        "itself 0 1",
        "spread 37 64",
    ]  # fmt: skip


def test_each_dpu_gets_its_own_data_and_gives_it_back(folder: Path):
    source = """
    static uint64_t in[70][32], out[70][32];
    static bool halves(struct sg_block_info *block, uint32_t dpu, uint32_t index, void *args) {
        uint64_t (*data)[32] = *(uint64_t (**)[32])args;
        const uint32_t at = index == 0 ? 0 : 11; /* words */
        *block = (struct sg_block_info){(uint8_t *)&data[dpu][at], (index == 0 ? 11 : 21) * 8};
        return index < 2;
    }
    int main(void) {
        struct dpu_set_t set, dpu;
        uint32_t i;
        uint64_t word = 77, got = 0;
        OK(dpu_alloc(70, "sgXferEnable=true", &set));
        OK(dpu_load(set, "program", NULL));
        for (i = 0; i < 70 * 32; ++i) in[i / 32][i % 32] = 1000003ull * i;
        /* by pushes, half the DPUs */
        DPU_FOREACH(set, dpu, i) if (i % 2 == 0) OK(dpu_prepare_xfer(dpu, in[i]));
        OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "buffer", 0, 256, DPU_XFER_DEFAULT));
        DPU_FOREACH(set, dpu, i) OK(dpu_prepare_xfer(dpu, out[i]));
        OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "buffer", 0, 256, DPU_XFER_NO_RESET));
        for (i = 0; i < 70; ++i) assert((memcmp(in[i], out[i], 256) == 0) == (i % 2 == 0));
        /* by scattering, all; buffers for gathering are still prepared */
        uint64_t (*data)[32] = in;
        get_block_t blocks = {halves, &data, sizeof data};
        OK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, "buffer", 0, 256, &blocks, DPU_SG_XFER_DEFAULT));
        OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "buffer", 0, 256, DPU_XFER_DEFAULT));
        assert(memcmp(in, out, sizeof in) == 0);
        memset(out, 0, sizeof out);
        data = out;
        OK(dpu_push_sg_xfer(set, DPU_XFER_FROM_DPU, "buffer", 0, 256, &blocks, DPU_SG_XFER_ASYNC));
        OK(dpu_sync(set));
        assert(memcmp(in, out, sizeof in) == 0);
        /* fewer bytes than the length: zeros follow */
        data = in;
        OK(dpu_push_sg_xfer(set, DPU_XFER_TO_DPU, DPU_MRAM_HEAP_POINTER_NAME, 0, 8192, &blocks,
                            DPU_SG_XFER_DISABLE_LENGTH_CHECK));
        DPU_FOREACH(set, dpu, i) {
            uint64_t tail[2];
            OK(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, 248, tail, 16));
            assert(tail[0] == in[i][31] && tail[1] == 0);
            OK(dpu_copy_from(dpu, DPU_MRAM_HEAP_POINTER_NAME, 8184, tail, 16));
            assert(tail[0] == 0 && tail[1] != 0);
        }
        /* the last word of MRAM */
        struct dpu_program_t *program;
        struct dpu_symbol_t heap;
        OK(dpu_get_common_program(&set, &program));
        OK(dpu_get_symbol(program, DPU_MRAM_HEAP_POINTER_NAME, &heap));
        assert(heap.address + heap.size == 0x08000000u + (64u << 20));
        OK(dpu_broadcast_to(set, DPU_MRAM_HEAP_POINTER_NAME, heap.size - 8, &word, 8,
                            DPU_XFER_ASYNC));
        OK(dpu_sync(set));
        DPU_FOREACH(set, dpu) OK(dpu_copy_from_mram(dpu.dpu, (uint8_t *)&got, (64u << 20) - 8, 8));
        SHOW("%d %" PRIu64, program->nr_threads_enabled, got);
        OK(dpu_free(set));
        return 0;
    }
    """
    assert run_host(folder, source) == ["2 77"]


def test_queued_work_runs_in_order_and_errors_wait_for_sync(folder: Path):
    source = """
    static int calls, whole;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static dpu_error_t look(struct dpu_set_t set, uint32_t rank, void *args) {
        struct dpu_set_t dpu;
        uint32_t runs, dpus;
        (void)rank;
        OK(dpu_get_nr_dpus(set, &dpus));
        DPU_FOREACH(set, dpu) {
            OK(dpu_copy_from(dpu, "runs", 0, &runs, 4));
            assert(runs == *(uint32_t *)args);
        }
        pthread_mutex_lock(&lock);
        ++calls;
        whole += dpus == 70;
        pthread_mutex_unlock(&lock);
        return DPU_OK;
    }
    int main(void) {
        struct dpu_set_t set, dpu;
        uint32_t ten = 10, one = 1, eleven = 11, twelve = 12, runs[70], i;
        bool done, fault;
        OK(dpu_alloc(70, NULL, &set));
        OK(dpu_load(set, "program", NULL));
        OK(dpu_broadcast_to(set, "runs", 0, &ten, 4, DPU_XFER_ASYNC));
        OK(dpu_launch(set, DPU_ASYNCHRONOUS));
        OK(dpu_callback(set, look, &eleven, DPU_CALLBACK_ASYNC));
        OK(dpu_launch(set, DPU_ASYNCHRONOUS));
        OK(dpu_callback(set, look, &twelve, DPU_CALLBACK_ASYNC | DPU_CALLBACK_SINGLE_CALL));
        DPU_FOREACH(set, dpu, i) OK(dpu_prepare_xfer(dpu, &runs[i]));
        OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "runs", 0, 4, DPU_XFER_ASYNC));
        OK(dpu_sync(set));
        for (i = 0; i < 70; ++i) assert(runs[i] == 12);
        OK(dpu_callback(set, look, &twelve, DPU_CALLBACK_DEFAULT));
        SHOW("%d calls, %d of the whole set", calls, whole);
        /* one DPU of the second rank faults */
        DPU_FOREACH(set, dpu, i) if (i == 66) OK(dpu_copy_to(dpu, "mode", 0, &one, 4));
        OK(dpu_launch(set, DPU_ASYNCHRONOUS));
        do OK(dpu_status(set, &done, &fault)); while (!done);
        assert(fault);
        dpu_error_t refused = dpu_copy_to(set, "mode", 0, &one, 4);
        assert((refused & DPU_ERR_ASYNC_JOBS) && (refused & 0xffff) == DPU_ERR_DPU_FAULT);
        assert(dpu_sync(set) == DPU_ERR_DPU_FAULT && dpu_sync(set) == DPU_OK);
        DPU_FOREACH(set, dpu, i) {
            const char *name, *message;
            OK(pim_emu_get_fault(dpu, &name, &message));
            assert((name[0] != 0) == (i == 66) && (message[0] != 0) == (i == 66));
            OK(dpu_status(dpu, &done, &fault));
            assert(fault == (i == 66));
            if (i == 66) OK(dpu_log_read(dpu, stdout));
        }
        assert(dpu_launch(set, DPU_SYNCHRONOUS) == DPU_ERR_DPU_FAULT);
        OK(dpu_load(set, "program", NULL));
        OK(dpu_launch(set, DPU_SYNCHRONOUS));
        OK(dpu_status(set, &done, &fault));
        assert(done && !fault);
        for (i = 0; i < 20; ++i) OK(dpu_launch(set, DPU_ASYNCHRONOUS));
        OK(dpu_free(set));
        return 0;
    }
    """
    output = run_host(folder, "#include <pthread.h>\n" + source)
    assert output[:3] == ["5 calls, 1 of the whole set", "=== DPU#0x10002 ===", "run 13"]
    assert len(output) == 5  # and one complaint for each launch that failed
    place = f"program.c:{1 + DPU_PROGRAM[: DPU_PROGRAM.index('mram_read')].count(chr(10))}"
    assert all("DPU 66" in line and place in line for line in output[3:])


@needs("gcc", "g++")
def test_a_host_in_cpp_with_an_embedded_program(folder: Path):
    source = f"""
    DPU_INCBIN(embedded, "{folder}/program")
    int main() {{
        dpu_set_t set, rank, dpu;
        uint32_t words[6], sum = 0, number;
        OK(dpu_alloc_ranks(2, "backend=simulator", &set));
        OK(dpu_load_from_incbin(set, &embedded, nullptr));
        OK(dpu_launch(set, DPU_SYNCHRONOUS));
        DPU_RANK_FOREACH (set, rank) DPU_FOREACH (rank, dpu, number) {{
            OK(dpu_copy_from(dpu, "words", 0, words, sizeof words));
            sum += words[5];
        }}
        SHOW("%u %s", sum, embedded.path);
        OK(dpu_free(set));
        return (int)(number - 64);
    }}
    """
    assert run_host(folder, source, cpp=True) == [f"128 {folder}/program"]


def test_counters_and_modelled_seconds(folder: Path):
    source = """
    int main(void) {
        static uint8_t data[4096];
        struct dpu_set_t set, dpu;
        struct pim_emu_set_counters counted;
        struct pim_emu_counters one;
        double clock;
        uint64_t slowest = 0;
        uint32_t i;
        OK(dpu_alloc(70, NULL, &set));
        OK(dpu_load(set, "program", NULL));
        OK(dpu_prepare_xfer(set, data));
        OK(dpu_push_xfer(set, DPU_XFER_TO_DPU, "buffer", 0, 256, DPU_XFER_NO_RESET));
        OK(pim_emu_get_set_counters(set, &counted));
        SHOW("%" PRIu64 " %.17g", counted.bytes_to_dpus, counted.transfer_seconds);
        OK(pim_emu_reset_set_counters(set));
        OK(dpu_push_xfer(set, DPU_XFER_FROM_DPU, "buffer", 0, 64, DPU_XFER_ASYNC));
        OK(dpu_sync(set));
        OK(pim_emu_get_set_counters(set, &counted));
        SHOW("%" PRIu64 " %.17g", counted.bytes_from_dpus, counted.transfer_seconds);
        OK(pim_emu_reset_set_counters(set));
        OK(dpu_broadcast_to(set, "buffer", 0, data, 128, DPU_XFER_DEFAULT));
        OK(pim_emu_get_set_counters(set, &counted));
        SHOW("%" PRIu64 " %.17g", counted.broadcast_bytes, counted.transfer_seconds);
        DPU_FOREACH(set, dpu, i) OK(dpu_copy_to(dpu, "extra", 0, &i, 4)); /* the last is slowest */
        OK(dpu_launch(set, DPU_SYNCHRONOUS));
        OK(pim_emu_get_set_counters(set, &counted));
        DPU_FOREACH(set, dpu) {
            OK(pim_emu_get_counters(dpu, &one));
            if (one.cycles > slowest) slowest = one.cycles;
        }
        assert(slowest > 0 && counted.launches == 1 && counted.slowest_cycles == slowest);
        OK(dpu_launch(set, DPU_ASYNCHRONOUS));
        OK(dpu_sync(set));
        OK(pim_emu_get_set_counters(set, &counted));
        assert(counted.launches == 2 && counted.slowest_cycles > slowest);
        OK(pim_emu_get_machine_fact(set, "clock_hz", &clock));
        SHOW("%.17g %.17g", clock, counted.launch_seconds * clock / (double)counted.slowest_cycles);
        OK(dpu_free(set));
        return 0;
    }
    """
    output = run_host(folder, source, PIM_EMU_REPORT="1")
    machine = load_machine()
    expected = [
        (70 * 256, push_seconds(machine, 70, 256)),
        (70 * 64, pull_seconds(machine, 70, 64)),
        (70 * 128, broadcast_seconds(machine, 70, 128)),
        (machine.clock_hz, 1.0),
    ]
    for line, (count, seconds) in zip(output, expected, strict=False):
        got = [float(word) for word in line.split()]
        assert got == pytest.approx([count, seconds], rel=1e-12)
    report = "\n".join(output[4:])
    assert "70 DPUs in 2 ranks of upmem-2560" in report
    assert "2 launches" in report
    assert report.count("modelled") == 2


def test_the_machine_is_chosen_by_profile_or_environment(folder: Path):
    source = """
    int main(void) {
        struct dpu_set_t set, named;
        const char *a, *b;
        double tasklets;
        OK(dpu_alloc(1, NULL, &set));
        OK(dpu_alloc(1, "machine=upmem-v1b", &named));
        OK(pim_emu_get_machine(set, &a));
        OK(pim_emu_get_machine(named, &b));
        OK(pim_emu_get_machine_fact(named, "max_tasklets", &tasklets));
        SHOW("%s %s %g", a, b, tasklets);
        OK(dpu_free(set));
        OK(dpu_free(named));
        return 0;
    }
    """
    assert run_host(folder, source) == ["upmem-2560 upmem-v1b 16"]
    chosen = run_host(folder, source, PIM_EMU_MACHINE="upmem-v1b")
    assert chosen == ["upmem-v1b upmem-v1b 16"]
    by_profile = run_host(folder, source, UPMEM_PROFILE_BASE="machine=upmem-v1b, backend=simulator")
    assert by_profile == ["upmem-v1b upmem-v1b 16"]


PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "pim-emu.md"
TABLE = PAGE.read_text(encoding="utf-8").partition("| header | functions of hosts |")[2]
FUNCTIONS = re.findall(r"`(\w+)`", TABLE.partition("\n\n")[0])


def test_the_page_lists_all_functions():
    """Those that the headers declare, emulator's own apart."""
    include = sdk_path() / "include" / "dpu"
    text = "".join(path.read_text() for path in include.glob("*.h") if path.stem != "pim_emu")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"#define(?:.*\\\n)*.*\n", "", text)
    assert sorted(FUNCTIONS) == sorted(set(re.findall(r"\b(\w+)\([^()]*(?:\([^;]*)?\);", text)))


def test_documented_functions_are_declared_and_exported(folder: Path):
    headers = ("dpu_fifo", "dpu_log_internals", "dpu_runner")
    source = "".join(f"#include <{name}.h>\n" for name in headers)
    rows = ", ".join(f"(void (*)(void)){name}" for name in FUNCTIONS)
    source += f"""
    static void (*const functions[])(void) = {{ {rows} }};
    int main(void) {{
        size_t there = 0;
        for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
            there += functions[i] != NULL;
        SHOW("%zu", there);
        return 0;
    }}
    """
    assert run_host(folder, source) == [str(len(FUNCTIONS))]


def test_a_rank_is_allocated_and_freed_by_its_handle(folder: Path):
    source = """
    int main(void) {
        struct dpu_rank_t *rank;
        struct dpu_set_t two;
        uint32_t number;
        OK(dpu_get_rank_of_type("backend=simulator", &rank));
        struct dpu_set_t set = dpu_set_from_rank(&rank);
        OK(dpu_get_nr_dpus(set, &number));
        OK(dpu_load(set, "program", NULL));
        OK(dpu_launch(set, DPU_SYNCHRONOUS));
        OK(dpu_free_rank(rank));
        SHOW("%u %d", number, dpu_free_rank(rank) == DPU_ERR_INVALID_DPU_SET);
        OK(dpu_alloc_ranks(2, NULL, &two));
        SHOW("%d %d", dpu_free_rank(two.list.ranks[1]) == DPU_ERR_INVALID_DPU_SET,
             dpu_get_rank_of_type(NULL, NULL) == DPU_ERR_INTERNAL);
        OK(dpu_free(two));
        return 0;
    }
    """
    assert run_host(folder, source, PIM_EMU_QUIET="1") == ["64 1", "1 1"]
