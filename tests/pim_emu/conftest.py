"""The SDK and the environment that third-party programs find it in."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import pim_emu
from pim_emu.sdk import sdk_path


@pytest.fixture
def settings() -> Iterator[None]:
    """Set a quiet emulator, and the defaults again afterwards."""
    pim_emu.configure(quiet=True, timeout_seconds=10)
    yield
    pim_emu.configure(
        seed=0, random=False, checks=True, dma="hardware", timeout_seconds=60, quiet=False
    )


@pytest.fixture(scope="session")
def sdk_folder() -> Path:
    return sdk_path()


@pytest.fixture(scope="session")
def sdk_environment(sdk_folder: Path) -> dict[str, str]:
    """The environment with the SDK first in PATH, and none of the user's settings."""
    rest = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIM_EMU_", "UPMEM_", "MAKE", "MFLAGS")) and name != "LD_PRELOAD"
    }
    return rest | {"PATH": f"{sdk_folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
