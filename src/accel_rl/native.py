"""The library of native kernels: where it is, whether it can be used, and its XLA FFI targets.

It is built when accel_rl is installed, if there is a C compiler, and knows nothing of Python's ABI.
Nothing is loaded or registered before a kernel is first asked for: a broken library must not keep
jax from starting.
"""

import ctypes
import functools
import importlib.util
import os
import re
from pathlib import Path

import jax

VARIABLE = "ACCEL_RL_KERNELS"  # names another library; empty: use none
INTERFACE = 2  # ARL_INTERFACE of kernels/ffi/tabular.c
_STEM = "accel_rl_kernels"


class KernelsAbsent(RuntimeError):
    """There are no usable native kernels; the message says why, and what to do."""


@functools.cache
def library() -> ctypes.CDLL:
    """The loaded library.

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
    # A handler built against newer headers would stop the whole CPU backend of jax.
    if version // 1000 != available // 1000 or version > available:
        built, found = (f"{x // 1000}.{x % 1000}" for x in (version, available))
        raise KernelsAbsent(
            f"the native kernels need XLA's FFI {built}, this jaxlib has {found}: upgrade jax, or "
            "reinstall accel_rl"
        )
    return loaded


def why_absent() -> str | None:
    """Why there are no native kernels, or None where there are."""
    try:
        library()
    except KernelsAbsent as error:
        return str(error)
    return None


def instruction_set() -> str:
    """The instruction set that the kernels use on this processor: "base", "avx2" or "avx512".

    Raises:
      KernelsAbsent: if there are no kernels.
    """
    return library().accel_rl_instruction_set().decode()


@functools.cache
def target(symbol: str) -> str:
    """The name of an XLA FFI target on CPU, registered with jax at the first call.

    Args:
      symbol: the handler's name in the library.

    Raises:
      KernelsAbsent: if there are no kernels.
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
