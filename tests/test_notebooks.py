"""Notebooks store small outputs and speak the public API; `execute.py` tells good from bad.

Running them is the job of `make check-notebooks`.
"""

import ast
import base64
import importlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from optional import needs
from PIL import Image

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def by_name(path):
    return path.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_stored_outputs_are_small_and_of_no_machine(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    names = [cell["id"] for cell in book["cells"]]
    assert len(set(names)) == len(names)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    pictures = 0
    for cell in code:
        assert cell["metadata"] == {}, cell["id"]
        for output in cell["outputs"]:
            assert output["output_type"] != "error", cell["id"]
            assert output.get("name") != "stderr", cell["id"]
            data = dict(output.get("data", {}))
            picture = "".join(data.pop("image/png", ""))
            pictures += bool(picture)
            assert len(base64.b64decode(picture)) < 100_000, cell["id"]
            assert "application/vnd.jupyter.widget-view+json" not in data, cell["id"]
            text = json.dumps([data, output.get("text")])
            found = re.search(r"(?<![\w.])/(work|home|root|tmp|usr|opt)\b|site-packages", text)
            assert found is None, f"{cell['id']}: {found}"
        if "plt.show()" in "".join(cell["source"]) and "def " not in "".join(cell["source"]):
            assert any("image/png" in each.get("data", {}) for each in cell["outputs"]), cell["id"]
    assert pictures >= 1
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_opens_with_what_one_can_do_and_ends_with_exercises(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in book["cells"]]
    assert "**After this notebook you can**" in cells[0]
    assert "**Exercises.**" in cells[-1]
    first = next(cell for cell in book["cells"] if cell["cell_type"] == "code")
    assert "google.colab" in "".join(first["source"])


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
    bad = tmp_path / "bad.ipynb"
    notebook(bad, fine="x = 1", broken="x / 0", never="x = 2")
    before = bad.read_bytes()
    done = execute(bad, "--write")
    assert done.returncode == 1
    assert done.stdout.startswith("bad.ipynb: cell 1 (broken) failed")
    assert "ZeroDivisionError" in done.stderr
    assert bad.read_bytes() == before  # a notebook that fails keeps what it had


@needs_kernel
def test_execute_stores_outputs_that_are_alike_each_time(tmp_path):
    path = tmp_path / "good.ipynb"
    cells = {
        "setup": "import os, matplotlib.pyplot as plt",
        "drawn": "plt.figure(figsize=(4, 3)); plt.plot([1, 2]); plt.show()",
        "size": "os.environ['ACCEL_RL_NOTEBOOK_SMALL'], os.environ['ACCEL_RL_NOTEBOOK_STATIC']",
    }
    notebook(path, **cells)
    stored = []
    for _ in range(2):
        assert execute(path, "--write").returncode == 0
        stored.append(path.read_bytes())
    assert stored[0] == stored[1]
    setup, drawn, size = json.loads(stored[0])["cells"]
    assert [cell["execution_count"] for cell in (setup, drawn, size)] == [1, 2, 3]
    assert setup["outputs"] == []
    picture = base64.b64decode("".join(drawn["outputs"][0]["data"]["image/png"]))
    with Image.open(io.BytesIO(picture)) as image:
        assert image.mode == "P"
    assert "".join(size["outputs"][0]["data"]["text/plain"]) == "('0', '1')"


@needs_kernel
def test_execute_refuses_to_write_over_a_notebook(tmp_path):
    path = tmp_path / "good.ipynb"
    notebook(path, fine="x = 1")
    done = execute(path, "--output", tmp_path)
    assert done.returncode == 2
    assert "--output" in done.stderr
