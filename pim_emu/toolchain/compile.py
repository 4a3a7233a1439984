"""Compilation of a C source to an object file with counting, checks and tracing."""

import os
import re
import shutil
from pathlib import Path

from pim_emu.toolchain import build, gcc
from pim_emu.toolchain.errors import DriverError
from pim_emu.toolchain.instructions import count_instructions
from pim_emu.toolchain.layout import SdkLayout
from pim_emu.toolchain.options import Command, Source
from pim_emu.toolchain.tail_calls import return_from_library

_MARK = "# DPU program, as pim_emu compiles it\n"
# A 64-bit host shows through in these, or only gcc gives them: no error of the program.
_SILENT = ("pointer-to-int-cast", "int-to-pointer-cast", "unknown-pragmas", "attributes", "psabi")
# Warnings that clang gives unasked; gcc's variants of the last two warn of more than clang's do.
_BY_DEFAULT = (
    *("return-type", "switch", "unused-value", "pointer-sign", "empty-body", "dangling-else"),
    *("sizeof-pointer-memaccess", "logical-not-parentheses", "bool-compare", "sequence-point"),
    *("tautological-compare", "nonnull", "main", "memset-transposed-args", "comment"),
    *("absolute-value", "enum-conversion"),
)
_ALSO_BY_DEFAULT = ("uninitialized", "parentheses")
_NEVER_ERRORS = (
    *("format", "format-extra-args", "format-overflow", "format-truncation", "maybe-uninitialized"),
    *("unused-but-set-variable", "unused-but-set-parameter", "stringop-overflow", "array-bounds"),
    *("stringop-overread", "stringop-truncation", "restrict", "override-init", "clobbered"),
    *("old-style-declaration", "implicit-fallthrough", "cast-function-type", "strict-aliasing"),
    *("aggressive-loop-optimizations", "type-limits", "zero-length-bounds", "nonnull", "overflow"),
    *("packed-not-aligned", "pedantic", "builtin-declaration-mismatch", "dangling-pointer"),
    "address",
)
# Warnings of clang that a newer gcc makes errors.
_ONLY_WARNINGS = (
    *("implicit-function-declaration", "int-conversion", "incompatible-pointer-types"),
    "implicit-int",
)
_NOP = re.compile(r"^[ \t]*nop[ \t]*$", re.M)
_INLINE_ASSEMBLY = re.compile(r"^#APP\n((?:.*\n)*?)#NO_APP$", re.M)


def build_flags(command: Command) -> int:
    """Return the build flags of a command's objects.

    Raises:
      DriverError: if the build is both fast and traced.
    """
    traced = command.sanitize_thread or build.is_set("PIM_EMU_TRACE")
    fast = build.is_set("PIM_EMU_FAST")
    if traced and fast:
        raise DriverError("PIM_EMU_FAST: a traced program cannot be built fast")
    if fast:
        return 0
    return build.COUNTED | build.STACKS | (build.TRACED if traced else 0)


def source_flags(sdk: SdkLayout, command: Command) -> list[str]:
    """Return the gcc flags for reading a source: headers, macros and the user's options."""
    flags = [
        *gcc.include_flags(sdk.device_include),
        *gcc.macro_flags(command.core, strict=command.strict),
    ]
    if not any("NR_TASKLETS" in word for word in command.compile_flags):
        flags.append(f"-DNR_TASKLETS={command.at_link.get('NR_TASKLETS', '1')}")
    flags += [f"-W{name}" for name in (*_BY_DEFAULT, *_ALSO_BY_DEFAULT)]
    return flags + command.compile_flags


