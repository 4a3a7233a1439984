"""The programs of docs/pim-emu.md compile and print what the page says they print.

Blocks under a file's name are written to that file, and the commands of `console` blocks run in
their order. Python blocks that need these files are marked `py`; `python` is for blocks that run as
they stand (tests/test_docs.py). Figures that follow from gcc's code may differ by a tenth.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import optional
import pytest
from sdk_present import needs

from pim_emu.machine import available_machines
from pim_emu.sdk import sdk_path
from pim_emu.toolchain.layout import SdkLayout

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "pim-emu.md").read_text(encoding="utf-8")
NOTEBOOK = ROOT / "notebooks" / "02_a_dpu_program.ipynb"

FILE = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
DEBUGGER = re.compile(r"^```gdb\n(.*?)^```$", re.DOTALL | re.MULTILINE)

needs_tools = needs("gcc", "g++", "cc", "make")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the page's files, and the environment that the page asks for."""
    for name in [name for name in os.environ if name.startswith(("PIM_EMU_", "UPMEM_", "MAKE"))]:
        if name != "PIM_EMU_CACHE":
            monkeypatch.delenv(name)
    monkeypatch.delenv("CC", raising=False)
    python = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for name, value in SdkLayout(sdk_path()).variables({**os.environ, "PATH": python}).items():
        monkeypatch.setenv(name, value)
    for name, text in FILE.findall(PAGE):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def shell(command, folder):
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=120,
    )  # fmt: skip
    return done.stdout


def commands(block):
    """Pairs of a command and what the page shows as its output."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert parts[0] == ""
    return list(zip(parts[1::2], parts[2::2], strict=True))


def modelled(text):
    """The figures that another gcc or another price of an instruction would change."""
    lines = [line for line in text.splitlines() if "cycles" in line or "modelled" in line]
    return [float(figure) for figure in re.findall(r"\d[\d.e-]*", "".join(lines))]


def masked(text):
    """The text without them."""
    lines = []
    for line in text.splitlines():
        if "cycles" in line or "modelled" in line:
            line = re.sub(r"\d[\d.e-]*", "#", line)
        elif line.startswith("race:"):  # who comes first
            line = re.sub(r"tasklet \d+", "tasklet #", line)
        lines.append(re.sub(r"(a frame of|globals) [\d,]+ B", r"\1 # B", line))
    return lines


@pytest.mark.long  # builds what the page builds
@needs_tools
def test_commands_print_what_the_page_shows(folder):
    shown = [pair for block in CONSOLE.findall(PAGE) for pair in commands(block)]
    assert len(shown) > 10
    for command, output in shown:
        printed = shell(command, folder)
        assert masked(printed) == masked(output), command
        assert modelled(printed) == pytest.approx(modelled(output), rel=0.1), command


@needs_tools
@optional.needs("gdb")
def test_gdb_finds_what_the_page_shows(folder):
    [block] = DEBUGGER.findall(PAGE)
    before, *steps = re.split(r"^\(gdb\) ", block, flags=re.MULTILINE)
    (make, _), (start, _) = commands(before)
    shell(make, folder)
    steps = [step.partition("\n")[::2] for step in steps]
    (folder / "session.gdb").write_text("".join(f"{step}\n" for step, _ in steps))
    printed = shell(start.replace("gdb -q", "gdb -q -nx -batch -x session.gdb"), folder)
    if "ptrace" in printed and "not permitted" in printed:
        pytest.skip("processes cannot be traced here")
    for _, output in steps:
        assert output.strip() in printed, printed


def test_every_variable_is_documented():
    sources = [path for path in (ROOT / "pim_emu").rglob("*") if path.suffix in (".c", ".py")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    settings = PAGE.partition("## Settings")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(PIM_EMU_[A-Z]+)`", settings, re.MULTILINE))
    assert documented == set(re.findall(r'"(PIM_EMU_[A-Z]+)"', text))


def test_every_fault_and_machine_is_documented():
    text = (ROOT / "pim_emu" / "native" / "engine" / "fault.c").read_text(encoding="utf-8")
    names = set(re.findall(r'\[EMU_FAULT_\w+\] = "(.+?)"', text)) - {"no fault"}
    table = PAGE.partition("| fault | what happened |")[2].partition("\n\n")[0]
    documented = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
    assert names == {name for row in documented for name in row.split(", ")} - {"---"}
    assert all(f"`{machine}`" in PAGE for machine in available_machines())


def test_the_notebook_has_the_same_program():
    files = dict(FILE.findall(PAGE))
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    parts = re.findall(r'VECTOR_ADD \+?= r"""\n(.*?)"""', "\n".join(cells), re.DOTALL)
    assert "".join(parts).split() == files["vector_add.c"].split()
