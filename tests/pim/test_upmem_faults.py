"""Whatever goes wrong on DPUs is an exception that says what, where, and what to do about it.

After each of them the DPUs are free, and the same process trains again, and right.
"""

import ctypes
import dataclasses
import functools
import gc
import os
import pickle
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
import quick
import upmem_runs
from sdk_present import needs
from transitions import synthetic
from upmem_runs import (
    HALTED,
    MISALIGNED,
    ROOT,
    SEVERAL,
    A,
    S,
    break_programs,
    caught,
    check_free,
    check_right,
    chunks_of,
    outcome,
    run,
    train,
)

import pim_emu
from accel_rl import pim, tabular
from accel_rl.pim.upmem import errors
from accel_rl.pim.upmem.host import loaded_host
from pim_emu.sdk import sdk_path

pytestmark = needs("gcc", "g++")

ALL = 2**32 - 1
MODES = pytest.mark.parametrize(
    "asynchronous",
    quick.only([True], [True, False]),
    ids=["asynchronous", "synchronous"],
)


# --- A DPU stops ---


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    return break_programs(tmp_path_factory.mktemp("sources") / "kernels")


def line_of(source, comment):
    """As a fault names the line of a program that has this comment."""
    lines = source.read_text().splitlines()
    return f"{source.name}:{next(k for k, line in enumerate(lines, 1) if f'// {comment}' in line)}"


def stop_one(sources, asynchronous, by_owner):
    backend = pim.upmem_backend(asynchronous=asynchronous)
    train = upmem_runs.train_by_owner if by_owner else upmem_runs.train
    source = Path(sources) / "upmem" / "dpu" / ("owned.c" if by_owner else "tabular.c")
    check_right(train, backend=backend)
    for seed, name, comment in (
        (MISALIGNED, "misaligned DMA", "misaligned"),
        (HALTED, "stopped by the program", "stops"),
    ):
        error = caught(pim.upmem.DpuFault, train, seed, backend=backend)
        assert (error.dpu, error.status) == (3, 23), error.status
        assert f"80 rows, seed {seed}\n" in error.log, error.log
        for part in (f"DPU 3 is in fault: {name}: ", "tasklet 0", line_of(source, comment)):
            assert part in str(error), error
        check_free()
        check_right(train, seed=7, backend=backend)
    if by_owner:
        return
    wide = chunks_of(dpus=130)
    for _ in range(5):
        error = caught(pim.upmem.DpuFault, train, SEVERAL, wide, backend=backend)
        assert error.dpu == 3, error


@MODES
@pytest.mark.parametrize("by_owner", [False, True])
def test_a_dpu_that_stops(broken, by_owner, asynchronous):
    run(stop_one, str(broken), asynchronous, by_owner, ACCEL_RL_KERNEL_SOURCES=broken)


def stop_under_jit():
    compiled = jax.jit(lambda seed: pim.train(
        chunks_of(), seed=seed, rule=tabular.q_learning(tabular.int32_scaled()),
        schedule=pim.MergeSchedule(2), target_block=16, order="RAN", backend="upmem",
    ).tables)  # fmt: skip
    caught(jax.errors.JaxRuntimeError, compiled, jnp.uint32(HALTED))
    with pim.upmem.typed_errors():
        compiled(jnp.uint32(1)).block_until_ready()

    def typed():
        with pim.upmem.typed_errors():
            return compiled(jnp.uint32(HALTED)).block_until_ready()

    error = caught(pim.upmem.DpuFault, typed)
    assert error.dpu == 3
    assert "80 rows" in error.log
    assert isinstance(error.__cause__, jax.errors.JaxRuntimeError)
    check_free()


@pytest.mark.long  # a process of its own
def test_a_dpu_that_stops_under_a_jit_of_the_users(broken):
    run(stop_under_jit, ACCEL_RL_KERNEL_SOURCES=broken)


def stop_in_one_thread_of_two():
    backend, chunks = pim.upmem_backend(), chunks_of()
    right = train(1, chunks, "jax")

    def fail():
        for _ in range(20):
            assert caught(pim.upmem.DpuFault, train, HALTED, chunks, backend).dpu == 3

    def succeed():
        for _ in range(20):
            assert (train(1, chunks, backend) == right).all()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work) for work in (fail, succeed)]:
            done.result()


