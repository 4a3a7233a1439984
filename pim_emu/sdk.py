"""SDK folder: compiler driver, headers and library, built from the package on first use.

The folder lies in the user's cache. Its name is a hash of everything that it is built from, so a
new version of the package or of gcc gets a new folder. It is built under another name and renamed
when complete; processes that need it at the same time wait for the one that builds it.
"""

import compileall
import contextlib
import fcntl
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pim_emu.machine import available_machines, load_machine
from pim_emu.toolchain import driver, gcc, pkg_config, templates, tools
from pim_emu.toolchain.layout import SEARCH_PATHS, VERSION, SdkLayout, compiler

_PACKAGE = Path(__file__).resolve().parent
_NATIVE = _PACKAGE / "native"
_MODULES = ("arguments.py", "machine.py")  # which the toolchain imports
_OLDEST_GCC = 10
_LIBRARY_FLAGS = ("-O2", "-g")
_RUNTIME_FLAGS = (
    *("-std=gnu11", "-O2", "-g1", "-Wall", "-Wextra", "-fdata-sections"),
    "-fno-tree-loop-distribute-patterns",  # memset must not become a call of memset
    "-fno-omit-frame-pointer",  # a fault in the library finds the line that called it
)
_MACHINE_FIELDS = (
    *("ranks", "dpus_per_rank", "max_tasklets", "pipeline_reissue", "mram_bytes", "wram_bytes"),
    *("iram_instructions", "dma_max_bytes", "dma_min_bytes", "dma_alignment_bytes", "clock_hz"),
    *("dma_read_alpha", "dma_write_alpha", "dma_cycles_per_byte", "random_read_bandwidth"),
    *("to_dpu_bandwidth", "from_dpu_bandwidth", "to_rank_bandwidth", "from_rank_bandwidth"),
    "broadcast_bandwidth",
)


class SdkError(RuntimeError):
    """Failure to build the SDK folder on this host."""


@functools.cache
def sdk_path() -> Path:
    """Return the SDK folder; build it if it does not exist.

    `bin/` has `dpu-upmem-dpurte-clang` and `dpu-pkg-config`; `include/dpu` and `lib` have the
    headers and library of host programs. The folder lies under `$PIM_EMU_CACHE`,
    `$XDG_CACHE_HOME/pim_emu` or `~/.cache/pim_emu`.

    Raises:
      SdkError: if the host is not x86-64 Linux, gcc is missing or too old, the cache cannot be
        written, or a source does not compile.
    """
    _check_host()
    cache = _cache()
    final = cache / f"sdk-{_fingerprint()}"
    if final.is_dir():
        return final
    with _cache_errors(cache):
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not final.is_dir():
                part = Path(tempfile.mkdtemp(prefix=".making-", dir=cache))
                try:
                    _make(SdkLayout(part), final)
                    part.chmod(0o755)
                    part.rename(final)
                finally:
                    shutil.rmtree(part, ignore_errors=True)
    return final


def why_absent() -> str | None:
    """Return the reason why DPU programs cannot be built on this host, or None if they can."""
    try:
        _check_host()
    except SdkError as error:
        return str(error)
    return None


def build_library(flags: Sequence[str], destination: Path) -> None:
    """Compile the host library, libdpu.so.

    Args:
      flags: compiler flags, such as `-O2` or `-fsanitize=address`.
      destination: file to write; objects are left in a folder beside it.

    Raises:
      SdkError: if a source does not compile.
    """
    objects = destination.parent / f"{destination.name}.objects"
    objects.mkdir(parents=True, exist_ok=True)
    machines = objects / "machines.c"
    machines.write_text(_machine_table(), encoding="utf-8")
    folders = (_NATIVE / "engine", _NATIVE / "host")
    sources = [path for folder in folders for path in sorted(folder.glob("*.[cS]"))]
    includes = [f"-I{_NATIVE / name}" for name in ("include", "engine")]
    common = ["-std=gnu11", "-fPIC", "-pthread", *includes, *flags]
    made = _compile_all([*sources, machines], objects, common)
    link = ["-shared", "-pthread", "-Wl,-soname,libdpu.so", "-Wl,-Bsymbolic-functions", *flags]
    _run([compiler(), *link, "-o", str(destination), *map(str, made), "-lm", "-ldl"])


def _make(sdk: SdkLayout, final: Path) -> None:
    """Fill a new SDK folder that will be renamed to `final`."""
    _copy(_NATIVE / "include", sdk.host_include)
    _copy(_NATIVE / "device" / "include", sdk.device_include)
    _copy(_NATIVE / "device" / "runtime", sdk.device / "runtime")
    for name in ("abi.h", "program.ld"):
        shutil.copy(_NATIVE / "device" / name, sdk.device / name)
    _make_runtime(sdk, final)
    _copy_toolchain(sdk.share / "python", final / "share" / "pim_emu" / "python")
    _write_commands(sdk, final)
    sdk.library.mkdir(exist_ok=True)
    build_library(_LIBRARY_FLAGS, sdk.library / "libdpu.so")
    shutil.rmtree(sdk.library / "libdpu.so.objects")


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))


def _make_runtime(sdk: SdkLayout, final: Path) -> None:
    """Build the archive that programs link; its code does its own counting and has no checks."""
    sources = sorted((sdk.device / "runtime").glob("*.c"))
    sources = [path for path in sources if path.name != "info.c"]
    objects = sdk.share / "objects"
    objects.mkdir()
    flags = [*gcc.CODE, *gcc.include_flags(sdk.device_include), *gcc.macro_flags()]
    flags += [f"-I{sdk.device}", f"-ffile-prefix-map={sdk.root}={final}"]  # for debuggers
    made = _compile_all(sources, objects, [*_RUNTIME_FLAGS, *flags])
    sdk.runtime_library.parent.mkdir()
    _run(["ar", "rcs", str(sdk.runtime_library), *map(str, made)])
    shutil.rmtree(objects)


