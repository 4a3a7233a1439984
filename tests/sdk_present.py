"""Marks for tests that build DPU programs and run them."""

import platform
import shutil

import pytest


def why_absent(*commands: str) -> str | None:
    """Why this host cannot build DPU programs with these commands; None where it can.

    Only what the host lacks counts: an SDK that cannot be made on a host that has it all is a
    failure, not a reason to skip.
    """
    host = f"{platform.machine()} {platform.system()}"
    if host != "x86_64 Linux":
        return f"DPU programs run on x86-64 Linux only, this host is {host}"
    absent = [command for command in commands if shutil.which(command) is None]
    return f"not in PATH: {', '.join(absent)}" if absent else None


def needs(*commands: str) -> pytest.MarkDecorator:
    """A mark for tests that build DPU programs with these commands."""
    why = why_absent(*commands)
    absent = f"DPU programs: absent: apt-get install {' '.join(commands)} ({why})"
    return pytest.mark.skipif(why is not None, reason=absent)


needs_sdk = needs("gcc")
