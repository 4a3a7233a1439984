"""`accel-rl doctor`: what this machine has, what it lacks, and why."""

import collections
from typing import Any, get_args

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import BackendName, Json

EXAMPLES = console.examples("accel-rl doctor", "accel-rl doctor --json")


def doctor(json: Json = False) -> None:
    """Report versions, devices, and which backends and transports are present."""
    runtime.prepare_jax()
    import jax

    from accel_rl.cli import folders
    from accel_rl.pim import available_machines

    versions, backends = folders.versions(), _backends()
    cache = jax.config.values["jax_compilation_cache_dir"]
    devices = jax.devices()
    machines = available_machines()
    if json:
        console.print_json(
            {
                "versions": versions,
                "cores": runtime.usable_cores(),
                "devices": [
                    {"id": each.id, "platform": each.platform, "kind": each.device_kind}
                    for each in devices
                ],
                "backends": backends,
                "transports": [],
                "compilation_cache": cache,
                "modelled_machines": machines,
            }
        )
        return
    console.print_table("Versions", ("package", "version"), versions.items())
    rows = ((b["name"], "present" if b["present"] else "absent", b["why"]) for b in backends)
    console.print_table("Backends", ("name", "", "why"), rows, numbers_from=3)
    kinds = collections.Counter(f"{each.platform} ({each.device_kind})" for each in devices)
    listed = ", ".join(f"{count} x {kind}" for kind, count in kinds.items())
    typer.echo(
        f"devices: {listed}, on {runtime.usable_cores()} cores\n"
        f"transports: none in this version\n"
        f"compilation cache: {cache or 'none'}\n"
        f"modelled machines: {', '.join(machines)}"
    )


def _backends() -> list[dict[str, Any]]:
    """Each backend by name, with what it is or why it is absent."""
    from accel_rl import pim

    found = []
    for name in get_args(BackendName):
        try:
            chosen = pim.select_backend(name)
        except ValueError as error:
            found.append({"name": name, "present": False, "why": str(error)})
            continue
        platform = chosen.mesh.devices.flat[0].platform
        why = f"DPUs emulated on {chosen.mesh.size} {platform} devices"
        why = f"picks {chosen.name}: {why}" if name == "auto" else why
        found.append({"name": name, "present": True, "why": why})
    return found
