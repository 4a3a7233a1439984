"""The host interface under random calls, good and bad, with the library built for sanitizers.

The fuzzers are C programs in `native/`; `fuzz.h` says what the model is. A failure prints the seed:
run the fuzzer with that seed first and a count of 1 to see it again.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sdk_present import needs_sdk

import pim_emu
from pim_emu.sdk import build_library, sdk_path

pytestmark = [needs_sdk, pytest.mark.long]  # builds the library for sanitizers

NATIVE = Path(__file__).parent / "native"
SANITIZERS = {
    "memory": ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "threads": ("-O1", "-g", "-fsanitize=thread"),
}
# What a sanitizer finds ends the process by a signal, whose handler prints the seeds.
OPTIONS = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "abort_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "abort_on_error=1:halt_on_error=1",
    "PIM_EMU_QUIET": "1",
    "PIM_EMU_WORKERS": "2",
}

Fuzz = Callable[..., str]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The DPU program, in two sizes."""
    folder = tmp_path_factory.mktemp("programs")
    sizes = [{"WORDS": 16, "BYTES": 4096}, {"WORDS": 4, "BYTES": 512}]
    return [
        pim_emu.build(
            NATIVE / "fuzz_dpu.c", tasklets=2, define=size, output=folder / f"program{number}"
        ).path
        for number, size in enumerate(sizes, 1)
    ]


def build(folder: Path, kind: str) -> Fuzz:
    """Library and fuzzers for one kind of sanitizer; the result runs one of them."""
    flags = SANITIZERS[kind]
    build_library(flags, folder / "libdpu.so")
    parts = [path for path in sorted(NATIVE.glob("fuzz*.c")) if path.stem not in ("fuzz_dpu",)]
    fuzzers = {
        "fuzz": [path for path in parts if path.stem != "fuzz_elf"],
        "fuzz_elf": [NATIVE / "fuzz_elf.c"],
    }
    for name, sources in fuzzers.items():
        subprocess.run(
            [
                *("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Werror", *flags),
                *(f"-I{sdk_path()}/include/dpu", *map(str, sources), "-o", str(folder / name)),
                *(f"-L{folder}", f"-Wl,-rpath,{folder}", "-ldpu", "-lpthread"),
            ],
            check=True,
        )

    def fuzz(name: str, *arguments: object) -> str:
        done = subprocess.run(
            [str(folder / name), *map(str, arguments)],
            env={**os.environ, **OPTIONS},
            capture_output=True,
            text=True,
            timeout=540,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr[-8000:]}"
        assert not done.stderr, done.stderr[-8000:]
        return done.stdout

    return fuzz


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Fuzz:
    return build(tmp_path_factory.mktemp("memory"), "memory")


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Fuzz:
    return build(tmp_path_factory.mktemp("threads"), "threads")


def test_random_calls_do_what_the_model_says(memory: Fuzz, programs: list[Path]):
    assert memory("fuzz", 1, 30, 300, 1, *programs) == "9000 operations\n"


def test_random_calls_from_several_threads(memory: Fuzz, programs: list[Path]):
    assert memory("fuzz", 1000, 8, 200, 4, *programs) == "1600 operations\n"


def test_damaged_programs_are_refused_or_load(memory: Fuzz, programs: list[Path]):
    loaded, refused = memory("fuzz_elf", 1, 3000, programs[0]).split(",")
    assert int(loaded.split()[0]) > 500
    assert int(refused.split()[0]) > 500


@pytest.mark.slow
def test_many_random_calls(memory: Fuzz, programs: list[Path]):
    memory("fuzz", 100_000, 1000, 400, 1, *programs)
    memory("fuzz", 200_000, 400, 300, 4, *programs)


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 1])
def test_many_damaged_programs(memory: Fuzz, programs: list[Path], index: int):
    memory("fuzz_elf", 100_000, 50_000, programs[index])


def test_random_calls_have_no_data_race(threads: Fuzz, programs: list[Path]):
    threads("fuzz", 1, 200, 200, 4, *programs)
