"""Building DPU programs from Python."""

import dataclasses
import functools
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pim_emu.sdk import sdk_path


class BuildError(RuntimeError):
    """The compiler refused a program; the message holds what it printed."""


@dataclasses.dataclass(frozen=True)
class Program:
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
    include: Sequence[str | Path] = (),
    stack_bytes: int = 1024,
    optimise: str = "-O2",
    traced: bool = False,
    fast: bool = False,
) -> Program:
    """Compile and link a DPU program with `dpu-upmem-dpurte-clang`.

    Args:
      sources: C files; or the text of one, recognised by a newline in it.
      tasklets: NR_TASKLETS, 1 to the machine's limit.
      output: the program's file; if None, one that goes when the process ends.
      define: macros and their values.
      include: folders of headers.
      stack_bytes: STACK_SIZE_DEFAULT, a multiple of 8: WRAM for the stack of each tasklet.
      optimise: the compiler's level, such as "-O2".
      traced: report every load and store while it runs: finds races and accesses outside WRAM.
      fast: without stack checks and without counting instructions.

    Raises:
      ValueError: both traced and fast.
      BuildError: the compiler or the linker failed.
      SdkError: there is no compiler to do it with.
    """
    if traced and fast:
        raise ValueError("traced and fast exclude each other")
    texts = [sources] if isinstance(sources, str | Path) else list(sources)
    target = _own_folder() / "program" if output is None else Path(output)
    target.parent.mkdir(parents=True, exist_ok=True)
    files = [_as_file(text, target, index) for index, text in enumerate(texts)]
    macros = {"NR_TASKLETS": tasklets, "STACK_SIZE_DEFAULT": stack_bytes, **(define or {})}
    command = [
        *(str(sdk_path() / "bin" / "dpu-upmem-dpurte-clang"), optimise, "-g", "-Wall"),
        *(f"-D{name}={value}" for name, value in macros.items()),
        *(f"-I{folder}" for folder in include),
        *(*map(str, files), "-o", str(target)),
    ]
    # Whatever the environment says, the arguments decide.
    kinds = {"PIM_EMU_TRACE": traced, "PIM_EMU_FAST": fast}
    environment = {name: value for name, value in os.environ.items() if name not in kinds}
    environment |= {name: "1" for name, wanted in kinds.items() if wanted}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise BuildError(done.stderr.strip() or f"{command[0]} failed")
    return Program(target, tasklets, done.stderr)


@functools.cache
def _programs() -> tempfile.TemporaryDirectory[str]:
    """Programs without a file of the user's: they go when the process ends."""
    return tempfile.TemporaryDirectory(prefix="pim_emu-")


def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(dir=_programs().name))


def _as_file(source: str | Path, target: Path, index: int) -> Path:
    if isinstance(source, Path) or "\n" not in source:
        return Path(source)
    path = target.with_name(f"{target.name}-{index}.c")
    path.write_text(source, encoding="utf-8")
    return path
