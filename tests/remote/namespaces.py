"""Networks of the kernel's own for tests, which take root."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from optional import require

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from networks import SECRET, Network

__all__ = ["SECRET", "network"]


@contextlib.contextmanager
def network():
    """An empty network; skips where it cannot be made."""
    require("network namespaces")
    made = Network()
    try:
        try:
            made.add("first")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"NOT TESTED in network namespaces: {error.stderr}")
        yield made
    finally:
        made.close()
