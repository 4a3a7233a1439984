"""Associative searches on DPUs: the match lines of `accel_rl.am`, whatever is stored and asked."""

import shutil
import subprocess
import textwrap

import jax
import numpy as np
import pytest
import quick
from dpu_programs import KERNELS
from fake_upmem import make_working_sdk
from sdk_present import needs
from test_upmem_sanitized import FLAGS, make
from upmem_runs import ROOT, environment, run

import pim_emu
from accel_rl import am, pim
from accel_rl.pim import match, queries
from accel_rl.pim.upmem import build, matcher
from pim_emu.cost import launch_seconds
from pim_emu.sdk import sdk_path
from pim_emu.toolchain.elf import ElfFile

SOURCE = KERNELS / "upmem" / "dpu" / "match.c"
DTYPES = (np.uint8, np.uint16, np.uint32)
needs_dpus = needs("gcc", "g++")
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


# --- The truth, cell by cell ---


def equal(key, query, mask):
    return all((key >> b & 1) == (query >> b & 1) for b in range(32) if not mask >> b & 1)


def near(key, query, reach):
    return abs(key - query) <= reach


def truth(test, keys, valid, first, second):
    """Match lines of each query, bool [M, N]."""
    pairs = [(int(a), int(b)) for a, b in zip(first, second, strict=True)]
    lines = [[bool(v) and test(int(k), a, b) for k, v in zip(keys, valid, strict=True)]
             for a, b in pairs]  # fmt: skip
    return np.array(lines, bool).reshape(len(pairs), len(keys))


