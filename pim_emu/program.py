"""Compilation of DPU programs from Python."""

import atexit
import dataclasses
import functools
import numbers
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pim_emu.arguments import shown, whole
from pim_emu.sdk import sdk_path
from pim_emu.toolchain.elf import ElfFile

_MACRO = re.compile(r"[A-Za-z_]\w*(\([\w\s,.]*\))?", re.ASCII)  # parameters may follow the name
_OF_LIBRARY = "CLOCKS_PER_SEC"  # which every program has
_BY_ARGUMENT = {"NR_TASKLETS": "tasklets", "STACK_SIZE_DEFAULT": "stack_bytes"}


class BuildError(RuntimeError):
    """Failed compilation of a program; the message holds the compiler's output."""


@dataclasses.dataclass(frozen=True)
class DpuProgram:
    """Compiled DPU program.

    Attributes:
      path: the file, for `DpuSet.load` or a host program's `dpu_load`.
      tasklets: its NR_TASKLETS.
      warnings: output of the compiler.
    """

    path: Path
    tasklets: int
    warnings: str = ""


def build(
    sources: str | Path | Sequence[str | Path],
    *,
    tasklets: int = 1,
    output: str | Path | None = None,
    define: Mapping[str, object] | None = None,
    include: str | Path | Sequence[str | Path] = (),
    stack_bytes: int = 1024,
    optimise: str = "-O2",
    traced: bool = False,
    fast: bool = False,
) -> DpuProgram:
    """Compile and link a DPU program with `dpu-upmem-dpurte-clang`.

    Args:
      sources: C files, or C source code, recognised by a newline in it. Compiler messages about
        source code name it after the program: `program-0.c` is the first.
      tasklets: NR_TASKLETS, 1 to the machine's limit.
      output: file of the program, in an existing folder; if None, a file that is deleted when the
        process ends.
      define: macros and their values, numbers or strings.
      include: one or several folders of headers.
      stack_bytes: STACK_SIZE_DEFAULT, a multiple of 8: WRAM for the stack of each tasklet.
      optimise: optimisation level of the compiler, such as "-O2".
      traced: report every load and store at run time, to find races and accesses outside WRAM.
      fast: omit stack checks and instruction counting.

    Raises:
      TypeError: if an argument is of another type.
      ValueError: if both traced and fast are set, there is no source, or a value is out of range.
      FileNotFoundError: if a source, or the folder of `output`, does not exist.
      BuildError: if the compiler or the linker fails.
      SdkError: if this host has no usable compiler.
    """
    if traced and fast:
        raise ValueError("traced and fast exclude each other")
    tasklets = whole("tasklets", tasklets, 1)  # the compiler knows the machine's limit
    macros = {
        "NR_TASKLETS": tasklets,
        "STACK_SIZE_DEFAULT": whole("stack_bytes", stack_bytes, 8),
        **_macros({} if define is None else define),
    }
    if not isinstance(optimise, str) or not re.fullmatch(r"-O\w*", optimise):
        raise ValueError(f'optimise must be a level such as "-O2", got {shown(optimise)}')
    texts, folders = _paths("sources", sources), _paths("include", include)
    if not texts:
        raise ValueError("sources must name at least one file")
    target = own_folder() / "program" if output is None else _target(output)
    files = [_as_file(text, target.name, index) for index, text in enumerate(texts)]
    command = [
        *(str(sdk_path() / "bin" / "dpu-upmem-dpurte-clang"), optimise, "-g", "-Wall"),
        *(f"-D{name}={value}" for name, value in macros.items()),
        *(f"-I{folder}" for folder in folders),
        *(*map(str, files), "-o", str(target)),
    ]
    # Whatever the environment says, the arguments decide.
    kinds = {"PIM_EMU_TRACE": traced, "PIM_EMU_FAST": fast}
    environment = {name: value for name, value in os.environ.items() if name not in kinds}
    environment |= {name: "1" for name, wanted in kinds.items() if wanted}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise BuildError(done.stderr.strip() or f"{command[0]} failed")
    return DpuProgram(target, tasklets, done.stderr)


