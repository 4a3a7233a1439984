"""What a program that embeds the emulator may rely on: other DPUs, its signals, many workers."""

import ctypes
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sdk_present import needs_sdk

import pim_emu
from pim_emu import host_library as lib
from pim_emu.sdk import sdk_path

pytestmark = [needs_sdk, pytest.mark.usefixtures("settings")]

PATTERN = bytes.fromhex("deadbeeffeedface")  # of memory that nobody has written
SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 40, 64)


# --- Other DPUs ---

WRAPPED = """
#include <mram.h>
#include <defs.h>
#include <stdint.h>
__host uint32_t zero, wrong, size;
{arrays}
int main(void) {{
    const uint32_t index = zero - wrong;
    switch (size) {{ {cases} }}
}}
"""


def test_a_wrapped_index_reaches_no_other_mram():
    """`array[i - 1u]` lies 4 GiB times the size of an element too far, with 64-bit pointers."""
    arrays = "\n".join(
        f"struct s{size} {{ uint8_t byte[{size}]; }};\n__mram_noinit struct s{size} array{size}[8];"
        for size in SIZES
    )
    cases = " ".join(f"case {size}: array{size}[index].byte[0] = 1; break;" for size in SIZES)
    program = pim_emu.build(WRAPPED.format(arrays=arrays, cases=cases))
    for size in SIZES:
        with pim_emu.DpuSet(64, program) as dpus:
            dpus.broadcast("size", np.uint32(size))
            dpus.scatter("wrong", np.array([1] + [0] * 63, np.uint32))
            with pytest.raises(
                pim_emu.EmulatorFault, match=r"MRAM out of bounds: .*that wrapped\?"
            ):
                dpus.launch()
            first = dpus.gather(f"array{size}", np.uint8, 8 * size)[1:]
            assert (first[:, 0] == 1).all()
            rest = dpus.gather("__sys_used_mram_end", np.uint8, 65_536, offset=1 << 20)[1:]
            assert rest.tobytes() == PATTERN * (63 * 8192)


BEYOND = """
#include <defs.h>
#include <stdint.h>
__host uint32_t mine, found, at;
extern uint8_t __emu_wram_start[];
int main(void) {
    uint32_t *place = (uint32_t *)&__emu_wram_start[at];
    found = *place;
    *place = mine;
}
"""


@pytest.mark.parametrize("at", [4092, 4096, 20_000, 65_532])
def test_wram_beyond_the_heap_is_a_dpus_own(at: int):
    pattern = int.from_bytes(PATTERN[at % 8 :][:4], "little")
    program = pim_emu.build(BEYOND)
    with pim_emu.DpuSet(5, program) as dpus:
        dpus.broadcast("at", np.uint32(at))
        before = [pattern] * 5
        for launch in range(3):
            mine = np.arange(5, dtype=np.uint32) + 10 * launch
            dpus.scatter("mine", mine)
            dpus.launch()
            assert dpus.gather("found", np.uint32).tolist() == before
            before = mine.tolist()


# --- Signals ---

FAULTS = """
#include <defs.h>
#include <stdint.h>
__host uint32_t kind, seconds, zero;
int main(void) {
    if (kind == 0) *(volatile uint32_t *)(uintptr_t)zero = 1;
    if (kind == 1) zero = 100 / zero;
    for (volatile uint64_t i = 0; i < 250000000ull * seconds; ++i) continue;
}
"""

PRELUDE = """
import faulthandler, os, signal, sys, threading, time
import numpy as np
import pim_emu

pim_emu.configure(quiet=True, timeout_seconds=30)

def launch(kind, dpus=1, seconds=0):
    values = {"kind": np.uint32(kind), "seconds": np.uint32(seconds)}
    try:
        pim_emu.run(sys.argv[1], dpus=dpus, broadcast=values)
    except pim_emu.EmulatorFault as fault:
        return fault.fault
    return None

def check():
    for dpus in (1, 4):
        assert launch(0, dpus) == "WRAM out of bounds", dpus
        assert launch(1, dpus) == "division error", dpus
        assert launch(2, dpus) is None, dpus
"""


@pytest.fixture(scope="module")
def faults() -> pim_emu.DpuProgram:
    return pim_emu.build(FAULTS)


