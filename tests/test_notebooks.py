"""Committed notebooks are clean and speak the public API; `execute.py` tells good from bad.

Running them is the job of `make check-notebooks`.
"""

import ast
import importlib
import json
import os
import pathlib
import subprocess
import sys

import pytest
from optional import needs

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def by_name(path):
    return path.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_is_stored_clean(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    names = [cell["id"] for cell in book["cells"]]
    assert len(set(names)) == len(names)
    for cell in book["cells"]:
        assert cell["metadata"] == {}, cell["id"]
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], cell["id"]
            assert cell["execution_count"] is None, cell["id"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_uses_public_names_that_exist(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    code = ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
    nodes = [node for cell in code for node in ast.walk(ast.parse(cell))]
    packages = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in ("accel_rl", "pim_emu"):
                    packages[alias.asname or alias.name] = importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "accel_rl":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                packages[alias.asname or alias.name] = importlib.import_module(name)
    used = {
        (node.value.id, node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id in packages
    }
    assert len(used) > 10
    for package, name in sorted(used):
        public = getattr(packages[package], "__all__", vars(packages[package]))
        assert name in public, f"{package}.{name}"
        assert not name.startswith("_"), f"{package}.{name}"


def notebook(path, **cells):
    """Writes a notebook of code cells, named by the keywords."""
    book = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "cells": [
            {
                "cell_type": "code",
                "id": name,
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": source,
            }
            for name, source in cells.items()
        ],
    }
    path.write_text(json.dumps(book), encoding="utf-8")
    return book


def execute(*arguments, **environment):
    return subprocess.run(
        [sys.executable, str(FOLDER / "execute.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


needs_kernel = needs("Jupyter")


@needs_kernel
def test_execute_runs_small_in_its_own_interpreter(tmp_path):
    path, copies = tmp_path / "good.ipynb", tmp_path / "copies"
    notebook(
        path, show="import os, sys; print(sys.executable, os.environ['ACCEL_RL_NOTEBOOK_SMALL'])"
    )
    before = path.read_bytes()
    rival = tmp_path / "kernels" / "python3"  # another environment's kernel of the same name
    rival.mkdir(parents=True)
    spec = {"argv": ["false"], "display_name": "Python 3", "language": "python"}
    (rival / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    done = execute(path, "--output", copies, JUPYTER_PATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("good.ipynb: ran in ")
    assert path.read_bytes() == before
    [cell] = json.loads((copies / "good.ipynb").read_text(encoding="utf-8"))["cells"]
    assert "".join(cell["outputs"][0]["text"]).split() == [sys.executable, "1"]


@needs_kernel
def test_execute_names_the_cell_that_fails(tmp_path):
    bad, stored = tmp_path / "bad.ipynb", tmp_path / "stored.ipynb"
    notebook(bad, fine="x = 1", broken="x / 0", never="x = 2")
    book = notebook(stored, fine="x = 1", shown="x")
    book["cells"][1]["execution_count"] = 2
    stored.write_text(json.dumps(book), encoding="utf-8")
    done = execute(bad, stored)
    assert done.returncode == 1
    first, second = done.stdout.splitlines()
    assert first.startswith("bad.ipynb: cell 1 (broken) failed")
    assert second == "stored.ipynb: cell 1 (shown) has stored outputs: clear them"
    assert "ZeroDivisionError" in done.stderr


@needs_kernel
def test_execute_refuses_to_write_over_a_notebook(tmp_path):
    path = tmp_path / "good.ipynb"
    notebook(path, fine="x = 1")
    done = execute(path, "--output", tmp_path)
    assert done.returncode == 2
    assert "--output" in done.stderr
