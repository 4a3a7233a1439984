"""A benchmark gives JAX its devices when it runs, so that importing it must compute nothing."""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPT = """
import importlib
import jax
import suites

for number, name in enumerate(suites.BENCHMARKS, 2):
    try:
        importlib.import_module(name)
    except ImportError:  # of an optional package
        continue
    try:
        jax.config.update("jax_num_cpu_devices", number)
    except RuntimeError:
        print(name)
        break
"""


def test_importing_a_benchmark_computes_nothing():
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        command, cwd=FOLDER, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
