"""`python -m pim_emu`: where the SDK folder is."""

import argparse
import sys

from pim_emu.sdk import SdkError, sdk_path
from pim_emu.toolchain.layout import VERSION


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m pim_emu", description=__doc__)
    questions = parser.add_mutually_exclusive_group(required=True)
    questions.add_argument("--sdk-path", action="store_true", help="print the SDK folder")
    questions.add_argument(
        "--env", action="store_true", help="print shell commands that put the SDK first in PATH"
    )
    questions.add_argument(
        "--version", action="version", version=VERSION, help="print the version of the interface"
    )
    chosen = parser.parse_args(arguments)
    try:
        folder = sdk_path()
    except SdkError as error:
        print(f"pim_emu: {error}", file=sys.stderr)
        return 1
    if chosen.env:
        print(f"export UPMEM_HOME='{folder}'\nexport PATH=\"$UPMEM_HOME/bin:$PATH\"")
    else:
        print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
