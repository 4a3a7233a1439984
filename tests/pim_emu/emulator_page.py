"""The programs of docs/pim-emu.md, its commands, and what these print.

Blocks under a file's name are files; the commands of `console` blocks run in their order. Figures
that follow from gcc's code may differ by a tenth. As a script, with nothing but the standard
library: write the files to a new folder, run the commands there, and fail at the first that prints
something else. `pim-emu env` must have been evaluated.
"""

import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "pim-emu.md").read_text(encoding="utf-8")

FILE = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def write_files(folder):
    """Write the page's files to a folder."""
    for name, text in FILE.findall(PAGE):
        (folder / name).write_text(text, encoding="utf-8")


def shell(command, folder):
    """Return what a command prints to stdout and stderr in a folder."""
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=120,
    )  # fmt: skip
    return done.stdout


def commands(block):
    """Return pairs of a command and what the page shows as its output."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert parts[0] == ""
    return list(zip(parts[1::2], parts[2::2], strict=True))


def all_commands():
    """Return the pairs of all `console` blocks."""
    pairs = [pair for block in CONSOLE.findall(PAGE) for pair in commands(block)]
    assert len(pairs) > 10, "docs/pim-emu.md has lost its console blocks"
    return pairs


def modelled(text):
    """Return the figures that another gcc or another price of an instruction would change."""
    lines = [line for line in text.splitlines() if "cycles" in line or "modelled" in line]
    return [float(figure) for figure in re.findall(r"\d[\d.e-]*", "".join(lines))]


def masked(text):
    """Return the lines without these figures."""
    lines = []
    for line in text.splitlines():
        if "cycles" in line or "modelled" in line:
            line = re.sub(r"\d[\d.e-]*", "#", line)
        elif line.startswith("race:"):  # who comes first
            line = re.sub(r"tasklet \d+", "tasklet #", line)
        lines.append(re.sub(r"(a frame of|globals) [\d,]+ B", r"\1 # B", line))
    return lines


def is_shown(printed, shown):
    """Return whether a command printed what the page shows."""
    figures = zip(modelled(printed), modelled(shown), strict=False)  # as many: the masks are equal
    return masked(printed) == masked(shown) and all(
        math.isclose(figure, other, rel_tol=0.1) for figure, other in figures
    )


def main():
    """Run the page."""
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        for command, shown in all_commands():
            printed = shell(command, folder)
            if not is_shown(printed, shown):
                sys.exit(f"$ {command}\n{printed}docs/pim-emu.md shows:\n{shown}")
            print("as shown:", command)


if __name__ == "__main__":
    main()
