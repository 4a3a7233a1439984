"""Contents of the SDK folder's generated files."""

import shlex
from pathlib import Path

from pim_emu.toolchain.layout import SEARCH_PATHS, VERSION

LAUNCHER = """#!/bin/sh
sdk=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
python='{python}'
[ -x "$python" ] || python=python3
exec "$python" -I -S "$sdk/share/pim_emu/python" {name} "$sdk" "$@"
"""
CLANG = """#!/bin/sh
# clang for DPUs where the target says so, and otherwise the next clang in PATH that is none of an
# SDK: two SDKs in PATH would call each other for ever.
here=$(dirname -- "$(readlink -f -- "$0")")
for word in "$@"; do
    case $word in
        --target=dpu-upmem-dpurte | dpu-upmem-dpurte) exec "$here/dpu-upmem-dpurte-clang" "$@" ;;
    esac
done
IFS=:
for folder in $PATH; do
    if [ -x "$folder/clang" ] && [ ! -e "$folder/dpu-upmem-dpurte-clang" ]; then
        exec "$folder/clang" "$@"
    fi
done
echo "clang: error: PATH has no clang for this host; DPUs need --target=dpu-upmem-dpurte" >&2
exit 127
"""
START = """import runpy

runpy.run_module("pim_emu.toolchain", run_name="__main__")
"""
PKG_CONFIG = f"""prefix=${{pcfiledir}}/../..
libdir=${{prefix}}/lib
includedir=${{prefix}}/include/dpu

Name: dpu
Description: host library of DPUs, emulated by pim_emu
Version: {VERSION}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -Wl,--no-as-needed -Wl,-rpath,${{libdir}} -ldpu
"""
CMAKE = """# A CMake toolchain file for DPU programs.
get_filename_component(UPMEM_HOME "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR dpu)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_COMPILER "${UPMEM_HOME}/bin/dpu-upmem-dpurte-clang")
set(CMAKE_C_COMPILER_FORCED 1)
"""
CMAKE_HOST = """# For CMake projects of host programs: what to compile and link with.
get_filename_component(UPMEM_HOME "${CMAKE_CURRENT_LIST_DIR}/../../../../.." ABSOLUTE)
set(DPU_HOST_INCLUDE_DIRECTORIES "${UPMEM_HOME}/include/dpu")
set(DPU_HOST_LINK_DIRECTORIES "${UPMEM_HOME}/lib")
set(DPU_HOST_LIBRARIES "${UPMEM_HOME}/lib/libdpu.so")
"""
# The module `dpu` of the SDK folder. Python finds it only where the environment names the folder,
# so installing pim_emu shadows no other module of that name. Where the interpreter has no pim_emu,
# it is taken from the folder that made the SDK, and nothing beside it.
_FIND_PACKAGE = """import importlib.util
import sys

if sys.version_info < (3, 11):
    raise ImportError("pim_emu's module dpu needs Python 3.11 or newer")
if importlib.util.find_spec("pim_emu") is None:
    folder = {package!r}
    spec = importlib.util.spec_from_file_location(
        "pim_emu", folder + "/__init__.py", submodule_search_locations=[folder]
    )
    sys.modules["pim_emu"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(sys.modules["pim_emu"])
    except BaseException as error:
        del sys.modules["pim_emu"]
        raise ImportError(
            f"module dpu needs pim_emu, which is neither in {{sys.executable}} nor in {{folder}}"
        ) from error
"""
PYTHON_MODULE = f'''"""UPMEM's host interface for Python, emulated by pim_emu: docs/pim-emu.md."""

{_FIND_PACKAGE}
from .driver import ALLOCATE_ALL, DpuError, DpuSet, DpuSymbol

__all__ = ["ALLOCATE_ALL", "DpuError", "DpuSet", "DpuSymbol"]
'''
PYTHON_DRIVER = '''"""Classes of the host interface."""

from pim_emu.vendor_python import (
    ALLOCATE_ALL,
    DpuError,
    DpuSymbol,
    DpuVariable,
    VendorDpuSet as DpuSet,
    VendorProgram as DpuProgram,
)

__all__ = [
    "ALLOCATE_ALL", "DpuError", "DpuProgram", "DpuSet", "DpuSymbol", "DpuVariable", "allocate",
]


def allocate(nr_dpus=ALLOCATE_ALL):
    """Allocate DPUs, as programs for SDKs of 2020 do."""
    return DpuSet(nr_dpus)


def __getattr__(name):
    raise AttributeError(
        f"pim_emu's dpu.driver has no {name}: only what docs/pim-emu.md lists could be verified"
    )
'''


def environment(folder: Path) -> str:
    """Return the shell commands that put an SDK folder first in the search paths."""
    lines = [
        f'export {name}="$UPMEM_HOME/{place}${{{name}:+:${name}}}"'
        for name, place in SEARCH_PATHS.items()
    ]
    return "\n".join([f"export UPMEM_HOME={shlex.quote(str(folder))}", *lines, ""])
