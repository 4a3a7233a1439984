"""Execute notebooks from a fresh kernel each, and say how it went.

    python notebooks/execute.py                             all of this folder, small, as CI does
    python notebooks/execute.py --full --output runs/books  full size, keeping executed copies
    python notebooks/execute.py --write                     full size, renewing the stored outputs

Stored outputs are made small and alike from run to run: pictures of few colours, no times of cells,
and no widgets, which nothing moves on a page.
"""

import argparse
import base64
import copy
import io
import os
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellExecutionError, DeadKernelError
from PIL import Image

FOLDER = Path(__file__).resolve().parent
SMALL, STATIC = "ACCEL_RL_NOTEBOOK_SMALL", "ACCEL_RL_NOTEBOOK_STATIC"
# Of a small run compiling takes the most: code that is not optimised compiles in less time.
SMALL_FLAGS = "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
CELL_SECONDS = 600


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; 0 if every notebook is clean and runs, otherwise 1."""
    options = _parse(arguments)
    environment = _environment(full=options.full or options.write)
    ok = True
    for path in options.notebooks or sorted(FOLDER.glob("*.ipynb")):
        book = nbformat.read(path, as_version=4)
        ok &= _execute(path, book, environment, path.parent if options.write else options.output)
    return 0 if ok else 1


def normalised(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a copy without what differs from run to run, with pictures of at most 64 colours."""
    stored = copy.deepcopy(book)
    stored.metadata.pop("language_info", None)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        cell.metadata, cell.execution_count = {}, number
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number
            output.pop("transient", None)
            if "metadata" in output:
                output.metadata = {}
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = _small(output.data["image/png"])
    return stored


def _small(picture: str) -> str:
    """Return a PNG in base64 with a palette: a third of the size, and no visible difference."""
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        reduced = image.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    written = io.BytesIO()
    reduced.save(written, format="PNG", optimize=True)
    return base64.b64encode(written.getvalue()).decode()


def _execute(
    path: Path, book: nbformat.NotebookNode, environment: dict[str, str], output: Path | None
) -> bool:
    """Run one notebook, prints a line about it (and, if it failed, the error): did it run?"""
    current = 0

    def remember(cell: Any, cell_index: int) -> None:
        nonlocal current
        current = cell_index

    # The interpreter that runs this script, whatever is installed elsewhere under the same name.
    native = KernelSpecManager(kernel_dirs=[], ensure_native_kernel=True)
    client = NotebookClient(
        book,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=native),
        timeout=CELL_SECONDS,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_start=remember,
    )
    started, failure = time.perf_counter(), None
    try:
        client.execute(env=environment, cleanup_kc=True)
    except (CellExecutionError, CellControlSignal, DeadKernelError, TimeoutError) as error:
        failure = str(error).strip()
    seconds = time.perf_counter() - started
    if failure is None:
        print(f"{path.name}: ran in {seconds:.1f} s", flush=True)
    else:
        print(f"{path.name}: {_name(book, current)} failed after {seconds:.1f} s", flush=True)
        print(failure, file=sys.stderr)
    if output is not None and (failure is None or output != path.parent):
        output.mkdir(parents=True, exist_ok=True)
        nbformat.write(normalised(book), output / path.name)
    return failure is None


def _name(book: nbformat.NotebookNode, number: int) -> str:
    return f"cell {number} ({book.cells[number].get('id', 'without id')})"


def _environment(*, full: bool) -> dict[str, str]:
    """Return the kernel's environment: the caller's, the size, and the tests' cache."""
    environment = {**os.environ, SMALL: "0" if full else "1", STATIC: "1"}
    if not full:
        environment.setdefault("XLA_FLAGS", SMALL_FLAGS)
    environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(FOLDER.parent / ".jax_cache"))
    environment.pop("MPLBACKEND", None)  # figures go into the notebook, as they do in Jupyter
    return environment


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Execute notebooks, each in a fresh kernel; exit code 1 if one fails."
    )
    parser.add_argument(
        "notebooks", nargs="*", type=Path, help="default: all in the folder of this script"
    )
    parser.add_argument("--full", action="store_true", help="full size instead of small settings")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="keep executed copies in this folder"
    )
    parser.add_argument(
        "--write", action="store_true", help="full size, and store the outputs in the notebooks"
    )
    options = parser.parse_args(arguments)
    if options.write and options.output is not None:
        parser.error("--write stores outputs in the notebooks: it takes no --output")
    for path in options.notebooks:
        if not path.is_file():
            parser.error(f"no notebook at {path}")
        if options.output is not None and options.output.resolve() == path.resolve().parent:
            parser.error(f"--output must be another folder than that of {path}")
    if options.output is not None and options.output.resolve() == FOLDER:
        parser.error(f"--output must be another folder than {FOLDER}")
    return options


if __name__ == "__main__":
    sys.exit(main())
