"""Command tree of `accel-rl`, and its exit codes.

0 done, 1 failed, 2 bad usage or input, 130 Ctrl-C, 143 SIGTERM.
"""

import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.core

from accel_rl import __version__
from accel_rl.cli import (
    apex,
    collect,
    compose,
    console,
    demo,
    doctor,
    environments,
    evaluate,
    export,
    import_log,
    play,
    plot,
    replay_operations,  # noqa: F401 - adds commands to replay_server's
    replay_server,
    report,
    resume,
    sweep,
    train,
)
from accel_rl.cli.console import examples

# Newer versions of typer bundle click, so its exceptions are reached as base classes.
_UsageError: Any = typer.BadParameter.__base__
_Complaint: Any = _UsageError.__base__


class _OneLineErrors(typer.core.TyperGroup):
    """Command group that reports errors as one line on stderr, without traceback or box."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: object,
    ) -> Any:
        """Run the command; see `click.Command.main`."""
        words = sys.argv[1:] if args is None else list(args)
        extra.setdefault("obj", shlex.join(["accel-rl", *words]))  # the command line, for records
        try:
            with console.warnings_in_a_line(), console.terminable():
                code = super().main(
                    args, prog_name, complete_var, False, windows_expand_args, **extra
                )
        except _Complaint as error:
            code = _complain(error.format_message(), error.exit_code)
        except OSError as error:
            code = _complain(console.of_system(error), 1)
        except MemoryError:
            code = _complain("out of memory: take fewer transitions, DPUs or seeds", 1)
        except typer.Abort:
            code = 1
        except console.Terminated:
            code = _complain("terminated", 143)
        except RuntimeError as error:
            dpus = sys.modules.get("accel_rl.pim.upmem")  # None unless already imported
            if dpus is None or not isinstance(error, dpus.UpmemError):
                raise
            code = _complain(f"{type(error).__name__}: {error} {error.log}", 1)
        if code == 130:
            _complain("interrupted", 130)
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code


def _complain(message: str, code: int) -> int:
    typer.echo(f"accel-rl: {' '.join(message.split())}", err=True)
    return code


app = typer.Typer(
    name="accel-rl",
    cls=_OneLineErrors,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "accel-rl collect Taxi-v3 --num 1000000 --out taxi.npz",
        "accel-rl import own.csv --out own.npz",
        "accel-rl train taxi.npz --rule q_learning --numerics int32_scaled --out runs/taxi",
        "accel-rl train dqn CartPole-v1 --replay amper-fr --seeds 16 --out runs/cartpole",
        "accel-rl evaluate runs/cartpole --json",
        "accel-rl demo",
    ),
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Reinforcement learning that compiles whole.

    Agents train on many seeds at once, and tables from logs on thousands of emulated DPUs.

    Commands that print figures take --json. Exit codes: 0 done, 1 failed, 2 bad usage or input.
    """
    if version:
        typer.echo(f"accel_rl {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.add_typer(environments.app, name="envs")
app.command(epilog=collect.EXAMPLES)(collect.collect)
app.command("import", epilog=import_log.EXAMPLES)(import_log.import_log)
app.add_typer(train.app, name="train")
app.add_typer(compose.app, name="compose")
app.command(epilog=apex.EXAMPLES)(apex.apex)
app.add_typer(replay_server.app)
app.command(epilog=resume.EXAMPLES)(resume.resume)
app.command(epilog=sweep.EXAMPLES)(sweep.sweep)
app.command(epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command(epilog=play.EXAMPLES)(play.play)
app.command(epilog=export.EXAMPLES)(export.export)
app.command(epilog=plot.EXAMPLES)(plot.plot)
app.command(epilog=report.EXAMPLES)(report.report)
app.command(epilog=doctor.EXAMPLES)(doctor.doctor)
app.command(epilog=demo.EXAMPLES)(demo.demo)


def main() -> None:
    """Run the console entry point."""
    sys.path.append("")  # the working directory, for environments named MODULE:NAME
    app(prog_name="accel-rl")