def _copy_toolchain(folder: Path, final: Path) -> None:
    package = folder / "pim_emu"
    _copy(_PACKAGE / "toolchain", package / "toolchain")
    _copy(_PACKAGE / "machines", package / "machines")
    for name in _MODULES:
        shutil.copy(_PACKAGE / name, package / name)
    (package / "__init__.py").touch()
    (folder / "__main__.py").write_text(templates.START, encoding="utf-8")
    compileall.compile_dir(folder, quiet=2, stripdir=str(folder), prependdir=str(final))


def _write_commands(sdk: SdkLayout, final: Path) -> None:
    texts = {
        f"bin/{name}": templates.LAUNCHER.format(python=sys.executable, name=name)
        for name in (driver.NAME, pkg_config.NAME, tools.DIAGNOSE, tools.DEBUG)
    }
    texts["bin/clang"] = templates.CLANG
    texts["share/upmem/cmake/include/host/DpuHost.cmake"] = templates.CMAKE_HOST
    texts["lib/pkgconfig/dpu.pc"] = templates.PKG_CONFIG
    texts["share/upmem/cmake/dpu.cmake"] = templates.CMAKE
    texts["share/upmem/version"] = f"{VERSION}\n"
    texts["upmem_env.sh"] = templates.environment(final)
    module = f"{SEARCH_PATHS['PYTHONPATH']}/dpu"
    texts[f"{module}/__init__.py"] = templates.PYTHON_MODULE.format(package=str(_PACKAGE))
    texts[f"{module}/driver.py"] = templates.PYTHON_DRIVER
    for name, text in texts.items():
        path = sdk.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if name.startswith("bin/"):
            path.chmod(0o755)


def _machine_table() -> str:
    """Return C source of the engine's table of machines, with the default machine first."""
    names = sorted(available_machines(), key=lambda name: (name != load_machine().name, name))
    rows = []
    for name in names:
        machine = load_machine(name)
        values = "".join(
            f"        .{field} = {getattr(machine, field)!r},\n" for field in _MACHINE_FIELDS
        )
        rows.append(f'    {{\n        .name = "{name}",\n{values}    }},\n')
    return f"""#include <string.h>

#include "engine.h"

static const struct emu_machine machines[] = {{
{"".join(rows)}}};

const struct emu_machine *emu_find_machine(const char *name) {{
    if (name == NULL) return &machines[0];
    for (size_t i = 0; i < sizeof machines / sizeof *machines; ++i)
        if (strcmp(machines[i].name, name) == 0) return &machines[i];
    return NULL;
}}
"""


def _compile_all(sources: Iterable[Path], folder: Path, flags: Sequence[str]) -> list[Path]:
    def compiled(source: Path) -> Path:
        target = folder / f"{source.parent.name}-{source.stem}.o"
        _run([compiler(), *flags, "-c", str(source), "-o", str(target)])
        return target

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(compiled, sources))


def _run(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise SdkError(f"{words[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise SdkError(f"{' '.join(words)} failed:\n{done.stderr}")
    return done.stdout


def _check_host() -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise SdkError(
            "DPU programs run on x86-64 Linux only; this host is "
            f"{platform.machine()} {platform.system()}"
        )
    version = _compiler_version()
    if "Free Software Foundation" not in version:
        first = version.splitlines()[0] if version else "nothing"
        raise SdkError(f"PIM_EMU_CC must name gcc; '{compiler()} --version' says: {first}")
    number = _run([compiler(), "-dumpversion"]).strip()
    if int(number.split(".")[0]) < _OLDEST_GCC:
        raise SdkError(f"gcc must be at least version {_OLDEST_GCC}, {compiler()} is {number}")
    try:
        _run([compiler(), "-E", "-include", "stdlib.h", "-x", "c", "-o", os.devnull, os.devnull])
    except SdkError as error:
        raise SdkError(f"{compiler()} lacks the C library's headers: install libc6-dev") from error


def _compiler_version() -> str:
    try:
        return _run([compiler(), "--version"])
    except SdkError as error:
        raise SdkError(
            f"gcc is needed to build DPU programs, and '{compiler()}' cannot be run; install it, "
            "or name another in PIM_EMU_CC"
        ) from error


def _cache() -> Path:
    own = os.environ.get("PIM_EMU_CACHE")
    if own:
        return Path(own).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "pim_emu"


def _fingerprint() -> str:
    """Return a hash of everything that the folder is built from."""
    total = hashlib.sha256(f"{_compiler_version()}\0{sys.executable}\0{_PACKAGE}\0".encode())
    folders = (_NATIVE, _PACKAGE / "toolchain", _PACKAGE / "machines")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files += [_PACKAGE / name for name in (*_MODULES, "sdk.py")]
    for path in sorted(path for path in files if path.suffix != ".pyc"):
        total.update(f"{path.relative_to(_PACKAGE)}\0".encode() + path.read_bytes())
    return total.hexdigest()[:16]


@contextlib.contextmanager
def _cache_errors(cache: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SdkError(
            f"the SDK folder cannot be written to {cache} ({error.strerror}); name another folder "
            "in PIM_EMU_CACHE"
        ) from error
