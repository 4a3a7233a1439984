"""The programs of docs/pim-emu.md compile and print what the page says they print.

Python blocks that need the page's files are marked `py`; `python` is for blocks that run as they
stand (tests/test_docs.py).
"""

import json
import os
import re
import sys
from pathlib import Path

import optional
import pytest
from emulator_page import FILE, PAGE, ROOT, all_commands, commands, is_shown, shell, write_files
from sdk_present import needs

from pim_emu.machine import available_machines
from pim_emu.sdk import sdk_path
from pim_emu.toolchain.layout import SdkLayout

NOTEBOOK = ROOT / "notebooks" / "02_a_dpu_program.ipynb"
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
    write_files(tmp_path)
    return tmp_path


@pytest.mark.long  # builds what the page builds
@needs_tools
def test_commands_print_what_the_page_shows(folder):
    for command, output in all_commands():
        printed = shell(command, folder)
        assert is_shown(printed, output), f"$ {command}\n{printed}"


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
