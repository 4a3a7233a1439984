"""The SDK and the environment that third-party programs find it in."""

import os
from pathlib import Path

import pytest

from pim_emu.sdk import sdk_path


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
