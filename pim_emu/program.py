"""Building DPU programs from Python."""

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

_MACRO = re.compile(r"[A-Za-z_]\w*(\([\w\s,.]*\))?", re.ASCII)  # parameters may follow the name
_BY_ARGUMENT = {"NR_TASKLETS": "tasklets", "STACK_SIZE_DEFAULT": "stack_bytes"}


class BuildError(RuntimeError):
    """The compiler refused a program; the message holds what it printed."""


@dataclasses.dataclass(frozen=True)
class DpuProgram:
    """A DPU program that was built.

    Attributes:
      path: the file, for `DpuSet.load` or a host program's `dpu_load`.
      tasklets: its NR_TASKLETS.
      warnings: what the compiler printed.
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
      sources: C files; or the text of one, recognised by a newline in it. Messages about a text
        name it after the program: `program-0.c` is the first.
      tasklets: NR_TASKLETS, 1 to the machine's limit.
      output: the program's file, in a folder that exists; if None, one that goes when the process
        ends.
      define: macros and their values, numbers or texts.
      include: folders of headers, or one.
      stack_bytes: STACK_SIZE_DEFAULT, a multiple of 8: WRAM for the stack of each tasklet.
      optimise: the compiler's level, such as "-O2".
      traced: report every load and store while it runs: finds races and accesses outside WRAM.
      fast: without stack checks and without counting instructions.

    Raises:
      TypeError: an argument of another type.
      ValueError: both traced and fast, no source, or a value that its argument cannot have.
      FileNotFoundError: a source, or the folder of `output`, does not exist.
      BuildError: the compiler or the linker failed.
      SdkError: there is no compiler to do it with.
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
    target = _own_folder() / "program" if output is None else _target(output)
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
    """Return the file of a program that is to be loaded.

    Raises:
      TypeError: neither a program nor a path.
      ValueError: a source file, or the text of one.
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


@functools.cache
def _folder_of_process() -> str:
    """For what is not in a file of the user's: it goes when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="pim_emu-")
    atexit.register(folder.cleanup)
    return folder.name


def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(dir=_folder_of_process()))


def _paths(name: str, value: Any) -> list[str | Path]:
    """One path, or several, as a list."""
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
        path = _own_folder() / f"{name}-{index}.c"
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
