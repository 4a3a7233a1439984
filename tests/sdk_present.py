"""Marks for tests that build DPU programs and run them."""

import functools
import platform
import shutil
import subprocess

import pytest


@functools.cache
def has_headers() -> bool:
    """Whether gcc finds the C library's headers, a package of their own."""
    words = ["gcc", "-E", "-include", "stdlib.h", "-x", "c", "-o", "/dev/null", "/dev/null"]
    return subprocess.run(words, capture_output=True).returncode == 0


def why_absent(*commands: str) -> str | None:
    """Why this host cannot build DPU programs with these commands; None where it can.

    Only what the host lacks counts: an SDK that cannot be made on a host that has it all is a
    failure, not a reason to skip.
    """
    host = f"{platform.machine()} {platform.system()}"
    if host != "x86_64 Linux":
        return f"DPU programs run on x86-64 Linux only, this host is {host}"
    absent = [command for command in commands if shutil.which(command) is None]
    if absent:
        return f"not in PATH: {', '.join(absent)}"
    return None if has_headers() else "no headers of the C library"


def needs(*commands: str) -> pytest.MarkDecorator:
    """A mark for tests that build DPU programs with these commands."""
    why = why_absent(*commands)
    absent = f"DPU programs: absent: apt-get install libc6-dev {' '.join(commands)}"
    return pytest.mark.skipif(why is not None, reason=absent)


needs_sdk = needs("gcc")
