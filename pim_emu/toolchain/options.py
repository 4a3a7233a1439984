"""Parser of the driver's command line: clang's options, sorted by their handling."""

import dataclasses
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from pim_emu.toolchain.errors import DriverError

# Options whose value may be the next word.
_TO_GCC = {"-I", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "--param"}
_DEPENDENCIES = {"-MF", "-MT", "-MQ"}
_DROPPED_WITH_VALUE = {
    *("-mllvm", "-Xclang", "-Xassembler", "-target", "-arch", "-resource-dir", "-isysroot", "-MJ"),
    *("--sysroot", "-z", "-u", "-gcc-toolchain", "-working-directory", "-dumpbase", "-dumpdir"),
}
_DROPPED = re.compile(
    r"""-flto.* | -f(no-)?(pic|pie|PIC|PIE) | -(no-)?pie | -fuse-ld=.* | -static | -save-temps.*
      | -nostdlib | -nostartfiles | -nodefaultlibs | -nostdinc | -nostdlibinc | -rdynamic | -s
      | -f(no-)?integrated-as | -fcolor-diagnostics | -fno-color-diagnostics | -Qunused-arguments
      | -fstack-size-section | -fansi-escape-codes | -fdiagnostics-format=.* | --driver-mode=.*
      | -f(no-)?split-stack | -ffixed-.* | -m(?!cpu).* | --target=.* | --sysroot=.* | -pthread
      | -ccc-.* | -pg | -p | -fprofile.* | -fcoverage.* | -no-canonical-prefixes | -no-integrated-as
      | -f(no-)?asynchronous-unwind-tables | -f(no-)?jump-tables | -fstack-protector.*
      | -f(no-)?sanitize-.* | -fno-sanitize=.* | -fcf-protection.* | -Q
      | -f(no-)?plt | -finstrument-functions""",
    re.VERBOSE,
)
_REFUSED = {
    "-shared": "DPU programs are linked whole",
    "-r": "DPU programs are linked whole",
    "-emit-llvm": "there is no LLVM here: the programs are compiled by gcc",
}
_DROPPED_BY_LINKER = {"-s", "-S", "--strip-all", "--strip-debug"}  # the engine reads both
_ACTIONS = {"-c": "object", "-S": "assembly", "-E": "preprocess", "-fsyntax-only": "syntax"}
_C = {".c": "c", ".i": "cpp-output", ".s": "assembly"}
_OTHER_LANGUAGES = {
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".c++", ".C", ".ii", ".cp"), "C++"),
    **dict.fromkeys((".S", ".sx", ".asm"), "assembly of the DPU"),
    **dict.fromkeys((".ll", ".bc"), "LLVM's language"),
}
_LANGUAGES = {"c": "c", "cpp-output": "cpp-output", "assembler": "assembly", "none": None}
_DEFINED_AT_LINK = re.compile(r"(NR_TASKLETS|STACK_SIZE_DEFAULT|STACK_SIZE_TASKLET_\d+)=(.*)", re.S)


@dataclasses.dataclass(frozen=True)
class Source:
    """Source file to compile."""

    path: str
    language: str  # of gcc's -x, or "assembly" (made by the driver itself)


@dataclasses.dataclass
class Command:
    """Parsed command line."""

    action: str = "link"  # or one of the values of _ACTIONS
    output: str | None = None
    sources: list[Source] = dataclasses.field(default_factory=list)
    # Sources, and words for the linker, in their order.
    inputs: list[Source | str] = dataclasses.field(default_factory=list)
    compile_flags: list[str] = dataclasses.field(default_factory=list)
    dependency_flags: list[str] = dataclasses.field(default_factory=list)
    library_folders: list[str] = dataclasses.field(default_factory=list)
    at_link: dict[str, str] = dataclasses.field(default_factory=dict)  # NR_TASKLETS, STACK_SIZE_*
    core: str | None = None
    optimisation: str = "-O0"
    strict: bool = False  # ISO C: the macro DPU is not defined
    debug: bool = False  # the user wants more than line tables
    sanitize_thread: bool = False
    verbose: bool = False
    question: str | None = None  # --version and the like: nothing is compiled


def expand_response_files(words: list[str]) -> Iterator[str]:
    """Yield the words, with each `@file` replaced by the words of that file."""
    for word in words:
        path = Path(word[1:])
        if word.startswith("@") and path.is_file():
            yield from expand_response_files(shlex.split(path.read_text(encoding="utf-8")))
        else:
            yield word


