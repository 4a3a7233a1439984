"""Checks that DPU programs can be built and run on this host: `pim-emu doctor`."""

import ctypes
import importlib.metadata
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pim_emu
from pim_emu import host_library as lib
from pim_emu import low_memory
from pim_emu.program import build
from pim_emu.sdk import sdk_path, why_absent
from pim_emu.toolchain.layout import compiler

_PROGRAM = """#include <defs.h>
#include <mutex.h>
#include <stdio.h>
MUTEX_INIT(turn);
__host int arrived;
int main(void) {
    mutex_lock(turn);
    if (++arrived == NR_TASKLETS) printf("%d tasklets", arrived);
    mutex_unlock(turn);
    return 0;
}
"""
_DPUS, _TASKLETS = 2, 3


def diagnose() -> int:
    """Print a line for each check; return 0 if all hold, else 1."""
    checks: tuple[tuple[str, Callable[[], str]], ...] = (
        ("pim_emu", _installation),
        ("host", _host),
        ("addresses", _addresses),
        ("gcc", _gcc),
        ("binutils", _binutils),
        ("SDK", lambda: str(sdk_path())),
        ("program", _program),
    )
    status = 0
    for name, check in checks:
        try:
            result, mark = check(), "ok"
        except (RuntimeError, OSError) as error:
            result, mark = " ".join(str(error).split()), "FAILED"
            status = 1
        print(f"{mark:6}  {name:9}  {result}", flush=True)
    return status


def _installation() -> str:
    """Describe the installed package; fail if two distributions have its command."""
    # By the command: an editable installation does not list the package's files. By a set: one
    # installation is found twice where two search paths lead to it.
    owners = sorted(
        {
            f"{each.name} {each.version}"
            for each in importlib.metadata.distributions()
            if each.entry_points.select(group="console_scripts", name="pim-emu")
        }
    )
    if len(owners) > 1:
        raise RuntimeError(
            f"{' and '.join(owners)} both own its files: uninstall all, then install one"
        )
    python = platform.python_version()
    return f"{pim_emu.__version__} in {Path(pim_emu.__file__).parent}, Python {python}"


def _host() -> str:
    found = f"{platform.machine()} {platform.system()}"
    if found != "x86_64 Linux":
        raise RuntimeError(f"DPU programs run on x86-64 Linux only; this host is {found}")
    return f"{found} {platform.release()}"


def _gcc() -> str:
    if (reason := why_absent()) is not None:
        raise RuntimeError(reason)
    return _output(compiler(), "-dumpfullversion")


def _binutils() -> str:
    """Return the linker's version; fail if assembler, archiver or linker is missing."""
    answers = [
        _output(_output(compiler(), f"-print-prog-name={tool}"), "--version")
        for tool in ("as", "ar", "ld")
    ]
    return answers[-1].splitlines()[0]


def _output(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} failed: {done.stderr}")
    return done.stdout.strip()


def _addresses() -> str:
    kept = low_memory.kept_bytes()
    if not kept:
        raise RuntimeError(
            f"no gap for DPU programs below 2 GiB in {sys.executable}; raise a limit on addresses "
            "(ulimit -v), or use another build of Python"
        )
    return f"{kept >> 20} MiB below 2 GiB for DPU programs"


def _program() -> str:
    """Build a program, run it on two DPUs, and compare its output."""
    program = build(_PROGRAM, tasklets=_TASKLETS)
    handle = lib.SetHandle()
    lib.call("dpu_alloc", ctypes.c_uint32(_DPUS), None, ctypes.byref(handle))
    try:
        lib.call("dpu_load", handle, str(program.path).encode(), None)
        lib.call("dpu_launch", handle, lib.SYNCHRONOUS)
        logs = [lib.log(dpu) for dpu in lib.member_handles(handle)]
    finally:
        lib.call("dpu_free", handle)
    if logs != [f"{_TASKLETS} tasklets"] * _DPUS:
        raise RuntimeError(f"a program of {_TASKLETS} tasklets printed {logs}")
    return f"built, and run on {_DPUS} DPUs with {_TASKLETS} tasklets each"
