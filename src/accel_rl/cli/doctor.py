"""`accel-rl doctor`: versions, devices, backends, transports and optional parts."""

import collections
import dataclasses
import os
from pathlib import Path
from typing import get_args

import typer

from accel_rl.cli import console, runtime
from accel_rl.cli.arguments import AsJson, BackendName
from accel_rl.cli.optional import PARTS
from accel_rl.io.machine import core_count
from accel_rl.io.values import Json

_DRIVERS = {
    "memif": "memif",
    "vhost": "vhost",
    "virtio": "virtio_user",
    "af_packet": "af_packet",
    "af_xdp": "af_xdp",
}
_NEEDS_ROOT = ("af_packet", "af_xdp")

EXAMPLES = console.examples("accel-rl doctor", "accel-rl doctor --json")


def doctor(json: AsJson = False) -> None:
    """Report versions, devices, backends, transports, and optional parts with what brings them."""
    runtime.prepare_jax()
    import jax

    from accel_rl.io import run_folder
    from accel_rl.pim import available_machines

    versions, backends, transports = run_folder.versions(), _backends(), _transports()
    parts = _optional_parts()
    cache = jax.config.values["jax_compilation_cache_dir"]
    devices = jax.devices()
    machines, upmem = available_machines(), _upmem()
    if json:
        console.print_json(
            {
                "versions": versions,
                "cores": core_count(),
                "devices": [
                    {"id": each.id, "platform": each.platform, "kind": each.device_kind}
                    for each in devices
                ],
                "backends": backends,
                "upmem": upmem,
                "transports": transports,
                "optional": parts,
                "compilation_cache": cache,
                "modelled_machines": machines,
            }
        )
        return
    console.print_table("Versions", ("package", "version"), versions.items())
    tables = {"Backends": backends, "Transports of the replay server": transports}
    for title, found in tables.items():
        rows = ((f["name"], "present" if f["present"] else "absent", f["why"]) for f in found)
        console.print_table(title, ("name", "", "why"), rows, numbers_from=3)
    rows = (
        (p["name"], p["purpose"], "present" if p["present"] else f"absent: {p['package']}")
        for p in parts
    )
    console.print_table("Optional parts", ("name", "for", ""), rows, numbers_from=3)
    kinds = collections.Counter(f"{each.platform} ({each.device_kind})" for each in devices)
    listed = ", ".join(f"{count} x {kind}" for kind, count in kinds.items())
    typer.echo(
        f"devices: {listed}, on {core_count()} cores\n"
        f"UPMEM SDK: {_sdk_line(upmem['sdk'])}\n"
        f"UPMEM emulator: {upmem['emulator']['why']}\n"
        f"real DPUs: {_dpus_line(upmem)}\n"
        f"compilation cache: {cache or 'none'}\n"
        f"modelled machines: {', '.join(machines)}"
    )


def _backends() -> list[dict[str, Json]]:
    """List the backends, each with its description or the reason of its absence."""
    from accel_rl import native, pim

    found = []
    for name in get_args(BackendName):
        if name == "upmem":
            found.append(_upmem_backend())
            continue
        try:
            chosen = pim.select_backend(name)
        except ValueError as error:
            found.append({"name": name, "present": False, "why": str(error)})
            continue
        platform = chosen.mesh.devices.flat[0].platform
        why = f"DPUs emulated on {chosen.mesh.size} {platform} devices"
        if chosen.name == "cpu":
            why = f"{why} by native kernels, with {native.instruction_set()} instructions"
        why = f"picks {chosen.name}: {why}" if name == "auto" else why
        found.append({"name": name, "present": True, "why": why})
    return found