def parse(arguments: list[str]) -> Command:
    """Parse a command line.

    Raises:
      DriverError: if an option lacks its value or is not supported.
    """
    command = Command()
    language: str | None = None
    words = expand_response_files(arguments)

    def value_of(option: str) -> str:
        try:
            return next(words)
        except StopIteration:
            raise DriverError(f"{option}: its value is missing") from None

    for word in words:
        prefix = word[:2]
        if word == "-" or not word.startswith("-"):
            _add_input(command, word, language)
        elif word in _REFUSED:
            raise DriverError(f"{word}: {_REFUSED[word]}")
        elif word in _ACTIONS:
            command.action = _ACTIONS[word]
        elif prefix == "-o":
            command.output = word[2:] or value_of(word)
        elif prefix == "-x":
            language = _language(word[2:] or value_of(word))
        elif prefix == "-l":
            command.inputs.append("-l" + (word[2:] or value_of(word)))
        elif prefix == "-L":
            command.library_folders.append(word[2:] or value_of(word))
        elif word == "-Xlinker":
            _add_linker_words(command, [value_of(word)])
        elif word.startswith("-Wl,"):
            _add_linker_words(command, word.split(",")[1:])
        elif prefix == "-T":
            raise DriverError("-T: DPU programs are linked with the emulator's own script")
        elif word in _DROPPED_WITH_VALUE:
            value_of(word)
        elif word in _DEPENDENCIES:
            command.dependency_flags += [word, value_of(word)]
        elif word.startswith("-M"):
            command.dependency_flags.append(word)
        elif word in _TO_GCC:
            _add_compile_flag(command, word, value_of(word))
        elif word in ("-v", "--verbose", "-###"):
            command.verbose = True
        elif word in ("--help", "--version", "-dumpversion", "-dumpmachine") or word.startswith(
            "-print-"
        ):
            command.question = word
        elif word.startswith("-fsanitize="):
            _set_sanitizer(command, word)
        elif word.startswith("-mcpu="):
            command.core = word.removeprefix("-mcpu=")
        elif not _DROPPED.fullmatch(word):
            _add_compile_flag(command, word, None)
    if {"-M", "-MM"} & set(command.dependency_flags):
        command.action = "preprocess"
    return command


def _add_input(command: Command, path: str, language: str | None) -> None:
    suffix = Path(path).suffix
    if language is None and suffix in _OTHER_LANGUAGES:
        raise DriverError(f"{path}: {_OTHER_LANGUAGES[suffix]}; the emulator compiles C only")
    if language is None and path == "-":
        language = "c" if command.action == "preprocess" else None
        if language is None:
            raise DriverError("-: the language of standard input must be given with -x")
    if path != "-" and not Path(path).exists():
        raise DriverError(f"{path}: no such file")
    kind = language or _C.get(suffix)
    if kind is None:
        command.inputs.append(path)
        return
    source = Source(path, kind)
    command.sources.append(source)
    command.inputs.append(source)


def _language(name: str) -> str | None:
    if name not in _LANGUAGES:
        raise DriverError(f"-x {name}: the emulator compiles C only")
    return _LANGUAGES[name]


def _add_linker_words(command: Command, words: list[str]) -> None:
    for word in re.sub(r"(^|,)(--?defsym),", r"\1\2=", ",".join(words)).split(","):
        definition = _DEFINED_AT_LINK.fullmatch(re.sub(r"^--?defsym=", "", word))
        if definition:
            command.at_link[definition[1]] = definition[2]
        elif word in ("-T", "--script") or word.startswith(("-T", "--script=")):
            raise DriverError(f"{word}: DPU programs are linked with the emulator's own script")
        elif word not in _DROPPED_BY_LINKER and not word.startswith(("--lto", "-plugin")):
            command.inputs.append(f"-Wl,{word}")


def _add_compile_flag(command: Command, word: str, value: str | None) -> None:
    text = word + (value or "")
    definition = _DEFINED_AT_LINK.fullmatch(text, 2)
    if text.startswith("-D") and definition:
        command.at_link[definition[1]] = definition[2]
    if word.lstrip("-").startswith("std=") or word == "-ansi":
        command.strict = "gnu" not in word
        # In ISO C, gcc has no address spaces and so no MRAM pointers.
        word = "-std=gnu89" if word == "-ansi" else re.sub(r"=(c|iso9899:)", "=gnu", word)
        word = {"-std=gnu1990": "-std=gnu90", "-std=gnu1999": "-std=gnu99"}.get(word, word)
        word = {"-std=gnu2011": "-std=gnu11", "-std=gnu2017": "-std=gnu17"}.get(word, word)
    elif re.fullmatch(r"-O.*", word):
        word = {"-Oz": "-Os", "-O4": "-O3"}.get(word, word)
        command.optimisation = word
    elif re.fullmatch(r"-g(?!line|mlt)(?!.*0$).*", word):
        command.debug = True
        word = "-g" if word in ("-glldb", "-gsce", "-gfull", "-gused", "-gdbx") else word
    elif word.startswith("-g"):
        command.debug = False
        return
    elif word == "-Weverything":
        command.compile_flags.append("-Wall")
        word = "-Wextra"
    command.compile_flags += [word] if value is None else [word, value]


def _set_sanitizer(command: Command, word: str) -> None:
    if word != "-fsanitize=thread":
        raise DriverError(f"{word}: DPU programs can be built with -fsanitize=thread only")
    command.sanitize_thread = True
