"""A mark for tests that build DPU programs and run them."""

import platform
import shutil

import pytest


def why_absent() -> str | None:
    """Why this host cannot build DPU programs; None where it can.

    Only what the host lacks counts: an SDK that cannot be made on a host that has it all is a
    failure, not a reason to skip.
    """
    host = f"{platform.machine()} {platform.system()}"
    if host != "x86_64 Linux":
        return f"DPU programs run on x86-64 Linux only, this host is {host}"
    if shutil.which("gcc") is None:
        return "DPU programs are built with gcc, which is not in PATH"
    return None


needs_sdk = pytest.mark.skipif(why_absent() is not None, reason=f"NO SDK: {why_absent()}")
