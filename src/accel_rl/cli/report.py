"""`accel-rl report`: a run, a dataset or benchmark results as one HTML page."""

import contextlib
import dataclasses
import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accel_rl.cli import arguments, console
from accel_rl.cli.arguments import AsJson

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from accel_rl.report.page import Page, PageSection

_SHOWN_STATES = 64  # more make a long page, and a picture or a program reads them better

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
    from accel_rl.report import html

    target = out or (path / "report.html" if path.is_dir() else path.with_suffix(".html"))
    with console.bad_input("RUN_OR_BENCHMARK"), console.progress("reading and drawing"):
        page = page_of(path)
    with console.bad_input("--out"):
        arguments.check_file(target)
        html.write(target, page)
    if json:
        console.print_json({"report": str(target), "title": page.title, "kind": page.kind})
    else:
        typer.echo(str(target))


def page_of(path: Path) -> "Page":
    """Build the page of a run's folder, a dataset, a benchmark's JSON file or a folder of those.

    Raises:
      OSError: if a file cannot be read.
      ValueError: if the path is absent, not of this library, or damaged; the message names it.
    """
    from accel_rl.io import run_folder
    from accel_rl.report import benchmark, results

    if path.suffix == ".npz":
        return _dataset(path)
    if not path.is_dir():
        return benchmark.page_of([results.read(path)], path.name)
    if run_folder.kind_of(path) is not None:
        try:
            return _run(path)
        # Readers check only what they need; any other damage is reported here.
        except (LookupError, TypeError, AttributeError) as error:
            what = f"{type(error).__name__} {error}"
            raise ValueError(f"{path} holds a damaged run: {what}") from error
    if any(path.glob("*.json")):
        return benchmark.page_of(results.newest(path), str(path))
    raise ValueError(f"{path} is no run's folder and has no benchmark's JSON file")


def _run(path: Path) -> "Page":
    from accel_rl.cli import pictures, table_folder
    from accel_rl.experiment import folder
    from accel_rl.io import run_folder
    from accel_rl.report import run

    rows = folder.read_rows(path) if (path / run_folder.METRICS).is_file() else []
    drawn: dict[str, Figure] = {}
    more = []
    if (path / table_folder.TABLE).is_file():
        drawn = pictures.table_figures(path)
        more = [_learned(table_folder.load_table(path).values)]
    elif run_folder.kind_of(path) in ("training", "sweep"):
        drawn = _curves(path)
    return run.page_of(path, _when(path), rows, drawn, more)


def _curves(path: Path) -> "dict[str, Figure]":
    """Draw learning curves of the metrics that have values; none before the first row."""
    from accel_rl.cli import drawing

    found: dict[str, Figure] = {}
    for metric in ("evaluation", "episode_return", "loss"):
        with contextlib.suppress(drawing.NoValues):
            found |= drawing.figures([path], metric, 0.95)
    return found


def _learned(values: "np.ndarray") -> "PageSection":
    """Show the greedy actions of a table [S, A], if it has few states."""
    from accel_rl.report.page import PageSection, PageTable

    states = len(values)
    text = "All values are in table.npz of the run's folder: values, one row for each state."
    if states > _SHOWN_STATES:
        return PageSection("What was learned", f"{states:,} states. {text}")
    greedy = values.argmax(axis=1)
    rows = [(state, int(greedy[state]), float(values[state].max())) for state in range(states)]
    columns = ("state", "greedy action", "value")
    table = PageTable("Greedy action of each state, and its value", columns, rows, numbers=columns)
    text += " A state that the log never left has values of 0, and its action says nothing."
    return PageSection("What was learned", text, tables=[table])


def _dataset(path: Path) -> "Page":
    from accel_rl import datasets
    from accel_rl.report.page import Page, flat, number
    from accel_rl.report.tables import section

    loaded = datasets.load(path)
    summary = arguments.summary(loaded)
    return Page(
        title=f"Experience of {summary['environment']}",
        kind="dataset",
        lead=f"{summary['transitions']:,} transitions of a {summary['policy']} policy, in "
        f"{path.name}.",
        when=_when(path),
        figures=[
            ("Transitions", f"{summary['transitions']:,}", None),
            ("Episodes", f"{summary['episodes']:,}", None),
            ("Reward per episode", number(summary["reward_per_episode"]), "measured"),
        ],
        sections=[section("counts", summary)],
        settings=flat(dataclasses.asdict(loaded.info)),
    )


def _when(path: Path) -> str:
    """Format the modification time of a file, or of the newest JSON file in a folder."""
    files = [path] if path.is_file() else [*path.glob("*.json"), *path.glob("*.jsonl")]
    newest = max(file.stat().st_mtime for file in files)
    when = datetime.datetime.fromtimestamp(newest, datetime.UTC)
    return f"Written on {when:%Y-%m-%d %H:%M} UTC"
