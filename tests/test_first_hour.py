"""The first hour, as the tutorial tells it, step by step in an empty folder.

`python tests/test_first_hour.py FOLDER` does the same in a folder, and prints each step's seconds.
"""

import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs/tutorials/first-hour.md"
BLOCK = re.compile(r"^<!-- (.+?) -->\n\n```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_notebook(path, source):
    """Write a notebook of one cell, execute it in place, and return the cell's outputs."""
    import nbformat

    cell = nbformat.v4.new_code_cell(source)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    command = [sys.executable, ROOT / "notebooks/execute.py", "--write", path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return nbformat.read(path, as_version=4).cells[0].outputs


def follow(folder, page=PAGE):
    """Do what the page says, in an empty folder; yield each step and its seconds.

    A step that fails raises CalledProcessError.
    """
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    for what, _, source in BLOCK.findall(page.read_text(encoding="utf-8")):
        word, _, name = what.partition(" ")
        if word == "file":
            (folder / name).write_text(source, encoding="utf-8")
        elif word == "cell":
            began = time.monotonic()
            notebook = folder / name.removeprefix("of ")
            outputs = run_notebook(notebook, source)
            assert any("image/png" in each.get("data", {}) for each in outputs)
            yield notebook.name, time.monotonic() - began
        elif word == "step":
            for line in source.splitlines():
                began = time.monotonic()
                subprocess.run(
                    ["sh", "-c", line],
                    cwd=folder,
                    env={**os.environ, "PATH": path},
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
                yield line, time.monotonic() - began


@pytest.mark.long
def test_the_first_hour_runs_as_told(tmp_path):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    steps = dict(follow(tmp_path))
    assert len(steps) == 10
    assert sum(steps.values()) < 3600
    for made in ("runs/cartpole.gif", "runs/point/results.json", "runs/point.stablehlo"):
        assert (tmp_path / made).stat().st_size > 0


def test_a_step_that_fails_is_no_step(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- step -->\n\n```sh\ntrue\nfalse\n```\n")
    done = []
    with pytest.raises(subprocess.CalledProcessError):
        done.extend(name for name, _ in follow(tmp_path, page))


if __name__ == "__main__":
    for each, seconds in follow(pathlib.Path(sys.argv[1])):
        print(f"{seconds:6.1f} s  {each}")