def script(
    program: pim_emu.DpuProgram, text: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(text), str(program.path)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_faults_are_reported_after_others_took_the_signals(faults: pim_emu.DpuProgram):
    done = script(
        faults,
        """
        check()
        faulthandler.enable()
        check()
        faulthandler.disable()
        check()
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("first", ["", "check()"], ids=["before", "between"])
def test_a_fault_of_the_host_goes_where_it_went_before(faults: pim_emu.DpuProgram, first: str):
    """After a launch, faulthandler keeps the emulator's handler, which keeps faulthandler's."""
    done = script(faults, f"{first}\nfaulthandler.enable()\ncheck()\nfaulthandler._sigsegv()\n")
    assert done.returncode == -11
    assert "Fatal Python error: Segmentation fault" in done.stderr


def test_blocked_signals_are_the_callers_own(faults: pim_emu.DpuProgram):
    done = script(
        faults,
        """
        blocked = {signal.SIGSEGV, signal.SIGFPE, signal.SIGUSR1}
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        check()
        assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == blocked
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_watchdogs_signal_from_elsewhere_stops_nothing(faults: pim_emu.DpuProgram):
    done = script(
        faults,
        """
        seen = []
        signal.signal(signal.SIGURG, lambda *_: seen.append(1))
        main = threading.main_thread().ident
        def poke():
            for _ in range(20):
                time.sleep(0.01)
                signal.pthread_kill(main, signal.SIGURG)
        poker = threading.Thread(target=poke)
        poker.start()
        assert launch(2, seconds=1) is None
        poker.join()
        assert seen
        pim_emu.configure(timeout_seconds=0.5)
        assert launch(2, seconds=100) == "no progress"
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")


# --- Workers ---


@pytest.mark.parametrize("workers", [1, 3, 200, 256])
def test_as_many_workers_as_are_asked_for(faults: pim_emu.DpuProgram, workers: int):
    done = script(
        faults,
        """
        for dpus in (1, 64, 300):
            assert launch(2, dpus) is None
            assert launch(0, dpus) == "WRAM out of bounds"
        """,
        PIM_EMU_WORKERS=str(workers),
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("workers", [2, 120])
def test_children_launch_too(faults: pim_emu.DpuProgram, workers: int):
    done = script(
        faults,
        """
        assert launch(2, 5) is None
        for generation in range(4):
            child = os.fork()
            if child:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                break
            check()
        """,
        PIM_EMU_WORKERS=str(workers),
    )
    assert (done.returncode, done.stderr) == (0, "")


# --- Hints ---


def test_a_push_without_buffers_moves_nothing_and_says_so(
    faults: pim_emu.DpuProgram, capfd: pytest.CaptureFixture[str]
):
    """The vendor's library is silent; forgetting dpu_prepare_xfer is easy."""
    pim_emu.configure(quiet=False)
    with pim_emu.DpuSet(2, faults) as dpus:
        arguments = (dpus._handle, lib.TO_DPU, b"kind", 0, ctypes.c_size_t(4), 0)
        lib.call("dpu_push_xfer", *arguments)
        assert 'symbol "kind": nothing moves' in capfd.readouterr().err
        dpus.scatter("kind", np.array([2, 2], np.uint32))
        assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("setting", "doubtful"),
    [({}, False), ({"random": True}, True), ({"checks": False}, False)],
    ids=["time", "random", "unchecked"],
)
def test_the_report_says_where_cycles_mean_nothing(
    faults: pim_emu.DpuProgram,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    setting: dict[str, bool],
    doubtful: bool,
):
    monkeypatch.setenv("PIM_EMU_REPORT", "1")
    pim_emu.configure(**setting)
    pim_emu.run(faults, broadcast={"kind": np.uint32(2)})
    printed = capfd.readouterr().err
    assert ("(modelled, of runs whose cycles mean nothing)" in printed) == doubtful
    assert "cycles of the slowest DPUs" in printed


# --- Handlers of a host program in C ---


@pytest.fixture(scope="module")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("handlers") / "handlers"
    source, sdk = Path(__file__).parent / "native" / "handlers.c", sdk_path()
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{sdk}/include/dpu", str(source)]
    command += ["-o", str(program), f"-L{sdk}/lib", f"-Wl,-rpath,{sdk}/lib", "-ldpu"]
    subprocess.run(command, check=True)
    return program


@pytest.mark.parametrize(
    ("how", "status"), [("jumps", 0), ("ignores", -11), ("once", -11), ("chain", 7)]
)
def test_a_hosts_own_faults_go_as_they_went_before(handlers: Path, how: str, status: int):
    """As without the emulator: a handler left by a jump, one that runs once, a chain of two."""
    environment = {**os.environ, "PIM_EMU_QUIET": "1"}
    empty = pim_emu.build("int main(void) {\n    return 0;\n}\n")
    command = [str(handlers), str(empty.path), how]
    done = subprocess.run(command, env=environment, timeout=60, capture_output=True)
    assert done.returncode == status, done