@pytest.mark.long  # a process of its own
def test_threads_of_which_one_fails(broken):
    run(stop_in_one_thread_of_two, ACCEL_RL_KERNEL_SOURCES=broken)


# --- A call of the host library fails ---

# Numbers of dpu_error_t.
DRIVER, ALLOCATION, WRAM, IRAM, CORRUPTED, DISABLED = 3, 4, 8, 9, 18, 19
FAULT, INVALID_ELF, TIMEOUT, PROFILE, SYMBOL = 23, 24, 27, 28, 29
QUEUED = 1 << 31 | 2 << 16  # in the error of a call: what was queued before it failed
LOST = dict.fromkeys((DRIVER, CORRUPTED, DISABLED, TIMEOUT), pim.upmem.RankLost)
TOO_LARGE = {WRAM: pim.upmem.TooLarge, IRAM: pim.upmem.TooLarge}
OTHER = dict.fromkeys((INVALID_ELF, PROFILE, SYMBOL), pim.upmem.UpmemError)
STOPPED = {FAULT: pim.upmem.DpuFault, QUEUED | FAULT: pim.upmem.DpuFault}
# What an error's message begins with, and what calls may return.
FAILURES = {
    "dpu_alloc": ("allocating 5 DPUs: ", LOST | {ALLOCATION: pim.upmem.TooFewDpus} | OTHER),
    "dpu_get_nr_dpus": ("allocating 5 DPUs: ", LOST),
    "dpu_load": ("loading ", LOST | TOO_LARGE | OTHER),
    "dpu_get_symbol": ("dpu_get_symbol: ", LOST | OTHER),
    "dpu_broadcast_to": ("dpu_broadcast_to of ", LOST | OTHER),
    "dpu_prepare_xfer": ("dpu_prepare_xfer of ", LOST),
    "dpu_push_xfer": ("dpu_push_xfer of ", LOST | {QUEUED | DRIVER: pim.upmem.RankLost} | STOPPED),
    "dpu_launch": ("dpu_launch: ", LOST | STOPPED),
    "dpu_sync": ("dpu_sync: ", LOST | STOPPED),
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """Variables of processes in which calls of libdpu can be made to fail."""
    sdk, library = sdk_path(), tmp_path_factory.mktemp("native") / "failing_dpu.so"
    words = ["gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library]
    source = ROOT / "tests" / "pim" / "native" / "failing_dpu.c"
    subprocess.run([*words, f"-I{sdk}/include/dpu", source, "-ldl"], check=True)
    return {"LD_PRELOAD": library, "FAILING_DPU_LIBRARY": sdk / "lib" / "libdpu.so"}


class Failures:
    """Trainings of this process in which a call fails."""

    def __init__(self, asynchronous):
        self._library = ctypes.CDLL(os.environ["LD_PRELOAD"])
        self._run = functools.partial(
            train, 1, chunks_of(), pim.upmem_backend(asynchronous=asynchronous)
        )
        self._right = train(1, backend="jax")

    def check(self, function, call, count, code):
        """Let `count` calls fail, from `call` on; False where there are fewer."""
        begins, kinds = FAILURES[function]
        case = f"call {call} of {function}, {count} times {code}"
        self._fail(function, call, count, code)
        result = outcome(self._run)
        failed = isinstance(result, Exception)
        if failed:
            assert type(result) is kinds[code], f"{case}: {result!r}"
            assert (result.status, result.dpu, result.log) == (code & 0xFFFF, None, ""), case
            if type(result) is pim.upmem.DpuFault:
                begins = "a DPU is in fault"
            assert str(result).startswith(begins), f"{case}: {result}"
            assert loaded_host().held() == 0
            self._fail("", 0, 0, 0)
            result = self._run()
        assert (result == self._right).all(), case
        pim.upmem.release()
        return failed

    def _fail(self, function, *numbers):
        self._library.failing_dpu(function.encode(), *map(ctypes.c_uint32, numbers))


def fail_each_call(asynchronous):
    failures = Failures(asynchronous)
    with pim_emu.DpuSet(2560 - 64):  # one rank is left: whoever does not give it back is missed
        for function, (_, kinds) in FAILURES.items():
            for code in kinds:
                assert failures.check(function, 1, 1, code)
            for count in (1, ALL):  # one call; the following ones, too
                call = 1
                while failures.check(function, call, count, DRIVER):
                    call += 1
                print(function, call - 1)
    check_free()


@MODES
def test_a_rank_that_is_lost_at_any_call(failing, asynchronous):
    printed = run(fail_each_call, asynchronous, **failing)
    failed = dict(line.split() for line in printed.splitlines())
    assert failed.keys() == FAILURES.keys()
    assert (failed["dpu_launch"], failed["dpu_push_xfer"]) == ("2", "6")


# --- Too few DPUs, too large a program ---


@pytest.fixture
def released():
    """No DPU is held, before and after."""
    pim_emu.configure(quiet=True)
    pim.upmem.release()
    yield
    pim.upmem.release()
    pim_emu.configure(quiet=False)


@pytest.mark.usefixtures("released")
def test_more_chunks_than_the_machine_has_dpus():
    many = chunks_of(2561, 2561)
    error = caught(pim.upmem.TooFewDpus, train, chunks=many, machine=None)
    assert "allocating 2561 DPUs" in str(error)
    assert error.status == ALLOCATION
    with pytest.raises(ValueError, match="2561 DPUs asked for, upmem-2560 has 2560"):
        train(chunks=many)
    check_free()
    check_right()


@pytest.mark.usefixtures("released")
def test_dpus_that_somebody_else_of_the_process_has():
    with pim_emu.DpuSet(2560 - 64):
        check_right()  # the last rank is left
        pim.upmem.release()
        with pim_emu.DpuSet(1):
            assert "5 DPUs" in str(caught(pim.upmem.TooFewDpus, train))
            assert loaded_host().held() == 0
    check_free()
    check_right()


@pytest.mark.usefixtures("released")
@pytest.mark.parametrize(
    ("states", "setting"), [(5000, {}), (5, {"target_block": 65_535})], ids=["tables", "block"]
)
def test_a_program_that_exceeds_the_wram(states, setting):
    chunks = pim.partition(synthetic(states, 4, 50), 2, states, 4)
    error = caught(pim.upmem.TooLarge, train, chunks=chunks, machine=None, **setting)
    assert re.search(
        r"WRAM overflow: globals [\d,]+ B \+ stacks [\d,]+ B exceed 65,536 B", str(error)
    )
    assert isinstance(error, ValueError)
    check_free()
    check_right()


@pytest.mark.usefixtures("released")
def test_rows_that_exceed_the_mram():
    """Padding counts: DPUs get chunks of one length."""
    chunks, rows = chunks_of(dpus=1), (64 << 20) // 8
    long = jax.tree.map(lambda x: jnp.pad(x, [(0, 0), (0, rows - x.shape[1])]), chunks.transitions)
    long = dataclasses.replace(chunks, transitions=long)
    error = caught(pim.upmem.TooLarge, train, chunks=long, machine=None, order="SEQ")
    assert "a chunk of 8388608 rows needs 67108864 B of MRAM, 67108768 B are left" in str(error)
    check_free()
    check_right()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"tasklets": 25, "machine": None}, "tasklets must be from 1 to 24, got 25"),
        ({"tasklets": 0, "machine": None}, "tasklets must be at least 1, got 0"),
        ({"tasklets": 25}, "25 tasklets asked for, a DPU of upmem-2560 has 24"),
        ({"tasklets": 17, "machine": "upmem-v1b"}, "17 tasklets .*, a DPU of upmem-v1b has 16"),
        (
            {"target_block": 65_536, "machine": None},
            "backend 'upmem': DPUs take target_block up to 65535, got 65536; use 'jax' or 'auto'",
        ),
    ],
)
def test_settings_that_no_dpu_has(setting, message):
    with pytest.raises(ValueError, match=message):
        train(**setting)


