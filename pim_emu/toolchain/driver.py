"""Compiler driver `dpu-upmem-dpurte-clang`: clang's command line for DPU programs."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pim_emu.toolchain import gcc
from pim_emu.toolchain.compile import code_flags, compile_source, source_flags
from pim_emu.toolchain.errors import DriverError
from pim_emu.toolchain.layout import TARGET, VERSION, SdkLayout, compiler
from pim_emu.toolchain.link import link_program
from pim_emu.toolchain.options import Command, Source, parse

NAME = "dpu-upmem-dpurte-clang"
_HELP = f"""usage: {NAME} [options] file...

Compiles and links C for DPUs, to run in the emulator. Options are clang's: -c -S -E -o -I -D -U -O
-g -W... -l -L -Wl,... among them. Special to DPUs:

  -DNR_TASKLETS=N                 tasklets, 1 unless given
  -DSTACK_SIZE_DEFAULT=BYTES      stack of each tasklet
  -DSTACK_SIZE_TASKLET_N=BYTES    stack of tasklet N
  -mcpu=v1A|v1B                   generation of the DPU, v1A unless given
  -fsanitize=thread               traced: finds races and accesses outside WRAM"""
_SUFFIX = {"object": ".o", "assembly": ".s"}


def main(sdk: SdkLayout, arguments: list[str]) -> int:
    """Run the driver and return its exit status."""
    try:
        _execute(sdk, parse(arguments))
    except DriverError as error:
        if str(error):
            print(f"{NAME}: error: {error}", file=sys.stderr)
        return error.status
    except OSError as error:
        print(f"{NAME}: error: {error}", file=sys.stderr)
        return 1
    return 0


def _execute(sdk: SdkLayout, command: Command) -> None:
    if command.question:
        _answer(command.question)
        return
    if command.verbose:
        print(_version(), file=sys.stderr)
        if not command.inputs:
            return
    if not command.inputs:
        raise DriverError("no input files")
    several = len(command.sources) > 1 and command.action in _SUFFIX
    if several and command.output:
        raise DriverError("-o: cannot name the outputs of several sources")
    with tempfile.TemporaryDirectory(prefix="pim_emu-") as folder:
        scratch = Path(folder)
        if command.action in ("preprocess", "syntax"):
            _read_only(sdk, command)
        elif command.action == "link":
            _link(sdk, command, scratch)
        else:
            for source in command.sources:
                target = command.output or Path(source.path).stem + _SUFFIX[command.action]
                _compile(sdk, command, source, target, scratch)


def _compile(sdk: SdkLayout, command: Command, source: Source, target: str, scratch: Path) -> None:
    try:
        compile_source(sdk, command, source, target, scratch)
    except DriverError:
        _remove(target)
        raise


def _read_only(sdk: SdkLayout, command: Command) -> None:
    """Preprocess sources, or check their syntax, with gcc alone."""
    words = ["-E"] if command.action == "preprocess" else ["-fsyntax-only"]
    if command.output:
        words += ["-o", command.output]
    for source in command.sources:
        flags = [*source_flags(sdk, command), *command.dependency_flags, *code_flags(command)]
        gcc.run([*flags, *words, "-x", source.language, source.path], verbose=command.verbose)


def _link(sdk: SdkLayout, command: Command, scratch: Path) -> None:
    output = command.output or "a.out"
    try:
        words = []
        for index, entry in enumerate(command.inputs):
            if isinstance(entry, Source):
                folder = scratch / str(index)
                folder.mkdir()
                made = str(folder / (Path(entry.path).stem + ".o"))
                compile_source(sdk, command, entry, made, folder)
                words.append(made)
            else:
                words.append(entry)
        _put(link_program(sdk, command, words, scratch), Path(output))
    except DriverError:
        _remove(output)
        raise


def _put(program: Path, output: Path) -> None:
    """Copy a program to its output, atomically unless that is a device or pipe."""
    try:
        if output.exists() and not output.is_file():
            output.write_bytes(program.read_bytes())
            return
        with tempfile.NamedTemporaryFile(dir=output.parent, delete=False) as file:
            part = Path(file.name)
        shutil.copy(program, part)
        part.replace(output)
    except OSError as error:
        raise DriverError(f"-o {output}: cannot be written: {error.strerror}") from error


def _remove(path: str) -> None:
    if path != "-" and os.path.isfile(path):
        with contextlib.suppress(OSError):
            os.remove(path)


def _version() -> str:
    text = subprocess.run([compiler(), "--version"], capture_output=True, text=True).stdout
    first = text.splitlines()[0] if text else compiler()
    return f"pim_emu {NAME} {VERSION}, with {first}\nTarget: {TARGET}"


def _answer(question: str) -> None:
    if question == "--version":
        print(_version())
    elif question == "--help":
        print(_HELP)
    elif question == "-dumpversion":
        print(VERSION)
    elif question in ("-dumpmachine", "-print-target-triple", "-print-effective-triple"):
        print(TARGET)
    else:
        gcc.run([question], verbose=False)