def _transports() -> list[dict[str, Json]]:
    """List the transports by which clients reach a replay server on this machine."""
    from accel_rl.remote.module import native

    what = {
        "tcp": "sockets of the kernel, to any machine",
        "tls": "TCP that nobody can read or change on its way; secrets take the same library",
        "udp": "datagrams by sockets of the kernel, to any machine",
        "unix": "sockets of the kernel, on one machine",
        "shm": "memory that server and client share, on one machine",
    }
    try:
        module = native()
        lacking = {"shm": module.why_no_shm(), "tls": module.why_no_crypto()}
    except ImportError as error:
        lacking = dict.fromkeys(what, str(error))
    found = [
        {"name": name, "present": not lacking.get(name), "why": lacking.get(name) or text}
        for name, text in what.items()
    ]
    return [*found, *_dpdk_transports()]


def _dpdk_transports() -> list[dict[str, Json]]:
    """List the transports over DPDK, present or absent, with the reason."""
    from accel_rl.remote.module import native

    try:
        found = native().describe_dpdk()
    except ImportError as error:
        found = {"version": "", "drivers": "", "why": str(error)}
    if found["why"]:
        return [{"name": name, "present": False, "why": found["why"]} for name in ("dpdk", "memif")]
    drivers = [
        called
        for name, called in _DRIVERS.items()
        if list(Path(found["drivers"]).glob(f"librte_net_{name}.so*"))
    ]
    root = os.geteuid() == 0
    parts = [
        f"{found['version']}, with {', '.join(drivers) or 'none of our drivers'}",
        f"{_hugepages()} hugepages (only real devices need them)",
        f"{'' if root else 'no '}root, which {' and '.join(_NEEDS_ROOT)} take",
    ]
    memif = "shared memory with programs on DPDK, without privileges or hugepages"
    if "memif" not in drivers:
        memif = f"{found['version']} has no memif driver in {found['drivers']}"
    return [
        {"name": "dpdk", "present": True, "why": "; ".join(parts)},
        {"name": "memif", "present": "memif" in drivers, "why": memif},
    ]


def _hugepages() -> int:
    """Count hugepages of all sizes, free or in use; 0 where the kernel does not list them."""
    try:
        return sum(
            int(path.read_text())
            for path in Path("/sys/kernel/mm/hugepages").glob("*/nr_hugepages")
        )
    except OSError:
        return 0


def _optional_parts() -> list[dict[str, Json]]:
    """List the optional parts, with the reason of absence and how to install them."""
    return [
        {
            "name": name,
            "present": why is None,
            "purpose": part.purpose,
            "package": part.package,
            "why": why or "",
        }
        for name, part in PARTS.items()
        for why in (part.why_absent(),)
    ]


def _upmem_backend() -> dict[str, Json]:
    """Describe backend "upmem", without building anything for it."""
    from accel_rl import pim

    why = pim.upmem.why_absent()
    if why:
        return {"name": "upmem", "present": False, "why": f"backend 'upmem' is absent: {why}"}
    vendor = pim.upmem.which_toolkit() == "vendor"
    what = "UPMEM's SDK" if vendor else "our emulator of it, pim_emu"
    return {"name": "upmem", "present": True, "why": f"DPU programs, built and run with {what}"}


def _upmem() -> dict[str, Json]:
    """Describe UPMEM's SDK, its emulator, and real DPUs, without opening a device."""
    from accel_rl.pim.upmem import sdk as upmem_sdk

    why = upmem_sdk.why_no_emulator()
    ranks = upmem_sdk.count_ranks(upmem_sdk.DEVICES)
    return {
        "sdk": dataclasses.asdict(upmem_sdk.find_sdk()),
        "emulator": {"present": why is None, "why": why or "builds and runs DPU programs here"},
        "ranks": ranks,
        "dpus_at_most": upmem_sdk.DPUS_PER_RANK * ranks,
    }


def _sdk_line(sdk: dict[str, Json]) -> str:
    if not sdk["found"]:
        return f"not found: {sdk['why']}"
    return f"{sdk['version'] or 'of unknown version'}, in {sdk['where']}: {sdk['why']}"


def _dpus_line(upmem: dict[str, Json]) -> str:
    if not upmem["ranks"]:
        return "none"
    return f"at most {upmem['dpus_at_most']} (ranks: {upmem['ranks']})"
