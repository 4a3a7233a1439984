"""Output of commands: results on stdout, everything else on stderr."""

import contextlib
import errno
import json
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import typer


@contextlib.contextmanager
def bad_input(
    argument: str | None = None, errors: tuple[type[Exception], ...] = (OSError, ValueError)
) -> Iterator[None]:
    """Report errors of the block as one line, with exit code 2.

    Use it only around calls that check user input, so that bugs keep their traceback. Errors of a
    full disk pass unchanged.

    Args:
        argument: the argument or option to blame; None where the message names it.
        errors: types of errors to report.
    """
    try:
        yield
    except errors as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        reason = of_system(error) if isinstance(error, OSError) else str(error)
        raise typer.BadParameter(reason, param_hint=argument) from error


def of_system(error: OSError) -> str:
    """Format an OSError as its file and reason, as far as they are known."""
    if not error.strerror:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def command_line(context: typer.Context) -> str:
    """Return the command line as it was given, for records."""
    return context.obj or context.command_path


def print_json(value: object) -> None:
    """Write a value to stdout as JSON; the command writes nothing else there."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers_from: int = 1
) -> None:
    """Write a table to stdout, 200 columns wide where stdout is not a terminal.

    Args:
        title: above the table.
        columns: headings; if all are empty, none is shown.
        rows: cells, in the order of the headings; shown with `str`.
        numbers_from: index of the first right-aligned column.
    """
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=any(columns))
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number >= numbers_from else "left")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    typer.echo(title)
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def note(message: str) -> None:
    """Write a line to stderr."""
    typer.echo(message, err=True)


@contextlib.contextmanager
def warnings_in_a_line() -> Iterator[None]:
    """Show each warning of the block as one line on stderr, without its source location."""

    def show(message: object, *_: object, **__: object) -> None:
        note(f"accel-rl: warning: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


class Terminated(BaseException):
    """Exception on SIGTERM: the command unwinds as after Ctrl-C, and removes partial files."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM, which would otherwise end the process without clean-up.

    An existing handler stays, and so does a signal that the parent ignores (by custom a command
    keeps ignoring it: SIGHUP under nohup, SIGINT behind `&` in a script). Outside the main thread,
    where Python runs no handlers, this does nothing.
    """

    def hear(number: int, frame: object) -> None:
        raise Terminated

    main = threading.current_thread() is threading.main_thread()
    ours = main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, hear)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def progress(description: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr, if it is a terminal.

    Args:
        description: of the current task.
        total: amount of work; None shows elapsed time only.

    Yields:
        advance(amount=0, description=None): moves the bar and changes the description.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%" if total else ""),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
    with bar:
        task = bar.add_task(description, total=total)

        def advance(amount: float = 0, description: str | None = None) -> None:
            bar.update(task, advance=amount, description=description)

        yield advance


def examples(*commands: str) -> str:
    """Format the examples at the end of a command's help, as Markdown."""
    return "\n\n".join(["Examples:", *(f"- `{line}`" for line in commands)])