def test_a_backend_for_another_machine_has_its_limits():
    with pytest.raises(ValueError, match="tasklets must be from 1 to 16, got 17"):
        pim.upmem_backend(17, "upmem-v1b")


# --- Rows that are traced ---


def wrong(**columns):
    """Chunks with other values in row 3 of chunk 1."""
    chunks = chunks_of()
    values = {
        name: getattr(chunks.transitions, name).at[1, 3].set(value)
        for name, value in columns.items()
    }
    changed = dataclasses.replace(chunks.transitions, **values)
    return dataclasses.replace(chunks, transitions=changed)


@pytest.mark.usefixtures("released")
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"state": S}, rf"row 3 of chunk 1: s \* A \+ a must be in \[0, {S * A}\), got"),
        ({"state": -1}, "s \\* A \\+ a must be in .* got -"),
        ({"next_state": S}, rf"row 3 of chunk 1: s' \* A must be in \[0, 13\), got {S * A}"),
        ({"next_action": A}, "row 3 of chunk 1: next_action must be in \\[0, 3\\), got 3"),
    ],
)
def test_rows_out_of_range(columns, message):
    compiled = jax.jit(lambda chunks: pim.train(
        chunks, rule=tabular.sarsa(), schedule=pim.MergeSchedule(2), target_block=16,
        backend="upmem",
    ).tables)  # fmt: skip

    def typed():
        with pim.upmem.typed_errors():
            jax.block_until_ready(compiled(wrong(**columns)))

    for work in (typed, functools.partial(train, chunks=wrong(**columns))):
        error = caught(pim.upmem.InvalidRows, work)
        assert re.search(message, str(error)), error
        assert (error.status, error.dpu, error.log) == (0, None, "")
        assert isinstance(error, ValueError)
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match=r"upmem \[error \d+\]"):
        jax.block_until_ready(compiled(wrong(**columns)))
    check_free()
    check_right()


