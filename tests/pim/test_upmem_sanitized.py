"""The host of DPUs under sanitizers: failures leave nothing behind, and nothing dangling."""

import subprocess

import pytest
from sdk_present import needs
from upmem_runs import HALTED, ROOT, A, S, break_programs, environment

from accel_rl.pim.upmem import build
from pim_emu.sdk import sdk_path

FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1"
OPTIONS = {
    "ACCEL_RL_NUMERICS": "int32_scaled",
    "ACCEL_RL_STATES": S,
    "ACCEL_RL_ACTIONS": A,
    "ACCEL_RL_BLOCK": 16,
}


def make(folder, source, **options):
    """Build a folder of sources with the emulator's SDK."""
    command, generator = build._cmake()
    named = {"ACCEL_RL_UPMEM_SDK": sdk_path(), "CMAKE_BUILD_TYPE": "None", **options}
    defined = [f"-D{name}={value}" for name, value in named.items()]
    for words in (["-S", source, "-B", folder, *generator, *defined], ["--build", folder]):
        subprocess.run([command, *words], check=True, env=environment(), capture_output=True)
    return folder


@pytest.mark.slow
@needs("gcc", "g++")
def test_failures_leave_nothing_behind(tmp_path):
    native = ROOT / "tests" / "pim" / "native"
    host = make(tmp_path / "host", native, CMAKE_C_FLAGS=FLAGS, CMAKE_CXX_FLAGS=FLAGS)
    broken = break_programs(tmp_path / "kernels")
    programs = [
        make(tmp_path / f"{name}{k}", sources / "upmem" / "dpu", ACCEL_RL_PROGRAM=name, **OPTIONS)
        / "program"
        for name in ("tabular", "owned")
        for k, sources in enumerate((ROOT / "kernels", broken))
    ]
    done = subprocess.run(
        [host / "upmem_host", *programs, str(HALTED)],
        env=environment(FAILING_DPU_LIBRARY=sdk_path() / "lib" / "libdpu.so"),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", "")
