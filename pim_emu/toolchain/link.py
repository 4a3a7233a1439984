"""Linking of object files to a DPU program, and checks that it fits its machine."""

import os
import re
import struct
import sys
from pathlib import Path

from pim_emu.machine import Machine
from pim_emu.toolchain import build, gcc
from pim_emu.toolchain.elf import ALLOCATED, ElfFile
from pim_emu.toolchain.errors import DriverError
from pim_emu.toolchain.layout import SdkLayout, machine_of, most_mutexes
from pim_emu.toolchain.options import Command

_DEFAULT_STACK = 1024
_STACK_MULTIPLE = 8
_TABLE = 24  # EMU_MOST_TASKLETS of abi.h
_MRAM_BASE = 0x0800_0000
_BUILD_OFFSET = 8  # of `build` in struct emu_info
_PLACED = {
    *(".mram", ".mram.noinit", ".text", ".emu.env", ".emu.info", ".atomic", ".wram", ".wram.zero")
}


def link_program(sdk: SdkLayout, command: Command, words: list[str], scratch: Path) -> Path:
    """Link and check a program.

    Args:
      sdk: the folder with the run-time library.
      command: the options, with the number of tasklets and the stack sizes.
      words: object files and linker options, in order.
      scratch: folder for intermediate files and the program.

    Returns:
      The program, in `scratch`.

    Raises:
      DriverError: if the linker fails, or the program does not fit.
    """
    machine = machine_of(command.core)
    tasklets = _tasklets(command, machine)
    stacks = _stacks(command, tasklets)
    objects = _kinds_of_objects(words)
    info, program = scratch / "info.o", scratch / "program"
    gcc.run(
        [
            *(*gcc.CODE, *gcc.include_flags(sdk.device_include)),
            *(f"-DEMU_NR_TASKLETS={tasklets}", f"-DEMU_STACK_BYTES={','.join(map(str, stacks))}"),
            *("-c", str(sdk.device / "runtime" / "info.c"), "-o", str(info)),
        ],
        verbose=command.verbose,
    )
    script = sdk.device / "program.ld"
    options = "--emit-relocs,--no-relax,--gc-sections,--build-id=none,--no-check-sections"
    libraries = [_library(word, command) for word in words]
    gcc.run(
        [
            *("-nostdlib", "-static", "-no-pie", f"-Wl,-T,{script},{options}", "-o", str(program)),
            *(*libraries, str(info), str(sdk.runtime_library), "-lgcc"),
        ],
        verbose=command.verbose,
    )
    elf = ElfFile(program)
    _check(elf, machine, stacks)
    _write_build(elf, program, objects)
    return program


def _library(word: str, command: Command) -> str:
    """Return the archive that `-l` names, from the user's folders, never from the host's."""
    if not word.startswith("-l"):
        return word
    for folder in command.library_folders:
        path = Path(folder) / f"lib{word[2:]}.a"
        if path.exists():
            return str(path)
    raise DriverError(f"{word}: no lib{word[2:]}.a in the folders given with -L")


def _number(command: Command, name: str, default: int) -> int:
    text = command.at_link.get(name, str(default))
    match = re.fullmatch(r"\(?(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\)?", text)
    if not match:
        raise DriverError(f"{name}: must be a number, got '{text}'")
    return int(match[1], 0 if match[1][:2].lower() == "0x" else 10)


def _tasklets(command: Command, machine: Machine) -> int:
    tasklets, most = _number(command, "NR_TASKLETS", 1), machine.max_tasklets
    if tasklets > most:
        raise DriverError(
            f"too many tasklets: NR_TASKLETS is {tasklets}, machine {machine.name} has {most}"
        )
    if tasklets < 1:
        raise DriverError(f"NR_TASKLETS: must be 1 to {most}, got {tasklets}")
    return tasklets


def _stacks(command: Command, tasklets: int) -> list[int]:
    """Return the bytes of each stack; explicitly sized stacks of unused tasklets count too."""
    default = _number(command, "STACK_SIZE_DEFAULT", _DEFAULT_STACK)
    stacks = [default] * tasklets + [0] * (_TABLE - tasklets)
    sizes = {"STACK_SIZE_DEFAULT": default}
    for name in command.at_link:
        if name.startswith("STACK_SIZE_TASKLET_"):
            tasklet = int(name.removeprefix("STACK_SIZE_TASKLET_"))
            if tasklet >= _TABLE:
                raise DriverError(f"{name}: tasklets are numbered 0 to {_TABLE - 1}")
            sizes[name] = stacks[tasklet] = _number(command, name, default)
    for name, size in sizes.items():
        if size % _STACK_MULTIPLE != 0:
            raise DriverError(f"{name}: must be a multiple of {_STACK_MULTIPLE}, got {size}")
    return stacks


def _check(elf: ElfFile, machine: Machine, stacks: list[int]) -> None:
    """Check the program against the machine's limits."""
    for section in elf.sections:
        if section.flags & ALLOCATED and section.size and section.name not in _PLACED:
            raise DriverError(f"section '{section.name}': names with a dot are the compiler's own")
    symbols = elf.symbols()
    statics = symbols["__emu_wram_end"] - symbols["__emu_wram_start"]
    if statics + sum(stacks) > machine.wram_bytes:
        raise DriverError(
            f"WRAM overflow: globals {statics:,} B + stacks {sum(stacks):,} B exceed "
            f"{machine.wram_bytes:,} B"
        )
    mram = symbols["__sys_used_mram_end"] - _MRAM_BASE
    if mram > machine.mram_bytes:
        raise DriverError(f"MRAM overflow: variables {mram:,} B exceed {machine.mram_bytes:,} B")
    mutexes = symbols["__emu_atomic_library"] - symbols["__emu_atomic_start"]
    if mutexes > most_mutexes(machine):
        raise DriverError(
            f"too many mutexes: the program has {mutexes}, a DPU {most_mutexes(machine)}"
        )
    estimate = sum(elf.words(".emu.iram"))
    if estimate > machine.iram_instructions:
        print(
            f"warning: IRAM: the program has about {estimate:,} instructions, a DPU room for "
            f"{machine.iram_instructions:,}; this is an estimate from the host's machine code",
            file=sys.stderr,
        )


def _write_build(elf: ElfFile, program: Path, objects: dict[str, int]) -> None:
    kinds = elf.words(".emu.build")
    if len({kind & build.TRACED for kind in kinds}) > 1:
        named = ", ".join(f"{name} is {build.describe(kind)}" for name, kind in objects.items())
        raise DriverError(
            f"traced and other objects cannot be linked together; compile all anew: {named}"
        )
    # A program has what all of its objects have.
    common = build.COUNTED | build.STACKS | build.TRACED if kinds else 0
    for kind in kinds:
        common &= kind
    info = elf.section(".emu.info")
    assert info is not None  # of info.c
    with program.open("r+b") as file:
        file.seek(info.offset + _BUILD_OFFSET)
        file.write(struct.pack("<I", common))


def _kinds_of_objects(words: list[str]) -> dict[str, int]:
    """Return the build flags of each object file; refuse objects of other compilers."""
    found = {}
    for word in words:
        if not word.endswith(".o") or word.startswith("-"):
            continue
        try:
            kinds = ElfFile(Path(word)).words(".emu.build")
        except ValueError as error:
            raise DriverError(str(error)) from error
        if not kinds:
            raise DriverError(f"{word}: not an object file of this compiler")
        found[os.path.basename(word)] = kinds[0]
    return found
