"""Shared library of native kernels: discovery, compatibility checks and XLA FFI targets.

The library is built when accel_rl is installed, if there is a C compiler, and does not depend on
Python's ABI. It is loaded and registered when a kernel is first requested, so that a broken library
cannot keep jax from starting.
"""

import ctypes
import functools
import importlib.util
import os
import re
from pathlib import Path

import jax

VARIABLE = "ACCEL_RL_KERNELS"  # path of another library; empty: disable the kernels
INTERFACE = 7  # ARL_INTERFACE of kernels/ffi/tabular.c
_STEM = "accel_rl_kernels"


class KernelsAbsent(RuntimeError):
    """Error for missing or unusable native kernels; the message has the reason and the remedy."""


@functools.cache
def library() -> ctypes.CDLL:
    """Load the library, once in a process.

    Raises:
      KernelsAbsent: if it was not built, does not load, or was built against headers newer than
        this jaxlib's.
    """
    path = _find()
    try:
        loaded = ctypes.CDLL(str(path))
        loaded.accel_rl_instruction_set.restype = ctypes.c_char_p
        version, interface = loaded.accel_rl_ffi_version(), loaded.accel_rl_interface()
    except (OSError, AttributeError) as error:
        raise KernelsAbsent(f"the native kernels in {path} cannot be loaded: {error}") from error
    if interface != INTERFACE:
        raise KernelsAbsent(
            f"the native kernels in {path} are stale (interface {interface}, not {INTERFACE}): "
            "reinstall accel_rl"
        )
    available = _jaxlib_version()
    # Registering a handler built against newer headers would break jax's whole CPU backend.
    if version // 1000 != available // 1000 or version > available:
        built, found = (f"{x // 1000}.{x % 1000}" for x in (version, available))
        raise KernelsAbsent(
            f"the native kernels need XLA's FFI {built}, this jaxlib has {found}: upgrade jax, or "
            "reinstall accel_rl"
        )
    return loaded


def why_absent() -> str | None:
    """Return the reason why native kernels are unavailable, or None if they are available."""
    try:
        library()
    except KernelsAbsent as error:
        return str(error)
    return None


def instruction_set() -> str:
    """Return the kernels' instruction set on this CPU: "base", "avx2" or "avx512"."""
    return library().accel_rl_instruction_set().decode()


@functools.cache
def target(symbol: str) -> str:
    """Return the name of an XLA FFI target on CPU, registering it with jax at the first call.

    Args:
      symbol: the handler's name in the library.
    """
    try:
        handler = getattr(library(), symbol)
    except AttributeError as error:
        raise KernelsAbsent(f"the native kernels are stale, reinstall accel_rl: {error}") from error
    jax.ffi.register_ffi_target(symbol, jax.ffi.pycapsule(handler), platform="cpu")
    return symbol


def _find() -> Path:
    named = os.environ.get(VARIABLE)
    if named is not None:
        if not named:
            raise KernelsAbsent(f"{VARIABLE} is empty, which turns the native kernels off")
        return Path(named)
    spec = importlib.util.find_spec("accel_rl")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in (Path(folder) / f"{_STEM}{suffix}" for suffix in (".so", ".dylib")):
            if path.exists():
                return path
    raise KernelsAbsent(
        "the native kernels were not built when accel_rl was installed: install a C compiler (gcc "
        "or clang), then `pip install --force-reinstall --no-deps --no-cache-dir --verbose` "
        "accel_rl, which shows what fails if anything does"
    )


def _jaxlib_version() -> int:
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    try:
        found = re.findall(r"#define XLA_FFI_API_(?:MAJOR|MINOR) (\d+)", header.read_text())
        major, minor = (int(x) for x in found)
    except (OSError, ValueError) as error:
        raise KernelsAbsent(f"jaxlib does not state its FFI version: {error}") from error
    return 1000 * major + minor