def words_of(lines):
    """Line i as bit i % 32 of word i // 32."""
    words = np.zeros((*lines.shape[:-1], -(-lines.shape[-1] // 32)), np.uint32)
    for i in range(lines.shape[-1]):
        words[..., i // 32] |= lines[..., i].astype(np.uint32) << np.uint32(i % 32)
    return words


def counts_of(lines, dpus, share):
    return np.stack([lines[..., d * share : (d + 1) * share].sum(-1) for d in range(dpus)], -1)


def check_searches(memory, dpus, keys, valid, wanted, masks, radii):
    """Every search of these queries finds what it should, with match lines and without."""
    for test, seconds, one, union in (
        (equal, masks, memory.match, memory.any_match),
        (near, radii, memory.radius, memory.any_radius),
    ):
        lines = truth(test, keys, valid, wanted, seconds)
        for search, right in ((one, lines), (union, lines.any(axis=0))):
            found, counted = search(wanted, seconds), search(wanted, seconds, lines=False)
            np.testing.assert_array_equal(found.words, words_of(right))
            np.testing.assert_array_equal(found.counts, counts_of(right, dpus, memory.share))
            assert (found.words.dtype, found.counts.dtype) == (np.uint32, np.int32)
            assert counted.words is None
            np.testing.assert_array_equal(counted.counts, found.counts)


def sample(dtype, size, num, seed=0):
    """Keys, valid bits, queries with masks and radii, of which many match."""
    rng, top = np.random.default_rng(seed), int(np.iinfo(dtype).max)
    keys = rng.integers(0, top, size, dtype, endpoint=True)
    wanted = rng.integers(0, top, num, dtype, endpoint=True)
    wanted[: num // 4] = keys[rng.integers(0, size, num // 4)]
    masks = rng.integers(0, top, num, dtype, endpoint=True)
    masks |= rng.integers(0, top, num, dtype, endpoint=True)
    masks[::3] = 0
    radii = rng.integers(0, top // 20, num, dtype)
    return keys, rng.random(size) < 0.9, wanted, masks, radii


# --- Searches ---


@needs_dpus
@each_dtype
@pytest.mark.parametrize(
    ("size", "dpus", "tasklets"),
    [
        pytest.param(1, 1, 1, marks=pytest.mark.long),
        (65, 2, 16),
        pytest.param(63, 3, 24, marks=pytest.mark.slow),
        (700, 5, 11),
    ],
)
def test_searches_of_any_size(dtype, size, dpus, tasklets):
    keys, valid, *asked = sample(dtype, size, 12)
    with match.KeyMemory(keys, dpus, valid=valid, tasklets=tasklets) as memory:
        check_searches(memory, dpus, keys, valid, *asked)


@needs_dpus
@each_dtype
def test_match_lines_are_those_of_am(dtype):
    keys, valid, wanted, masks, radii = sample(dtype, 5_000, 20)
    with match.KeyMemory(keys, 3, valid=valid) as memory:
        for one, union, found, found_any, seconds in (
            (am.match, am.any_match, memory.match, memory.any_match, masks),
            (am.radius, am.any_radius, memory.radius, memory.any_radius, radii),
        ):
            words = found(wanted, seconds).words
            search = jax.jit(lambda q, r, by=one: am.pack(by(keys, q, r, valid=valid)))
            for k, pair in enumerate(zip(wanted, seconds, strict=True)):
                np.testing.assert_array_equal(words[k], search(*pair))
            search = jax.jit(lambda q, r, by=union: am.pack(by(keys, q, r, valid=valid)))
            lines = search(wanted, seconds)
            words, counts = found_any(wanted, seconds)
            np.testing.assert_array_equal(words, lines)
            assert counts.sum() == am.count_packed(words)


@pytest.mark.long  # compiles all of a draw
@needs_dpus
def test_a_csp_to_draw_from():
    """One call of AMPER-fr: 20 groups, a radius in proportion to the value, a batch."""
    rng = np.random.default_rng(3)
    priorities = rng.random(20_000)
    keys = am.encode(priorities)
    values = (np.arange(20) + rng.random(20)) / 20
    centers, radii = am.encode(values), am.encode(0.3 / 20 * values)
    with match.KeyMemory(keys, 64) as memory:
        words, counts = memory.any_radius(centers, radii)
        masks = np.array([(1 << int(r).bit_length()) - 1 for r in np.asarray(radii)], np.uint16)
        blocks = memory.any_match(centers, masks).words
    lines, count = jax.jit(am.search_packed)(keys, centers, radii=radii)
    np.testing.assert_array_equal(words, lines)
    assert counts.sum() == count
    lines = jax.jit(am.any_match)(keys, centers, masks)
    np.testing.assert_array_equal(blocks, am.pack(lines))
    drawn = np.asarray(jax.jit(am.draw, static_argnums=2)(jax.random.key(0), words, 64))
    assert (np.abs(priorities[drawn, None] - values) <= 0.3 / 20 * values + 2e-5).any(1).all()


@needs_dpus
@each_dtype
def test_all_match_and_none(dtype):
    top = int(np.iinfo(dtype).max)
    keys = np.arange(200, dtype=np.uint32).astype(dtype)
    keys[:2] = 0, top
    with match.KeyMemory(keys, 2) as memory:
        for found in (memory.match([7], [top]), memory.radius([7], [top])):
            assert found.counts.tolist() == [[128, 72]]
            assert found.words.tolist() == [[2**32 - 1] * 6 + [255]]
        for found in (memory.any_match([0, 9], [top, 0]), memory.any_radius([0, top], [top, 0])):
            assert found.words.tolist() == [2**32 - 1] * 6 + [255]
        for found in (memory.match([201], [0]), memory.radius([201], [1])):
            assert found.counts.tolist() == [[0, 0]]
            assert not found.words.any()
        assert memory.any_match([201], [0]).counts.sum() == 0
        # The ends of the range: what is below 0 or above the largest does not wrap around.
        check_searches(memory, 2, keys, keys >= 0, [0, 1, top - 1, top], [1, 0, 3, 1], [0, 1, 1, 0])
    with match.KeyMemory(keys, 2, valid=np.zeros(200, bool)) as memory:
        assert memory.any_radius([0], [top]).counts.sum() == 0


@needs_dpus
def test_no_queries_and_many():
    keys, valid, *asked = sample(np.uint16, 300, 150)
    with match.KeyMemory(keys, 2, valid=valid) as memory:
        check_searches(memory, 2, keys, valid, *asked)  # more than one launch counts
        check_searches(memory, 2, keys, valid, [], [], [])
        before = memory.report().launches
        memory.radius(asked[0], asked[2])
        assert memory.report().launches == before + 3


@needs_dpus
@pytest.mark.parametrize("num", [1, 2, 31, 32, 33, 255, 256])
def test_unions_of_disjoint_ranges(num):
    keys = np.random.default_rng(num).integers(0, 2**32, 400, np.uint32)
    centers = (np.arange(num, dtype=np.uint64) * 2**32 // num).astype(np.uint32)
    radii = np.full(num, 2**29 // num, np.uint32)
    right = truth(near, keys, keys >= 0, centers, radii).any(axis=0)
    assert 0 < right.sum() < 400
    with match.KeyMemory(keys, 2) as memory:
        np.testing.assert_array_equal(memory.any_radius(centers, radii).words, words_of(right))


def test_ranges_are_merged():
    low = np.array([50, 0, 10, 12, 20, 30, 50])
    high = np.array([50, 3, 20, 14, 25, 49, 60])
    merged = np.stack(queries.merged(low, high), axis=1)
    assert merged.tolist() == [[0, 3], [10, 25], [30, 60]]


# --- Updates ---


@needs_dpus
@pytest.mark.parametrize("dtype", quick.only([np.uint16], DTYPES))
def test_updates(dtype):
    size, dpus, rng = 900, 3, np.random.default_rng(5)
    keys, valid, *asked = sample(dtype, size, 6)
    with match.KeyMemory(keys, dpus, valid=valid, tasklets=13) as memory:
        # Slots that are there twice; none; neighbours; more of a DPU than a launch takes.
        for slots in (
            rng.integers(0, size, 64),
            np.zeros(0, np.int32),
            np.arange(300, 340, dtype=np.uint16),
            np.repeat(np.arange(size), 2),
            np.array([7, 7, 7, size - 1]),
        ):
            new = rng.integers(0, np.iinfo(dtype).max, len(slots), dtype, endpoint=True)
            flags = rng.random(len(slots)) < 0.7
            memory.update(slots, new, flags)
            for slot, key, flag in zip(slots, new, flags, strict=True):
                keys[slot], valid[slot] = key, flag
            check_searches(memory, dpus, keys, valid, *asked)
        memory.update([5, 6], [1, 2])
        assert valid[5:7].all() or (memory.match([1], [0]).words[0, 0] >> np.uint32(5)) & 1


@needs_dpus
def test_updates_of_a_dpu_take_a_launch_for_every_512():
    with match.KeyMemory(np.zeros(2_000, np.uint8), 2) as memory:
        for num, launches in ((512, 1), (513, 2), (2_000, 2)):
            before = memory.report()
            memory.update(np.arange(num), np.ones(num, np.uint8))
            made = memory.report().since(before)
            assert made.launches == launches, num
        assert memory.any_match([1], [0]).counts.tolist() == [1024, 976]


# --- The program ---


def program_of(bits, tasklets, source=SOURCE, traced=False):
    return pim_emu.build(
        source, tasklets=tasklets, define={"ARL_KEY_BITS": bits}, stack_bytes=768,
        optimise="-O3", traced=traced,
    )  # fmt: skip


def launches(program, bits, seed=0):
    """All kinds of launches on one DPU, checked: two updates between searches."""
    keys, valid, wanted, masks, radii = sample(np.dtype(f"uint{bits}"), 6 * 64, 5, seed)
    top = 2**bits - 1
    care = top & ~masks.astype(np.int64)
    tests = {
        matcher.TERNARY: (equal, queries.ternary(wanted, care), masks),
        matcher.ANY_TERNARY: (equal, queries.ternary(wanted, care), masks),
        matcher.RANGE: (near, None, radii),
        matcher.ANY_OF_FEW: (near, None, radii),
        matcher.ANY_OF_MANY: (near, None, radii),
    }
    low = np.maximum(wanted.astype(np.int64) - radii, 0)
    width = np.minimum(wanted.astype(np.int64) + radii, top) - low
    merged = queries.merged(low, low + width)
    with pim_emu.DpuSet(1, program) as dpus:
        heap = np.concatenate([keys.view(np.uint8), np.packbits(valid, bitorder="little")])
        dpus.scatter("heap", heap[None])
        for slots in ([3, 4, 66, 67, 200, 383], [0, 1, 2, 64, 128, 129]):
            for work, (test, pairs, seconds) in tests.items():
                if work == matcher.RANGE:
                    pairs = queries.columns(low, width)
                elif pairs is None:
                    num = matcher.FEW if work == matcher.ANY_OF_FEW else matcher.MOST_QUERIES
                    padding = (0, num - len(merged[0]))
                    ends = (np.pad(x, padding, "edge") for x in merged)
                    pairs = queries.columns(*ends)
                    pairs[:, 1] -= pairs[:, 0]
                dpus.broadcast("parameters", np.array([work, 6, len(pairs), 1, 0, 0], np.uint32))
                dpus.broadcast("queries", pairs)
                dpus.launch()
                right = truth(test, keys, valid, wanted, seconds)
                if work not in (matcher.TERNARY, matcher.RANGE):
                    right = right.any(axis=0, keepdims=True)
                counts = dpus.gather("counts", np.uint32, 64)[0, : len(right)]
                np.testing.assert_array_equal(counts, right.sum(-1))
                end = len(heap) + 48 * len(right)
                lines = dpus.gather("heap", np.uint8, end)[0, len(heap) :].view(np.uint32)
                np.testing.assert_array_equal(lines.reshape(len(right), -1), words_of(right))
            new = np.stack([np.array(slots, np.uint32), np.arange(6, dtype=np.uint32)], axis=1)
            new[::2, 0] |= np.uint32(1 << 31)
            dpus.broadcast("pending", np.array([6, 0], np.uint32))
            dpus.broadcast("updates", new)
            dpus.broadcast("parameters", np.array([5, 6, 0, 0, 0, 0], np.uint32))
            dpus.launch()
            keys[slots], valid[slots] = range(6), [True, False] * 3


@pytest.fixture
def schedules():
    """Tasklets in the order of their clocks, then in two random orders."""

    def each():
        for seed, random in ((0, False), (1, True), (2, True)):
            pim_emu.configure(seed=seed, random=random, quiet=True)
            yield seed

    yield each
    pim_emu.configure(seed=0, random=False, quiet=False)


@needs_dpus
@pytest.mark.parametrize(
    ("bits", "tasklets"),
    [(8, 11), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((16, 3), (32, 16)))],
)
def test_no_race_under_any_schedule(bits, tasklets, schedules):
    program = program_of(bits, tasklets, traced=True)
    for seed in schedules():
        launches(program, bits, seed)


@needs_dpus
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("barrier_wait(&everybody);\n  const uint32_t answers", "const uint32_t answers"),
        ("if (owner == me()) update", "if (k % NR_TASKLETS == me()) update"),
    ],
    ids=["barrier", "owner"],
)
def test_what_keeps_races_out(old, new, tmp_path, schedules):
    # So that the test above can fail.
    shutil.copytree(KERNELS / "upmem", tmp_path / "upmem")
    source = tmp_path / "upmem" / "dpu" / "match.c"
    text = source.read_text()
    assert text.count(old) == 1
    source.write_text(text.replace(old, new))
    program = program_of(8, 4, source, traced=True)
    for _ in schedules():
        with pytest.raises(pim_emu.EmulatorFault, match="race"):
            launches(program, 8)


@needs_dpus
@pytest.mark.parametrize(
    ("machine", "tasklets"),
    [("upmem-2560", 24), pytest.param("upmem-v1b", 16, marks=pytest.mark.long)],
)
def test_programs_fit_both_cores(machine, tasklets):
    toolkit, limits = pim.upmem.find_toolkit("emulator"), pim.load_machine(machine)
    flags = ";".join(toolkit.compiler_flags(machine))
    for bits in (8, 16, 32):
        options = {"PROGRAM": "match", "KEY_BITS": bits, "TASKLETS": tasklets, "DPU_FLAGS": flags}
        # That WRAM suffices, stacks included, the linker has checked.
        elf = ElfFile(build.dpu_program(toolkit, options))
        assert sum(elf.words(".emu.iram")) < 0.5 * limits.iram_instructions


@needs_dpus
def test_instructions_of_a_key():
    keys, _, wanted, _, radii = sample(np.uint32, 8_192, 20)
    with match.KeyMemory(keys, 1, count_instructions=True) as memory:
        memory.radius(wanted, radii, lines=False)
        one = memory.report()
        memory.any_radius(wanted, radii)
        union = memory.report().since(one)
    assert one.counted / (8_192 * 20) < 5
    assert union.counted / 8_192 < 28  # less than a third of 20 searches


# --- Modelled time ---


@needs_dpus
def test_modelled_seconds():
    keys, _, wanted, _, radii = sample(np.uint16, 512 * 16 * 64, 20)
    machine, seconds = pim.load_machine(), {}
    for dpus in (64, 512):
        with match.KeyMemory(keys, dpus) as memory:
            before = memory.report()
            memory.any_radius(wanted, radii)
            made = memory.report().since(before)
        assert (made.dpus, made.launches, made.loads, made.scattered_bytes) == (dpus, 1, 0, 0)
        assert made.gathered_bytes == 8 + 8 + memory.share // 8
        seconds[dpus] = pim.modelled.parts_of_searches(machine, made)
        assert set(seconds[dpus]) == {"cpu_to_pim", "pim_kernel", "pim_to_cpu"}
    cycles = {d: s["pim_kernel"] - launch_seconds(machine, d) for d, s in seconds.items()}
    assert 6 < cycles[64] / cycles[512] < 9
    with match.KeyMemory(keys[:64], 1, count_instructions=True) as memory:
        counted = memory.report()
    with pytest.raises(ValueError, match="count_instructions=False"):
        pim.modelled.parts_of_searches(machine, counted)


# --- What is refused ---

KEYS = np.arange(100, dtype=np.uint8)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"keys": KEYS.astype(np.int32)}, "keys must be uint8, .* got int32"),
        ({"keys": [1, 2]}, "keys must be uint8, .* got int64"),
        ({"keys": KEYS[:0]}, r"keys must be .* with N from 1 .* got uint8 \(0,\)"),
        ({"keys": KEYS.reshape(10, 10)}, r"keys must be .* got uint8 \(10, 10\)"),
        ({"dpus": 0}, "dpus must be from 1 to 2560, got 0"),
        ({"dpus": 2_561}, "dpus must be from 1 to 2560, got 2561"),
        ({"tasklets": 25}, "tasklets must be from 1 to 24, got 25"),
        ({"tasklets": 17, "machine": "upmem-v1b"}, "tasklets .* from 1 to 16, got 17"),
        ({"machine": "hbm"}, "machine must be one of upmem-2560, upmem-v1b, got 'hbm'"),
        ({"valid": np.ones(99, bool)}, r"valid must be bool \[100\] or a bool, got bool \(99,\)"),
        ({"valid": np.ones(100, int)}, r"valid must be bool \[100\] or a bool, got int64"),
        ({"sdk": "other"}, "sdk must be one of auto, vendor, emulator, got 'other'"),
        (
            {"keys": np.broadcast_to(np.uint32(0), 20_000_000)},
            "keys: 20,000,000 of 32 bits on 1 DPUs need 85,000,000 B .* has 67,108,864 B; 2 DPUs",
        ),
    ],
)
def test_memories_that_cannot_be(arguments, says, monkeypatch):
    monkeypatch.setattr(matcher, "Matcher", None)  # nothing may be built or launched
    with pytest.raises(ValueError, match=says):
        match.KeyMemory(**{"keys": KEYS, "dpus": 1} | arguments)


def test_without_an_sdk(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("UPMEM_HOME", raising=False)
    with pytest.raises(ValueError, match="install UPMEM's SDK and source its upmem_env"):
        match.KeyMemory(KEYS, 1, sdk="vendor")


@needs_dpus
def test_calls_that_cannot_be():
    with match.KeyMemory(KEYS, 2) as memory:
        before = memory.report()
        for says, call, *arguments in (
            (r"slots\[1\] must be in \[0, 99\], got 100", memory.update, [5, 100], [1, 2]),
            (r"slots\[0\] must be in \[0, 99\], got -1", memory.update, [-1], [1]),
            (r"slots must be integer \[M\], got float64 \(1,\)", memory.update, [0.5], [1]),
            (r"keys must be integer \[2\], got int64 \(1,\)", memory.update, [1, 2], [1]),
            (r"keys\[0\] must be in \[0, 255\], got 256", memory.update, [1], [256]),
            (r"valid must be bool \[1\] or a bool, got int64", memory.update, [1], [1], [1]),
            (r"valid must be bool \[1\] .* \(2,\)", memory.update, [1], [1], [True, True]),
            (r"queries must be integer \[M\], got int64 \(\)", memory.match, 3, 0),
            (r"queries\[0\] must be in \[0, 255\], got 300", memory.match, [300], [0]),
            (r"queries\[0\] .* got 73786976294838206464", memory.match, [2**66], [0]),
            (r"dont_cares\[0\] must be in \[0, 255\], got -1", memory.any_match, [3], [-1]),
            (r"radii must be integer \[2\], got int64 \(1,\)", memory.radius, [3, 4], [1]),
            (r"number of queries must be from 0 to 256, got 257", memory.any_radius,
             np.zeros(257, np.uint8), np.zeros(257, np.uint8)),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=says):
                call(*arguments)
        assert memory.report() == before
        assert memory.any_radius([50], [3]).counts.tolist() == [7, 0]


@needs_dpus
def test_dpus_are_given_back(monkeypatch):
    total = pim.load_machine().total_dpus
    memory = match.KeyMemory(KEYS, total)
    assert memory.match([99], [0]).counts[0].tolist() == [0, 1] + [0] * (total - 2)
    with pytest.raises(pim.upmem.TooFewDpus, match=f"allocating {total} DPUs"):
        match.KeyMemory(KEYS, total)
    memory.close()
    memory.close()
    with pytest.raises(pim.upmem.UpmemError, match=r"freed by close\(\)"):
        memory.match([99], [0])
    memory = match.KeyMemory(KEYS, total)
    del memory
    with match.KeyMemory(KEYS, total) as memory, monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: -1)
        with pytest.raises(pim.upmem.UpmemError, match="forked off"):
            memory.report()


@needs_dpus
def test_after_an_error_the_dpus_are_free():
    with match.KeyMemory(KEYS, 3) as memory:
        too_many = np.zeros((300, 2), np.uint32)  # of a symbol of 256
        with pytest.raises(pim.upmem.UpmemError, match="dpu_broadcast_to of queries"):
            memory._matcher.search(matcher.ANY_TERNARY, too_many, 1, True)
        with pim_emu.DpuSet(pim.load_machine().total_dpus):
            pass
        with pytest.raises(pim.upmem.UpmemError, match="the DPUs were freed after an error"):
            memory.match([1], [0])


@needs_dpus
def test_another_machine_without_queues():
    keys, valid, *asked = sample(np.uint8, 150, 4)
    with match.KeyMemory(
        keys, 2, valid=valid, tasklets=8, machine="upmem-v1b", asynchronous=False
    ) as memory:
        check_searches(memory, 2, keys, valid, *asked)


# --- With an SDK that is not the emulator's ---


def search_with_the_sdk():
    assert pim.upmem.find_toolkit().name == "vendor"
    keys, valid, *asked = sample(np.uint16, 300, 7)
    for asynchronous in (True, False):
        with match.KeyMemory(keys, 3, valid=valid, asynchronous=asynchronous) as memory:
            memory.update([1, 2], [3, 4])
            keys[1:3], valid[1:3] = (3, 4), True
            check_searches(memory, 3, keys, valid, *asked)


@pytest.mark.slow
@needs_dpus
def test_a_folder_that_passes_for_the_sdk(tmp_path):
    home = make_working_sdk(tmp_path / "sdk")
    run(
        search_with_the_sdk, UPMEM_HOME=home, ACCEL_RL_CACHE=tmp_path / "cache",
        ACCEL_RL_KERNEL_SOURCES=KERNELS,
    )  # fmt: skip


# --- The host under sanitizers ---

SANITIZED = """
    cmake_minimum_required(VERSION 3.20)
    project(accel_rl_match_tests LANGUAGES C CXX)
    add_subdirectory("${ROOT}/kernels/upmem/host" host)
    add_executable(match_host main.cpp "${ROOT}/tests/pim/native/failing_dpu.c")
    set_target_properties(match_host PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
    target_include_directories(match_host PRIVATE "${ROOT}/tests/pim/native")
    target_compile_options(match_host PRIVATE -Wall -Wextra -Wno-missing-field-initializers)
    target_link_libraries(match_host PRIVATE accel_rl_upmem ${CMAKE_DL_LIBS})
"""
HOST = """
    #include <cstdio>
    #include <cstdlib>
    #include <numeric>
    #include <vector>
    #include "failing_dpu.h"
    #include "matcher.hpp"
    using namespace accel_rl::upmem;

    void expect(bool condition, int line) {
      if (!condition) std::exit((std::fprintf(stderr, "line %d\\n", line), 1));
    }
    #define EXPECT(condition) expect(condition, __LINE__)

    std::vector<uint64_t> all_works(const char *path, Mode mode) {
      constexpr uint32_t dpus = 5, groups = 3, each = 70;
      Matcher matcher({path, 2, groups}, dpus, "", mode, false);
      std::vector<uint16_t> keys(dpus * groups * 64);
      std::iota(keys.begin(), keys.end(), uint16_t{0});
      matcher.load(keys.data(), std::vector<uint64_t>(dpus * groups, ~uint64_t{0}).data());
      const std::vector<uint32_t> slots = {3, 900, 3, 4}, some = {7, 8, 9, 10};
      const std::vector<uint8_t> valid = {1, 0, 1, 1};
      matcher.update(slots.data(), some.data(), valid.data(), slots.size());
      matcher.update(nullptr, nullptr, nullptr, 0);
      std::vector<uint64_t> found;
      for (const auto work : {ARL_MATCH_RANGE, ARL_MATCH_ANY_OF_FEW}) {
        const bool one = work == ARL_MATCH_ANY_OF_FEW;
        const uint32_t count = one ? ARL_MATCH_FEW : each, answers = one ? 1 : each;
        std::vector<arl_match_query> queries(count, {8, 40});
        std::vector<uint32_t> counts(answers * dpus);
        std::vector<uint64_t> lines(answers * dpus * groups);
        matcher.search(work, queries.data(), count, counts.data(), lines.data());
        // Slots 8 to 48, 3 and 4.
        EXPECT(counts[0] == 43 && lines[0] == 0x1FFFFFFFFFF18 && lines[dpus * groups - 1] == 0);
        found.insert(found.end(), lines.begin(), lines.end());
      }
      EXPECT(matcher.report().launches == 4);
      return found;
    }

    int main(int, char **arguments) {
      for (const Mode mode : {Mode::synchronous, Mode::asynchronous}) {
        const auto right = all_works(arguments[1], mode);
        for (const char *function :
             {"dpu_alloc", "dpu_get_nr_dpus", "dpu_load", "dpu_get_symbol", "dpu_broadcast_to",
              "dpu_prepare_xfer", "dpu_push_xfer", "dpu_launch", "dpu_sync"}) {
          uint32_t call = 1;
          for (bool failed = true; failed; ++call) {
            failing_dpu(function, call, 1, DPU_ERR_TIMEOUT);
            try {
              EXPECT(all_works(arguments[1], mode) == right);
              failed = false;
            } catch (const Error &error) {
              EXPECT(error.kind == Kind::lost && error.status == DPU_ERR_TIMEOUT);
            }
            failing_dpu("", 0, 0, 0);
          }
          EXPECT(call > 2);
        }
      }
      std::puts("matched");
    }
"""


@pytest.mark.slow
@needs_dpus
def test_failures_leave_nothing_behind(tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "CMakeLists.txt").write_text(textwrap.dedent(SANITIZED))
    (sources / "main.cpp").write_text(textwrap.dedent(HOST))
    options = {"ROOT": ROOT, "CMAKE_C_FLAGS": FLAGS, "CMAKE_CXX_FLAGS": FLAGS}
    host = make(tmp_path / "host", sources, **options)
    options = {"ACCEL_RL_PROGRAM": "match", "ACCEL_RL_KEY_BITS": 16}
    program = make(tmp_path / "dpu", KERNELS / "upmem" / "dpu", **options) / "program"
    done = subprocess.run(
        [host / "match_host", program],
        env=environment(FAILING_DPU_LIBRARY=sdk_path() / "lib" / "libdpu.so"),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "matched\n", "")
