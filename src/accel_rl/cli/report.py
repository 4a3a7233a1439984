"""`accel-rl report`: a run or benchmark results as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer

from accel_rl.cli import console
from accel_rl.cli.arguments import AsJson

EXAMPLES = console.examples(
    "accel-rl report runs/demo",
    "accel-rl report runs/cartpole --out cartpole.html",
    "accel-rl report benchmarks/results --out results.html",
)


def report(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RUN_OR_BENCHMARK",
            help="A run's folder, a dataset, a benchmark's JSON file, or a folder of such files.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write; default: report.html there, or beside the file."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Write a page of a run or of benchmarks that a browser opens from anywhere.

    One HTML file with pictures, tables, configuration and versions, which says of each figure
    whether it was measured or modelled. It needs no network and runs no script.
    """
    from accel_rl.cli import run_pages
    from accel_rl.report import html

    target = out or (path / "report.html" if path.is_dir() else path.with_suffix(".html"))
    with console.bad_input("RUN_OR_BENCHMARK"), console.progress("reading and drawing"):
        page = run_pages.page_of(path)
    with console.bad_input("--out"):
        if target.is_dir():
            raise ValueError(f"{target} is a directory")
        if not target.parent.is_dir():
            raise ValueError(f"directory {target.parent} does not exist")
        html.write(target, page)
    if json:
        console.print_json({"report": str(target), "title": page.title, "kind": page.kind})
    else:
        console.print_line(str(target))
