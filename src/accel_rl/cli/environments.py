"""`accel-rl envs`: list of environments, and their maps."""

from typing import Annotated

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson, make_mdp

app = typer.Typer(
    epilog=console.examples(
        "accel-rl envs",
        "accel-rl envs --gymnax --json",
        "accel-rl envs show Taxi-v3 --passenger R --destination B",
    )
)


@app.callback(invoke_without_command=True)
def environments(
    context: typer.Context,
    gymnax: Annotated[
        bool, typer.Option("--gymnax", help="Also list the names that gymnax knows.")
    ] = False,
    json: AsJson = False,
) -> None:
    """List the environments."""
    if context.invoked_subcommand is not None:
        return
    runtime.prepare_jax()
    from accel_rl import envs

    own = envs.list_environments()
    listed = []
    for name in own:
        mdp = envs.make_mdp(name)
        listed.append(
            {
                "name": name,
                "source": "accel_rl",
                "states": mdp.num_states,
                "actions": mdp.num_actions,
                "time_limit": mdp.time_limit,
            }
        )
    others = envs.list_environments(gymnax=True)[len(own) :] if gymnax else ()
    if json:
        console.print_json([*listed, *({"name": name, "source": "gymnax"} for name in others)])
        return
    console.print_table(
        "Tabular environments: collect, train and evaluate take them by name",
        ("name", "states", "actions", "time limit"),
        ((e["name"], e["states"], e["actions"], e["time_limit"] or "none") for e in listed),
    )
    if others:
        typer.echo(f"gymnax, through accel_rl.envs.make: {', '.join(others)}")


@app.command(
    epilog=console.examples(
        "accel-rl envs show FrozenLake-v1",
        "accel-rl envs show Taxi-v3 --passenger taxi --destination G --json",
    )
)
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A tabular environment.")],
    passenger: Annotated[
        str | None, typer.Option(help="Taxi: R, G, Y, B or taxi; R if not given.")
    ] = None,
    destination: Annotated[
        str | None, typer.Option(help="Taxi: R, G, Y or B; G if not given.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Draw an environment's map in the terminal."""
    import sys

    runtime.prepare_jax()
    from accel_rl import envs

    mdp = make_mdp(name, "NAME")
    given = {"passenger": passenger, "destination": destination}
    places = {place: value for place, value in given.items() if value is not None}
    if places and "Taxi" not in name:
        raise typer.BadParameter(f"only Taxi has a {' and a '.join(places)}, not {name}")
    with console.bad_input():
        layout = envs.layout(name, **places)
    if json:
        console.print_json(
            {
                "name": name,
                "states": mdp.num_states,
                "actions": list(layout.actions),
                "time_limit": mdp.time_limit,
                "map": list(layout.cells),
                "meaning": layout.meaning,
                "caption": layout.caption,
            }
        )
        return
    typer.echo(envs.render_ansi(layout, color=sys.stdout.isatty()), nl=False)
    legend = ", ".join(f"{cell} {meaning}" for cell, meaning in layout.meaning.items())
    marks = {"P": "passenger", "D": "destination"}
    legend += "".join(f", {mark} {marks[mark]}" for _, _, mark in layout.marks)
    typer.echo(f"{legend}\nactions: {', '.join(layout.actions)}")
