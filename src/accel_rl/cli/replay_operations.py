"""`accel-rl replay-server health|stats|tables|delete|drain`: an operator's requests to a server."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accel_rl.cli import console
from accel_rl.cli.arguments import AsJson
from accel_rl.cli.replay_server import SecretFile, app, secret_of

if TYPE_CHECKING:
    from accel_rl.remote import ReplayClient

Address = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="Such as tcp://127.0.0.1:7077 or unix:PATH.")
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds to wait for the server.")]
Authorities = Annotated[
    Path | None,
    typer.Option("--tls-authorities", metavar="FILE", help="PEM: whom to trust at tls://."),
]


@contextlib.contextmanager
def _client(
    address: str, secret: Path | None, timeout: float, authorities: Path | None
) -> "Iterator[ReplayClient]":
    """Connect; what the server refuses, or its absence, ends the command with 1."""
    import ssl

    from accel_rl import remote
    from accel_rl.remote.links import parse_address

    with console.bad_input():
        parse_address(address)
        word = secret_of(secret)
        tls = None if authorities is None else ssl.create_default_context(cafile=authorities)
    try:
        with remote.ReplayClient(address, word, timeout=timeout, reconnect=0, tls=tls) as client:
            yield client
    except remote.RemoteError as error:
        console.note(f"accel-rl: {error}")
        raise typer.Exit(1) from error


@app.command()
def health(
    address: Address,
    secret_file: SecretFile = None,
    timeout: Timeout = 5.0,
    authorities: Authorities = None,
    json: AsJson = False,
) -> None:
    """Say whether a server answers, and how fast; exit with 1 if it does not."""
    with _client(address, secret_file, timeout, authorities) as client:
        began = time.perf_counter()
        client.ping()
        milliseconds = 1e3 * (time.perf_counter() - began)
    if json:
        console.print_json({"address": address, "milliseconds": milliseconds})
    else:
        typer.echo(f"{address} answered in {milliseconds:.3f} ms")


@app.command()
def stats(
    address: Address,
    secret_file: SecretFile = None,
    timeout: Timeout = 5.0,
    authorities: Authorities = None,
    json: AsJson = False,
) -> None:
    """Print a server's counters."""
    with _client(address, secret_file, timeout, authorities) as client:
        counts = client.stats()
    if json:
        console.print_json(counts)
        return
    for name, count in counts.items():
        typer.echo(f"{name:16} {count:,}")


@app.command()
def tables(
    address: Address,
    secret_file: SecretFile = None,
    timeout: Timeout = 5.0,
    authorities: Authorities = None,
    json: AsJson = False,
) -> None:
    """Print a server's tables, and what is in them."""
    with _client(address, secret_file, timeout, authorities) as client:
        found = {}
        for spec in client.tables():
            counts = client.table(spec.name, create=False).stats()
            found[spec.name] = {
                "sampler": spec.sampler,
                "capacity": spec.capacity,
                "item_bytes": sum(column.item_bytes for column in spec.columns),
                **counts,
            }
    if json:
        console.print_json(found)
        return
    if not found:
        typer.echo("no tables")
    for name, each in found.items():
        typer.echo(
            f"{name}: {each['size']:,} of {each['capacity']:,} items of {each['item_bytes']:,} B, "
            f"{each['sampler']}; {each['inserts']:,} pushed, {each['samples']:,} sampled"
        )


@app.command()
def delete(
    address: Address,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    message: Annotated[
        bool, typer.Option("--message", help="NAME is one in the mailbox, not a table.")
    ] = False,
    secret_file: SecretFile = None,
    timeout: Timeout = 5.0,
    authorities: Authorities = None,
) -> None:
    """Delete a table, or a name in the mailbox; nothing of it is kept."""
    with _client(address, secret_file, timeout, authorities) as client:
        (client.delete_message if message else client.delete_table)(name)


@app.command()
def drain(
    address: Address,
    secret_file: SecretFile = None,
    timeout: Timeout = 5.0,
    authorities: Authorities = None,
) -> None:
    """End a server: it takes no more, answers what waits, writes its last snapshot and ends."""
    with _client(address, secret_file, timeout, authorities) as client:
        client.drain()
