"""The emulator runs programs wherever the host's own memory lies below 2 GiB.

Each test is a process: what has taken low addresses keeps them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sdk_present import needs_sdk

import pim_emu

pytestmark = needs_sdk
SOURCE = (
    "#include <defs.h>\n__host int x = 3;\nint table[2] = {4, 5};\nint main() { x = table[me()]; }"
)
# Reserves every gap below 2 GiB, but as much as `spared` at the upper end of one.
FILL = """
import ctypes, sys
LOW, PAGE = 2 << 30, 4096
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
def reserve(start, end):
    got = libc.mmap(start, end - start, 0, 0x104022, -1, 0)  # fixed, but never over another
    assert got == start, hex(start)
def fill(lowest, spared=0):
    gap = lowest
    for line in open("/proc/self/maps"):
        start, end = (int(each, 16) for each in line.split()[0].split("-"))
        stop = min(start, LOW)
        if stop - gap > spared:
            reserve(gap, stop - spared)
        gap = max(gap, end)
        if gap >= LOW:
            break
    print([line for line in open("/proc/self/maps") if int(line.split("-")[0], 16) < LOW])
"""
RUN = """
import pim_emu
dpus = pim_emu.run(sys.argv[1], dpus=5, gather={"x": "i4"})
print("ran", dpus["x"].tolist())
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    source = tmp_path_factory.mktemp("program") / "program.c"
    source.write_text(SOURCE)
    return pim_emu.build(source)


def run(text, program):
    root = str(Path(pim_emu.__file__).resolve().parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([root, *filter(None, sys.path)])}
    words = [sys.executable, "-c", FILL + text + RUN, str(program.path)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    "filled",
    [
        # From 1 GiB on, where the kernel places what asks for low memory.
        "fill(1 << 30)",
        # All of it after the import, but what that has kept.
        "import pim_emu; fill(1 << 28); fill(1 << 16)",
        # All but pieces too small for a whole reservation.
        "fill(1 << 28, spared=16 << 20)",
        # All but below MRAM's addresses.
        "fill(1 << 28)",
    ],
    ids=["second GiB", "after the import", "but a piece", "but the lowest"],
)
def test_a_program_runs_in_what_is_left(program, filled):
    done = run(filled, program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ran [4, 4, 4, 4, 4]" in done.stdout


def test_where_nothing_is_left_the_error_says_what_to_do(program):
    done = run("fill(1 << 16)", program)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "below 2 GiB" in last
    assert "in Python, import pim_emu first" in last