def code_flags(command: Command) -> list[str]:
    """Return the gcc flags for generating code."""
    flags = list(gcc.CODE) if command.debug else [*gcc.CODE, "-g1"]
    # Calls that look alike stay apart: a fault names the line of its call.
    flags += ["-fno-crossjumping", "-fno-tree-tail-merge"]
    # A short loop that lies across two lines of the host's cache takes up to twice the cycles.
    flags.append("-falign-loops=64")
    kind = build_flags(command)
    if kind & build.COUNTED:
        flags += ["-fno-jump-tables", "-fno-tree-vectorize", "-fno-tree-slp-vectorize"]
    elif command.optimisation != "-O0":
        flags += ["-ftree-vectorize", "-fvect-cost-model=dynamic", "-march=native"]
    if kind & build.STACKS:
        flags.append("-fsplit-stack")
    if kind & build.TRACED:
        flags += ["-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0"]
        flags.append("--param=tsan-distinguish-volatile=1")
        # What is expanded in line is not reported.
        flags += [f"-fno-builtin-{name}" for name in ("memcpy", "memmove", "memset", "memcmp")]
    flags += [f"-Wno-{name}" for name in _SILENT]
    if "-Werror" not in command.compile_flags:
        return flags + [f"-Wno-error={name}" for name in _ONLY_WARNINGS]
    asked = "-Wall" in command.compile_flags
    lenient = _NEVER_ERRORS if asked else (*_NEVER_ERRORS, *_ALSO_BY_DEFAULT)
    return flags + [f"-Wno-error={name}" for name in lenient]


def compile_source(
    sdk: SdkLayout, command: Command, source: Source, target: str, scratch: Path
) -> None:
    """Compile a source to an object file, or to assembly if the command asks for it.

    Args:
      sdk: the folder with the headers.
      command: the options.
      source: source to compile.
      target: file to write; "-" for standard output.
      scratch: folder for intermediate files.

    Raises:
      DriverError: if gcc refuses the source, or it holds assembly.
    """
    assembly = scratch / "source.s"
    if source.language == "assembly":
        assembly = Path(source.path)
        if not assembly.read_text(encoding="utf-8", errors="replace").startswith(_MARK):
            raise DriverError(f"{source.path}: assembly of the DPU; the emulator compiles C only")
    else:
        words = ["-S", "-x", source.language, source.path, "-o", str(assembly)]
        words += _dependency_flags(command, source, target)
        gcc.run(
            [*source_flags(sdk, command), *code_flags(command), *words], verbose=command.verbose
        )
        _finish_assembly(assembly, source, build_flags(command))
    if command.action != "assembly":
        gcc.run(["-c", "-x", "assembler", str(assembly), "-o", target], verbose=command.verbose)
    elif target == "-":
        print(assembly.read_text(encoding="utf-8", errors="replace"), end="")
    else:
        shutil.copyfile(assembly, target)


def _finish_assembly(assembly: Path, source: Source, kind: int) -> None:
    """Refuse inline assembly, add counting, and record the build flags."""
    text = assembly.read_text(encoding="utf-8", errors="surrogateescape")
    for match in _INLINE_ASSEMBLY.finditer(text):
        place = re.search(r'^# (\d+) "([^"]*)"', match[1], re.M)
        if any(_is_assembly(line) for line in match[1].splitlines()):
            where = f"{place[2]}:{place[1]}" if place else source.path
            raise DriverError(f"{where}: inline assembly of the DPU; the emulator compiles C only")
    if kind & build.COUNTED:
        # The compiler's own nop is free; a program's, under another name, is not.
        text = _INLINE_ASSEMBLY.sub(lambda match: _NOP.sub("\tfnop", match[0]), text)
        text = count_instructions(text)
    text = return_from_library(text)
    note = f'\t.section\t.emu.build,"",@progbits\n\t.long\t{kind}\n'
    assembly.write_text(_MARK + text + note, encoding="utf-8", errors="surrogateescape")


def _is_assembly(line: str) -> bool:
    """Return whether a line is an instruction: not gcc's own lines about places, nor a nop."""
    word = line.strip()
    # A semicolon would begin another instruction.
    return word not in ("", "nop") and not re.fullmatch(r"# .*|\.loc[ \t][^;]*", word)


def _dependency_flags(command: Command, source: Source, target: str) -> list[str]:
    """Return the options of the dependency file, named as if gcc made the object in one step."""
    flags = list(command.dependency_flags)
    if not {"-MD", "-MMD"} & set(flags):
        return flags
    final = target
    if command.action == "link":
        final = command.output or Path(source.path).with_suffix(".o").name
    if "-MF" not in flags:
        flags += ["-MF", os.path.splitext(final)[0] + ".d"]
    if not {"-MT", "-MQ"} & set(flags):
        flags += ["-MQ", final]
    return flags