def program_path(program: DpuProgram | str | Path) -> Path:
    """Return the file of a program to load.

    Raises:
      TypeError: if it is neither a program nor a path.
      ValueError: if it is a source file, or source code.
    """
    if isinstance(program, DpuProgram):
        return program.path
    if not isinstance(program, str | Path):
        raise TypeError(
            f"program must be what pim_emu.build returned, or a path, got {shown(program)}"
        )
    text = str(program)
    is_text = isinstance(program, str) and ("\n" in text or "{" in text)
    if text.endswith(".c") or (is_text and not os.path.exists(text)):
        raise ValueError(
            "program must be built before it is loaded, by pim_emu.build: got the source code "
            f"{shown(text)}"
        )
    if not text or "\0" in text:
        raise ValueError(f"program must be the path of a file, got {shown(text)}")
    return Path(program)


def variables(program: Path) -> list[str]:
    """Return the names of a program's variables in WRAM and MRAM; none if the file is gone."""
    try:
        elf = ElfFile(program)
    except (OSError, ValueError):
        return []
    memories = [
        range(section.address, section.address + section.size)
        for section in elf.sections
        if section.name.startswith((".mram", ".wram"))
    ]
    return sorted(
        name
        for name, address in elf.symbols().items()
        if name.isidentifier()
        and not name.startswith("__")
        and name != _OF_LIBRARY
        and any(address in memory for memory in memories)
    )


@functools.cache
def _folder_of_process() -> str:
    """Make this process's temporary folder, which is deleted when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="pim_emu-")
    atexit.register(folder.cleanup)
    return folder.name


def own_folder() -> Path:
    """Make a folder that is deleted when the process ends."""
    return Path(tempfile.mkdtemp(dir=_folder_of_process()))


def _paths(name: str, value: Any) -> list[str | Path]:
    """Convert one path or several to a list."""
    if isinstance(value, bytes | Mapping) or not isinstance(value, str | Path | Iterable):
        raise TypeError(f"{name} must be a path or a sequence of paths, got {shown(value)}")
    paths = [value] if isinstance(value, str | Path) else list(value)
    for path in paths:
        if not isinstance(path, str | Path):
            raise TypeError(f"{name}: a path must be a str or Path, got {shown(path)}")
        if not str(path) or "\0" in str(path):
            raise ValueError(f"{name}: a path cannot be {shown(path)}")
    return paths


def _target(output: Any) -> Path:
    (path,) = map(Path, _paths("output", [output]))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"output {shown(str(path))}: there is no folder {path.parent}")
    return path


def _as_file(source: str | Path, name: str, index: int) -> Path:
    if isinstance(source, str) and "\n" in source:
        path = own_folder() / f"{name}-{index}.c"
        path.write_text(source, encoding="utf-8")
        return path
    if not os.path.isfile(source):
        hint = "" if isinstance(source, Path) else "; the text of a program needs a newline"
        raise FileNotFoundError(f"sources: there is no file {shown(str(source))}{hint}")
    return Path(source)


def _macros(define: Any) -> dict[str, object]:
    if not isinstance(define, Mapping):
        raise TypeError(f"define must map names of macros to values, got {shown(define)}")
    macros: dict[str, object] = {}
    for name, value in define.items():
        if not isinstance(name, str) or not _MACRO.fullmatch(name):
            raise ValueError(f"define: the name of a macro cannot be {shown(name)}")
        if name in _BY_ARGUMENT:
            raise ValueError(f"define: {name} is given by the argument {_BY_ARGUMENT[name]}")
        if not isinstance(value, str | numbers.Real) or "\n" in str(value):
            raise TypeError(
                f"define[{name!r}] must be a number or a text of one line, got {shown(value)}"
            )
        macros[name] = int(value) if isinstance(value, bool) else value
    return macros
