"""Test-wide settings, made before jax is first imported."""

import collections
import os
import pathlib
import signal
import sys

# A process started by nohup, or in the background of a script, ignores signals, and its children
# inherit that: tests that send signals, and processes that tests start, need the defaults.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(_number, signal.SIG_DFL)

# Eight devices on one CPU, so that every sharded path runs on every machine.
_FLAG = "--xla_force_host_platform_device_count=8"
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_FLAG}".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")
_CACHE = pathlib.Path(__file__).resolve().parent.parent / ".jax_cache"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")

import hypothesis  # noqa: E402
import pytest  # noqa: E402

# A compile inside an example is slow on a cold cache: no deadline. Fixed seeds keep CI repeatable.
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")


def pytest_terminal_summary(terminalreporter):
    """Count the skipped tests by reason; reasons of optional parts name what brings them."""
    reports = terminalreporter.getreports("skipped")
    reasons = collections.Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in reports
    )
    if reasons:
        terminalreporter.section("skipped tests")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:4d}  {' '.join(reason.split())[:200]}")


@pytest.fixture(scope="module", autouse=True)
def dpus_are_given_back():
    """Training keeps its DPUs, and tests of other modules may want them all."""
    yield
    upmem = sys.modules.get("accel_rl.pim.upmem")
    if upmem is not None:
        upmem.release()


@pytest.fixture(scope="module", autouse=True)
def mappings_do_not_run_out():
    """Each compiled function keeps some; a process may have 65,530, and dies of one more."""
    yield
    mappings = pathlib.Path("/proc/self/maps")
    jax = sys.modules.get("jax")
    if jax is not None and mappings.exists() and len(mappings.read_bytes().splitlines()) > 20_000:
        jax.clear_caches()
