"""Execute notebooks from a fresh kernel each, and say how it went.

    python notebooks/execute.py                             all of this folder, small, as CI does
    python notebooks/execute.py --full --output runs/books  full size, keeping executed copies

A notebook is never written to. One with stored outputs fails: they would be old, and large.
"""

import argparse
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

FOLDER = Path(__file__).resolve().parent
SMALL = "ACCEL_RL_NOTEBOOK_SMALL"
# Of a small run compiling takes the most: code that is not optimised compiles in less time.
SMALL_FLAGS = "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
CELL_SECONDS = 600


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; 0 if every notebook is clean and runs, otherwise 1."""
    options = _parse(arguments)
    environment = _environment(full=options.full)
    ok = True
    for path in options.notebooks or sorted(FOLDER.glob("*.ipynb")):
        book = nbformat.read(path, as_version=4)
        number = stored_outputs(book)
        if number is None:
            ok &= _execute(path, book, environment, options.output)
        else:
            print(f"{path.name}: {_name(book, number)} has stored outputs: clear them", flush=True)
            ok = False
    return 0 if ok else 1


def stored_outputs(book: nbformat.NotebookNode) -> int | None:
    """Index of the first cell that holds outputs or an execution count; None if all are clean."""
    for number, cell in enumerate(book.cells):
        if cell.get("outputs") or cell.get("execution_count") is not None:
            return number
    return None


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
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        nbformat.write(book, output / path.name)
    return failure is None


def _name(book: nbformat.NotebookNode, number: int) -> str:
    return f"cell {number} ({book.cells[number].get('id', 'without id')})"


def _environment(*, full: bool) -> dict[str, str]:
    """Return the kernel's environment: the caller's, the size, and the tests' cache."""
    environment = {**os.environ, SMALL: "0" if full else "1"}
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
    options = parser.parse_args(arguments)
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