@pytest.mark.usefixtures("released")
def test_lengths_out_of_range():
    for length in (81, -1):
        chunks = chunks_of()
        chunks = dataclasses.replace(chunks, lengths=chunks.lengths.at[2].set(length))
        error = caught(pim.upmem.InvalidRows, train, chunks=chunks)
        assert f"lengths[2] must be in [0, 80], got {length}" in str(error)


def test_errors_that_are_none_of_the_dpus_stay_what_they_are():
    for error in (ValueError("mine"), KeyError("mine"), ValueError("upmem [error 999999999]: old")):
        with pytest.raises(type(error)) as found, pim.upmem.typed_errors():
            raise error
        assert found.value is error


def test_errors_survive_pickling():
    for kind in {*errors.BY_KIND.values(), pim.upmem.SdkMissing, pim.upmem.BuildFailed}:
        error = kind("what happened", status=23, dpu=3, log="printed")
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is kind
        assert (str(copy), copy.status, copy.dpu, copy.log) == ("what happened", 23, 3, "printed")


# --- Nothing leaks ---


def held():
    """Open files, threads, and MiB of memory of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return (
        len(os.listdir("/proc/self/fd")),
        len(os.listdir("/proc/self/task")),
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
    )


def stop_often(times, alternating):
    backend, chunks = pim.upmem_backend(), chunks_of()
    right = train(1, chunks, "jax")
    for k in range(times):
        caught(pim.upmem.DpuFault, train, HALTED, chunks, backend)
        if alternating:
            assert (train(1, chunks, backend) == right).all()
        if k == times // 5:
            before = held()
    after = held()
    more = [b - a for a, b in zip(before, after, strict=True)]
    assert max(more) < 4, f"{more} more files, threads and MiB"
    pim.upmem.release()
    check_free()
    check_right()


@pytest.mark.parametrize(
    ("times", "alternating"),
    [
        pytest.param(100, False, marks=pytest.mark.slow),
        pytest.param(30, True, marks=pytest.mark.long),
        pytest.param(1000, False, marks=pytest.mark.slow),
        pytest.param(200, True, marks=pytest.mark.slow),
    ],
)
def test_nothing_leaks_where_dpus_stop(broken, times, alternating):
    run(stop_often, times, alternating, ACCEL_RL_KERNEL_SOURCES=broken)
