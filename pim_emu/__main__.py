"""The command `pim-emu`, also `python -m pim_emu`: the SDK folder, its environment, and checks."""

import argparse
import os
import sys

import pim_emu
from pim_emu.sdk import SdkError, sdk_path
from pim_emu.toolchain.layout import VERSION, SdkLayout

_ENDING = """Before another command: eval "$(pim-emu env)"; make; ./app
Without changing the shell: pim-emu run make; pim-emu run ./app"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.command is None:
        parser.error("name a command")
    if chosen.command == "doctor":
        from pim_emu.doctor import diagnose

        return diagnose()
    try:
        sdk = SdkLayout(sdk_path())
    except SdkError as error:
        print(f"pim-emu: {error}", file=sys.stderr)
        return 1
    if chosen.command == "run":
        return _run(sdk, chosen.words)
    if chosen.command == "env":
        print(sdk.environment.read_text(encoding="utf-8"), end="")
    else:
        print(sdk.root)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pim-emu",
        description="UPMEM programs without UPMEM hardware.",
        epilog=_ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"pim_emu {pim_emu.__version__}, interface of UPMEM's SDK {VERSION}"
    parser.add_argument("--version", action="version", version=version, help="print the version")
    # Older spellings of two commands.
    for name in ("sdk-path", "env"):
        parser.add_argument(
            f"--{name}", dest="command", action="store_const", const=name, help=argparse.SUPPRESS
        )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("env", help="print shell commands that put the SDK first in the paths")
    commands.add_parser("sdk-path", help="print the SDK folder; build it at the first use")
    run = commands.add_parser(
        "run", help="run a program with the SDK first in the paths", usage="pim-emu run PROGRAM ..."
    )
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="PROGRAM ...")
    commands.add_parser("doctor", help="check that DPU programs can be built and run here")
    return parser


def _run(sdk: SdkLayout, words: list[str]) -> int:
    """Replace this process by the program; return a shell's status where there is none."""
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        print("pim-emu run: name a program", file=sys.stderr)
        return 2
    os.environ.update(sdk.variables(os.environ))
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print(f"pim-emu run: {words[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main())
