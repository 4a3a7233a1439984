"""`accel-rl replay-server`: a replay server that runs until it is interrupted."""

import contextlib
import shlex
import stat
import time
import tomllib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from accel_rl.cli import console
from accel_rl.cli.arguments import AsJson
from accel_rl.cli.stopping import stop_requests

EXAMPLES = console.examples(
    "accel-rl replay-server --port 7077",
    "accel-rl replay-server --unix runs/replay.sock --host none",
    "accel-rl replay-server --shm runs/replay.shm --idle spin",
    "accel-rl replay-server --host 0.0.0.0 --secret-file secret --snapshot runs/replay.snapshot",
    "accel-rl replay-server --port 7077 --snapshot runs/replay.snapshot --durability log",
    "accel-rl replay-server stats tcp://127.0.0.1:7077",
)

POLL = 0.2  # seconds between two looks at whether the server is to end

Durability = Literal["none", "snapshot", "log"]  # as `remote.server` has it, imported late
LogFormat = Literal["text", "json"]
IdlePolicy = Literal["block", "spin", "yield", "sleep"]

SecretFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="What server and clients both know: 16 bytes or more, in a file."
    ),
]


def secret_of(path: Path | None) -> bytes | None:
    """Read a secret from a file, without the newline at its end; None without a file."""
    return None if path is None else path.read_bytes().rstrip(b"\r\n")


def note_readable(*paths: Path | None) -> None:
    """Say which of the files other users can read."""
    for path in filter(None, paths):
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
            console.note(f"other users can read {path}: chmod 600 {path}")


def _limits(path: Path | None, words: Sequence[str]) -> dict[str, int]:
    """Return limits of a file and of words, by name; the server checks them."""
    found = {} if path is None else tomllib.loads(path.read_text(encoding="utf-8"))
    for word in words:
        name, _, number = word.partition("=")
        try:
            found[name] = int(number)
        except ValueError as error:
            raise ValueError(f"--limit must be NAME=NUMBER, got {word!r}") from error
    return found


def _is_drained(server: Any) -> bool:
    """Return whether a client has asked for the server's end, and nothing waits."""
    now = server.stats()
    return bool(now["draining"]) and now["waiting"] == 0


app = typer.Typer(
    name="replay-server", invoke_without_command=True, rich_markup_mode="markdown", epilog=EXAMPLES
)


