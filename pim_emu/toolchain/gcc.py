"""Calls of gcc for sources and options written for clang."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

from pim_emu.toolchain.errors import DriverError
from pim_emu.toolchain.layout import compiler

# Code that the engine can move, stop and count. Programs read words through other types; clang lets
# that pass more often than gcc. What a user's option would undo comes last.
CODE = (
    *("-fno-pic", "-fno-pie", "-mcmodel=small", "-ffixed-r15", "-fcf-protection=none"),
    *("-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"),
    *("-ffp-contract=off", "-mlong-double-64", "-ffunction-sections", "-fno-common"),
    *("-fno-ident", "-fno-strict-aliasing"),
)
# The DPU is neither the host's processor nor under its system.
_UNDEFINED = (
    *("linux", "__linux", "__linux__", "__gnu_linux__", "unix", "__unix", "__unix__"),
    *("__x86_64", "__x86_64__", "__amd64", "__amd64__", "__k8", "__k8__"),
)
# Pointers to MRAM where string.h declares pointers to WRAM; with this macro it takes both.
_TO_MRAM = re.compile(r"'mem(?:cpy|move|set|cmp)' from pointer to non-enclosed address space")
_ANY_MEMORY = "-D__EMU_ANY_MEMORY"
_MRAM_QUALIFIER = re.compile(r"(?:__attribute__\(\(\)\) )?__seg_gs")
_UNKNOWN = re.compile(
    r"(?:unrecognized command-line option|unknown option|unrecognized argument in option)"
    r" '([^']+)'|error: '(-W[^']+)': no option"
)


def include_flags(device_include: Path) -> list[str]:
    """Return the include flags: headers of DPU programs and gcc's own headers, no others."""
    return ["-nostdinc", "-isystem", str(device_include), "-isystem", _own_include()]


@functools.cache
def _own_include() -> str:
    question = [compiler(), "-print-file-name=include"]
    try:
        return subprocess.run(question, capture_output=True, text=True, check=True).stdout.strip()
    except OSError as error:
        raise DriverError(f"{compiler()}: cannot be run: {error.strerror}") from error


def macro_flags(core: str | None = None, *, strict: bool = False) -> list[str]:
    """Return flags that define the macros of the vendor's compiler for a core, and no host's."""
    flags = [f"-U{name}" for name in _UNDEFINED] + ["-D__DPU__=1", "-D__DPU=1", "-D__dpu__=1"]
    flags.append(f"-D__dpu_{core or 'v1A'}__=1")
    return flags if strict else [*flags, "-DDPU=1"]


def run(words: list[str], *, verbose: bool) -> None:
    """Run gcc; leave out options that only clang knows, and let memcpy and its kin take MRAM.

    Raises:
      DriverError: if gcc fails; the reason is then on stderr.
    """
    colour = ["-fdiagnostics-color=always"] if sys.stderr.isatty() else []
    while True:
        if verbose:
            print(" ".join([compiler(), *words]), file=sys.stderr)
        try:
            done = subprocess.run(
                [compiler(), *colour, *words],
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=_environment(),
            )
        except OSError as error:
            raise DriverError(f"{compiler()}: cannot be run: {error.strerror}") from error
        unknown = {name for match in _UNKNOWN.findall(done.stderr) for name in match if name}
        kept = [word for word in words if word not in unknown]
        if _TO_MRAM.search(done.stderr) and _ANY_MEMORY not in words:
            kept = [_ANY_MEMORY, *kept]
        if done.returncode == 0 or kept == words:
            sys.stderr.write(_MRAM_QUALIFIER.sub("__mram_ptr", done.stderr))
            break
        words = kept
    if done.returncode != 0:
        raise DriverError(status=done.returncode if done.returncode > 0 else 1)


def _environment() -> dict[str, str]:
    """Return the environment with untranslated messages, for `_UNKNOWN`, and no include paths."""
    ignored = {"CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "LANGUAGE"}
    kept = {name: value for name, value in os.environ.items() if name not in ignored}
    return {**kept, "LC_ALL": "C"}
