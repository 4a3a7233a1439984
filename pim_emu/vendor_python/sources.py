"""Programs to load: files, bytes, and C sources to compile."""

import os
from pathlib import Path
from typing import Protocol

from pim_emu.arguments import shown
from pim_emu.host_library import DpuError
from pim_emu.program import BuildError, build, own_folder, program_path


class Readable(Protocol):
    """Open text file."""

    def read(self) -> str:
        """Return the rest of its text."""


Source = str | os.PathLike[str] | Readable
Sources = Source | list[Source]
Binary = str | os.PathLike[str] | bytes | bytearray | memoryview


def binary_file(binary: Binary) -> Path:
    """Return the file of a binary, which is written if given as bytes.

    Raises:
      DpuError: if it is source code.
      TypeError: if it is neither a path nor bytes.
    """
    if isinstance(binary, bytes | bytearray | memoryview):
        path = own_folder() / "program"
        path.write_bytes(binary)
        return path
    if not isinstance(binary, str | os.PathLike):
        raise TypeError(f"binary must be a path or bytes, got {shown(binary)}")
    try:
        return program_path(os.fspath(binary))
    except ValueError as error:
        raise DpuError(f"binary: {error}") from None


def compiled(sources: Sources) -> Path:
    """Compile C sources for one tasklet, at -O2, and return the program.

    Raises:
      DpuError: if they do not compile, or a file does not exist.
    """
    listed = sources if isinstance(sources, list) else [sources]
    try:
        return build([_source(each, index) for index, each in enumerate(listed)]).path
    except (BuildError, FileNotFoundError, ValueError) as error:
        raise DpuError(f"c_source: {error}") from error


def _source(source: Source, index: int) -> Path:
    if isinstance(source, str | os.PathLike):
        return Path(source)
    if not callable(getattr(source, "read", None)):
        raise TypeError(
            f"c_source must be a path, an open file, or a list of them, got {shown(source)}"
        )
    path = own_folder() / f"source-{index}.c"
    path.write_text(source.read(), encoding="utf-8")
    return path
