"""docs/upmem-backend.md holds: excerpts are in the sources, and its programs print what it shows.

A block of C or C++ under the name of a file below kernels/ is an excerpt of that file. Other blocks
under a file's name are written to that file, and the commands of `console` blocks run in their
order. Figures that are modelled follow from gcc's code, and may differ by a tenth.
"""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sdk_present import needs
from transitions import synthetic

from accel_rl import cache, pim, tabular
from accel_rl.pim import upmem
from accel_rl.pim.upmem import build, sdk, toolkit
from accel_rl.types import TabularTransition
from pim_emu.sdk import sdk_path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "upmem-backend.md").read_text(encoding="utf-8")

FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
C_BLOCK = re.compile(r"^([^\n]*)\n\n```(?:c|cpp)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FIGURE = re.compile(r"\d[\d.,]*")
FOREIGN = ("PIM_EMU_", "UPMEM_", "ACCEL_RL_UPMEM", "CMAKE_", "MAKE", "JAX_NUMPY", "XLA_FLAGS")

needs_tools = needs("gcc", "g++")


# --- Excerpts ---


def misquoted(page):
    """What is wrong with a page's blocks of C and C++."""
    programs = dict(FILE.findall(page))
    for above, text in C_BLOCK.findall(page):
        name = above.removeprefix("`").removesuffix("`:")
        source = ROOT / name
        if name in programs:
            continue
        if not name.startswith("kernels/") or not source.is_file():
            yield f"{above!r} names no source"
        elif f"\n{text}" not in f"\n{source.read_text(encoding='utf-8')}":
            yield f"{name} does not hold:\n{text}"


def test_excerpts_are_in_the_sources():
    assert len(C_BLOCK.findall(PAGE)) > 20
    assert list(misquoted(PAGE)) == []


@pytest.mark.parametrize(
    ("shown", "other"),
    [
        ("    barrier_wait(&everybody);\n", "     barrier_wait(&everybody);\n"),
        ("`kernels/upmem/dpu/state.h`:", "`kernels/upmem/dpu/rows.h`:"),
        ("`kernels/upmem/dpu/state.h`:", "Variables:"),
        ("`kernels/upmem/dpu/state.h`:", "`kernels/none.h`:"),
    ],
)
def test_a_wrong_excerpt_is_found(shown, other):
    assert shown in PAGE
    found = set(misquoted(PAGE.replace(shown, other, 1))) - set(misquoted(PAGE))
    assert len(found) == 1


# --- Programs ---


def commands(page):
    """Pairs of a command and what the page shows as its output."""
    for block in CONSOLE.findall(page):
        before, *parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
        assert before == ""
        yield from zip(parts[::2], parts[1::2], strict=True)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each command prints in a folder with the page's files; the last of them is lake's."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in FILE.findall(PAGE):
        (folder / name).write_text(text, encoding="utf-8")
    kept = {
        k: v for k, v in os.environ.items() if k == "PIM_EMU_CACHE" or not k.startswith(FOREIGN)
    }
    path = [str(sdk_path() / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = kept | {
        "PATH": os.pathsep.join(path), "KERNELS": str(ROOT / "kernels"),
        "ACCEL_RL_UPMEM": "emulator",
    }  # fmt: skip
    found = {"folder": folder}
    for command, _ in commands(PAGE):
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=environment, text=True, timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}:\n{done.stdout}"
        found[command] = done.stdout
    return found


def is_modelled(line):
    return "modelled" in line or "overflow" in line


def masked(text):
    """The lines, without the figures that another gcc would change."""
    return [FIGURE.sub("#", line) if is_modelled(line) else line for line in text.splitlines()]


def modelled(text):
    """These figures."""
    lines = [line for line in text.splitlines() if is_modelled(line)]
    return [float(figure.replace(",", "")) for figure in FIGURE.findall("\n".join(lines))]


@pytest.mark.slow  # builds what the page builds
@needs_tools
def test_commands_print_what_the_page_shows(printed):
    shown = list(commands(PAGE))
    assert len(shown) >= 6
    for command, output in shown:
        assert masked(printed[command]) == masked(output), command
        assert modelled(printed[command]) == pytest.approx(modelled(output), rel=0.1), command


@pytest.mark.long  # builds what the page builds
@needs_tools
def test_the_program_in_cpp_learns_what_train_learns(printed):
    state, action, reward, next_state, ended = np.loadtxt(
        printed["folder"] / "rows.txt", np.int32, unpack=True
    )
    rows = TabularTransition(
        state, action, reward.astype(np.float32), next_state,
        (1 - ended).astype(np.float32), np.zeros_like(state),
    )  # fmt: skip
    result = pim.train(
        pim.partition(rows, 8, 16, 4),
        rule=tabular.q_learning(tabular.int32_scaled()),
        schedule=pim.MergeSchedule(passes=20, merge="mean"),
        backend="jax",
    )
    [lake] = [output for command, output in printed.items() if "lake build/" in command]
    np.testing.assert_array_equal(np.array(lake.split(), np.int32), result.tables.reshape(-1))
    assert np.count_nonzero(result.tables) > 40


@pytest.mark.long  # trains as the whole tutorial does
@needs_tools
def test_the_example_of_the_tutorial_runs():
    """The part that docs' tests leave out, as it takes a compiler, after what comes before it."""
    page = ROOT / "docs" / "tutorials" / "train-on-pim.md"
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(python|py)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    [last] = [each for each, (kind, block) in enumerate(blocks) if "recording()" in block]
    names = {}
    for _, block in blocks[: last + 1]:
        exec(compile(block, page, "exec"), names)
    assert names["recorded"].report.launches > 1


# --- Tables ---


def first_column(header):
    """The names in the first column of the table with this header."""
    table = PAGE.partition(f"| {header} |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_options_and_variables_are_documented():
    assert first_column("option") == list(inspect.signature(pim.upmem_backend).parameters)
    variables = {toolkit.VARIABLE, sdk.VARIABLE, cache.VARIABLE, build.SOURCES}
    assert set(first_column("variable")) == variables


def test_exceptions_are_documented():
    public = [getattr(upmem, name) for name in upmem.__all__]
    errors = {x for x in public if isinstance(x, type) and issubclass(x, Exception)}
    assert {error.__name__ for error in errors} == set(first_column("exception"))
    for error in errors:
        row = PAGE.partition(f"| `{error.__name__}` |")[2].partition("\n")[0]
        assert issubclass(error, ValueError) == ("Also a `ValueError`" in row), error


@pytest.mark.long  # builds the largest programs
@needs_tools
def test_as_many_entries_fit_as_the_page_says():
    [fit, asked] = (
        int(re.search(pattern, PAGE)[1].replace(",", ""))
        for pattern in (r"room for\s([\d,]+)\sentries", r"more than\s([\d,]+)\sentries")
    )

    def train(entries, **more):
        chunks = pim.partition(synthetic(6, 4, 40), 4, entries // 4, 4)
        pim.train(chunks, rule=tabular.q_learning(), schedule=pim.MergeSchedule(1), **more)

    train(int(0.99 * fit), backend="upmem", machine=None)
    with pytest.raises(upmem.TooLarge, match="WRAM"):
        train(int(1.01 * fit), backend="upmem", machine=None)
    train(asked, backend="jax")
    with pytest.raises(ValueError, match="WRAM"):
        train(asked + 4, backend="jax")
