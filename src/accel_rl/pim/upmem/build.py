"""CMake builds of the host library and of DPU programs, at first use, into a cache."""

import fcntl
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

import jax

from accel_rl import cache
from accel_rl.pim.upmem.errors import BuildFailed, SdkMissing, TooLarge, UpmemError
from accel_rl.pim.upmem.toolkit import Toolkit

SOURCES = "ACCEL_RL_KERNEL_SOURCES"  # environment variable with another folder of native sources
_BUILDING = ".building-"  # prefix of build folders in the cache
_NO_COMPILER = "there is no C++ compiler: install gcc and g++, or name others in CC and CXX"
_PARTS = ("common", "ffi", "upmem")  # source folders that builds depend on
# Environment variables that affect the emulator's compiler.
_SETTINGS = ("PIM_EMU_TRACE", "PIM_EMU_FAST", "PIM_EMU_MACHINE", "PIM_EMU_CC")
# Linker messages for a program that exceeds a memory.
_TOO_LARGE = re.compile(
    r"error: .*(overflow|will not fit|does not fit|too many tasklets)", re.IGNORECASE
)


@functools.cache
def host_library(toolkit: Toolkit) -> Path:
    """Return the path of the host's shared library; build it if it is not cached.

    Raises:
      SdkMissing: if a tool or the sources are missing.
      BuildFailed: if the build fails.
    """
    final = _folder(toolkit) / "host.so"
    options = {"ACCEL_RL_XLA_INCLUDE": jax.ffi.include_dir()}
    return _build(toolkit, "host", options, "accel_rl_upmem_ffi.so", final)


def dpu_program(toolkit: Toolkit, options: Mapping[str, object]) -> Path:
    """Return the path of a DPU program; build it if it is not cached.

    Args:
      toolkit: SDK that builds the program.
      options: options of kernels/upmem/dpu/CMakeLists.txt, without the prefix ACCEL_RL_.

    Raises:
      SdkMissing, BuildFailed: as `host_library`.
      TooLarge: if the program does not fit a DPU.
    """
    named = {f"ACCEL_RL_{name}": str(value) for name, value in options.items()}
    settings = [os.environ.get(name) for name in _SETTINGS]
    text = repr((sorted(named.items()), settings))
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    final = _folder(toolkit) / "programs" / digest
    return _build(toolkit, "dpu", named, "program", final)


def why_absent() -> str | None:
    """Return what is missing to build with any toolkit, or None; build nothing."""
    try:
        _sources()
        _cmake()
    except SdkMissing as error:
        return str(error)
    named = os.environ.get("CXX", "").split()[:1]
    compilers = named or ("c++", "g++", "clang++")
    return None if any(map(shutil.which, compilers)) else _NO_COMPILER


def fingerprint(toolkit: Toolkit) -> str:
    """Return a hash of everything that builds with this toolkit depend on."""
    total = hashlib.sha256(f"{toolkit}\0{importlib.metadata.version('jaxlib')}\0".encode())
    sources = _sources()
    for part in _PARTS:
        for path in sorted(p for p in (sources / part).rglob("*") if p.is_file()):
            total.update(f"{path.relative_to(sources)}\0".encode() + path.read_bytes())
    return total.hexdigest()[:16]


@functools.cache
def _folder(toolkit: Toolkit) -> Path:
    return cache.cache_folder() / _name(toolkit)


def _name(toolkit: Toolkit) -> str:
    return f"upmem-{fingerprint(toolkit)}"


def _build(toolkit: Toolkit, part: str, options: Mapping[str, str], made: str, final: Path) -> Path:
    """Build a part of kernels/upmem and move the file `made` to `final`, unless that exists."""
    if final.exists():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with (final.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in final.parent.glob(f"{_BUILDING}*"):  # by a killed process
                shutil.rmtree(left, ignore_errors=True)
            if final.exists():  # built by another process while this one waited for the lock
                return final
            with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=final.parent) as folder:
                _run_cmake(toolkit, part, options, Path(folder))
                # The folder's name is cached and stands for the sources before the build.
                if _name(toolkit) != _folder(toolkit).name:
                    raise BuildFailed("the sources of the DPU programs have changed: start again")
                (Path(folder) / made).rename(final)
    except OSError as error:
        raise BuildFailed(
            f"{final.parent} cannot be written ({error.strerror}); name another folder in "
            f"{cache.VARIABLE}"
        ) from error
    return final


def _run_cmake(toolkit: Toolkit, part: str, options: Mapping[str, str], folder: Path) -> None:
    cmake, generator = _cmake()
    values = {"ACCEL_RL_UPMEM_SDK": str(toolkit.folder), **options}
    defined = [f"-D{name}={value}" for name, value in values.items()]
    _run([cmake, "-S", str(_sources() / "upmem" / part), "-B", str(folder), *generator, *defined])
    _run([cmake, "--build", str(folder)])


def _cmake() -> tuple[str, list[str]]:
    """Return the CMake command and the options that choose its generator."""
    cmake, ninja = _tool("cmake"), _tool("ninja")
    if cmake is None:
        raise SdkMissing("there is no cmake: install accel-rl[upmem], or cmake from your system")
    if ninja:
        return cmake, ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    if shutil.which("make") is None:
        raise SdkMissing("there is neither ninja nor make: install accel-rl[upmem]")
    return cmake, ["-G", "Unix Makefiles"]


def _run(words: list[str]) -> None:
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
        )
    except OSError as error:
        raise BuildFailed(f"{words[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        failure = f"{' '.join(words)} failed with status {done.returncode}"
        raise _explained(failure, (done.stdout + done.stderr).strip())


def _explained(failure: str, output: str) -> UpmemError:
    """Return the exception for a failed command, by the output of compilers and CMake."""
    lines = [line for line in output.splitlines() if _TOO_LARGE.search(line)]
    if lines:
        return TooLarge(f"the DPU program does not fit: {' '.join(lines)}")
    if "there is no dpu-" in output:  # kernels/upmem/sdk.cmake
        return SdkMissing(output)
    if "CMAKE_CXX_COMPILER" in output or "CMAKE_C_COMPILER" in output:
        return SdkMissing(f"{_NO_COMPILER} (CMake says: {output})")
    return BuildFailed(f"{failure}:\n{output}")


def _tool(name: str) -> str | None:
    """Return the path of a command, from this Python environment if it is there."""
    return shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)


@functools.cache
def _sources() -> Path:
    named = os.environ.get(SOURCES)
    spec = importlib.util.find_spec("accel_rl")
    places = (spec.submodule_search_locations or ()) if spec else ()
    for folder in [Path(named)] if named else [Path(place) / "kernels" for place in places]:
        if (folder / "upmem" / "CMakeLists.txt").exists():
            return folder
    raise SdkMissing(
        f"the sources of the DPU programs are not in {named}, which {SOURCES} names: unset it"
        if named
        else "the sources of the DPU programs were not installed with accel_rl: install a C "
        "compiler (gcc or clang), then reinstall accel_rl"
    )