@app.callback()
def replay_server(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(help="Address in numbers to listen on for TCP; none: no TCP.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: a free one.")] = 0,
    udp_port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Datagrams, too, on the same host; 0: a free one."),
    ] = None,
    unix: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A Unix socket, for this user only.")
    ] = None,
    shm: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="For clients that share memory, of this user only."),
    ] = None,
    secret_file: SecretFile = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER", help="Such as connections=4096; names: docs/replay-server.md."
        ),
    ] = None,
    limits: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML with limits; --limit goes before it.")
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="PEM: TCP is TLS 1.3, of this certificate."),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PEM: the certificate's key.")
    ] = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Begin with what it holds; write it when asked to."),
    ] = None,
    durability: Annotated[
        Durability | None,
        typer.Option(
            help="What a killed server begins with: the last snapshot, which is the default with "
            "--snapshot, or also what was logged since."
        ),
    ] = None,
    every: Annotated[
        float, typer.Option(min=0.0, help="Seconds between snapshots; 0: when a client asks.")
    ] = 0.0,
    idle: Annotated[
        IdlePolicy,
        typer.Option(help="When there is nothing to do: all but block take time of a core."),
    ] = "block",
    dpdk: Annotated[
        str | None,
        typer.Option(metavar="ARGUMENTS", help="DPDK's arguments: serve the ports they name."),
    ] = None,
    dpdk_address: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="The server's, at DPDK's ports: of IPv4 or IPv6."),
    ] = "169.254.77.1",
    dpdk_port: Annotated[int, typer.Option(min=1, max=65_535, help="And its UDP port.")] = 7077,
    dpdk_mtu: Annotated[
        int, typer.Option(min=1280, max=9000, help="And the MTU: above 1500 for jumbo frames.")
    ] = 1500,
    in_network: Annotated[
        bool, typer.Option("--in-network", help="Pass on what is for others, at two ports.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Counters and latencies for Prometheus, by HTTP."),
    ] = None,
    log_format: Annotated[
        LogFormat, typer.Option(help="Of the lines on stderr; json: an object each.")
    ] = "text",
    slow: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="MILLISECONDS",
            help="Write of each request that takes the server so long; 0: of none.",
        ),
    ] = 0.0,
    json: AsJson = False,
) -> None:
    """Serve a replay buffer: tables that actors push to and learners sample from.

    Clients make the tables. An address that other machines reach needs a secret. Ctrl-C or SIGTERM
    ends it, with a last snapshot if it has a path for one, which no other server may have.
    """
    if context.invoked_subcommand is not None:
        return
    from accel_rl import remote
    from accel_rl.cli.metrics import exported
    from accel_rl.cli.server_log import ServerLog
    from accel_rl.remote.module import native

    if every and snapshot is None:
        raise typer.BadParameter("give --snapshot PATH, too", param_hint="--every")
    if host == "none" and unix is None and shm is None and dpdk is None:
        why = "give --unix PATH, --shm PATH or --dpdk ARGUMENTS, too"
        raise typer.BadParameter(why, param_hint="--host none")
    try:
        native()
    except ImportError as error:
        console.note(f"accel-rl: {error}")
        raise typer.Exit(1) from error
    with console.bad_input():
        secret = secret_of(secret_file)
        chosen = {"slow_us": round(slow * 1e3), **_limits(limits, limit or ())}
    log = ServerLog(as_json=log_format == "json")
    with stop_requests() as wait:
        with console.bad_input(), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            server = remote.ReplayServer(
                None if host == "none" else host,
                port,
                udp_port=udp_port,
                unix_path=unix,
                shm_path=shm,
                secret=secret,
                tls_certificate=tls_certificate,
                tls_key=tls_key,
                snapshot_path=snapshot,
                durability=durability,
                idle=idle,
                dpdk=None if dpdk is None else shlex.split(dpdk),
                dpdk_address=dpdk_address,
                dpdk_port=dpdk_port,
                dpdk_mtu=dpdk_mtu,
                in_network=in_network,
                **chosen,
            )
        with server, contextlib.ExitStack() as stack:
            log.warned(warned)
            note_readable(secret_file, tls_key)
            if secret is None and host != "none":
                console.note(
                    "every user of this machine can read and change what is served: give "
                    "--secret-file FILE, or --host none --unix PATH"
                )
            where: dict[str, object] = {"addresses": server.addresses}
            if metrics is not None:
                with console.bad_input():
                    where["metrics"] = stack.enter_context(exported(server, metrics))
            if json:
                console.print_json(where)
            else:
                typer.echo(f"serving on {' and '.join(server.addresses)}; Ctrl-C ends it")
            if log_format == "json":
                log.event("serving", "", **where)
            due = time.monotonic() + every
            while not (wait(POLL) or _is_drained(server)):
                log.look(server)
                if not every or time.monotonic() < due:
                    continue
                due = time.monotonic() + every
                try:
                    server.snapshot()
                except remote.SnapshotFailed as error:  # tables stay; the next may succeed
                    sentence = f"no snapshot this time: {error}"
                    log.event("snapshot_failed", sentence, message=str(error))
            # Before the last snapshot, which then has whatever was acknowledged.
            server.stop()
            log.look(server)
            if snapshot is None:
                log.event("ended", "ended; without --snapshot nothing is kept", items=None)
                return
            try:
                server.snapshot()
            except remote.SnapshotFailed as error:
                sentence = f"accel-rl: no snapshot was written to {snapshot}: {error}"
                log.event("snapshot_failed", sentence, message=str(error))
                raise typer.Exit(1) from error
            items = sum(table["size"] for table in server.stats()["tables"].values())
            log.event(
                "ended", f"ended; snapshot of {items:,} items written to {snapshot}", items=items
            )
