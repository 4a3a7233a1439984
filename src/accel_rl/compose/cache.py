"""Cache of measured costs on disk, by machine, versions and workload."""

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

import jax

from accel_rl.compose.costs import Alike, Cost, Costs, Key
from accel_rl.compose.devices import Link
from accel_rl.compose.spec import Spec
from accel_rl.io import atomic_write
from accel_rl.io.cache import cache_folder
from accel_rl.io.machine import cpu_name

FORMAT = 4
_VERSIONS = ("accel-rl", "jax", "jaxlib", "flax", "optax", "numpy", "gymnax")
# Fields of a spec that its costs do not depend on.
_ELSEWHERE = ("devices", "objective", "weight", "power", "learning_starts")


def fingerprint(spec: Spec) -> dict[str, Any]:
    """Return everything that costs depend on: machine, devices, versions and workload."""
    return {
        "format": FORMAT,
        "machine": [platform.node(), platform.machine(), cpu_name(), os.cpu_count()],
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "devices": [f"{each.platform} {each.device_kind}" for each in jax.local_devices()]
        + [str(each) for each in jax.local_devices(backend="cpu")],
        "flags": os.environ.get("XLA_FLAGS", ""),
        "versions": {name: importlib.metadata.version(name) for name in _VERSIONS},
        "workload": {
            name: value for name, value in spec.to_table().items() if name not in _ELSEWHERE
        },
    }


def load(spec: Spec, folder: Path | None = None) -> Costs | None:
    """Load the costs saved for a spec; None if there are none, or none that can be read."""
    path, wanted = _place(spec, folder)
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        if held["fingerprint"] != json.loads(json.dumps(wanted)):
            return None
        return _costs(held["costs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # costs are then measured again, and the file is overwritten


def save(costs: Costs, spec: Spec, folder: Path | None = None) -> Path:
    """Write measured costs atomically; modelled costs are not kept.

    Raises:
      OSError: if the folder cannot be written.
    """
    path, wanted = _place(spec, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"fingerprint": wanted, "costs": _plain(costs)}, indent=1)
    with atomic_write(path, "w") as file:
        file.write(text)
    return path


def _place(spec: Spec, folder: Path | None) -> tuple[Path, dict[str, Any]]:
    wanted = fingerprint(spec)
    name = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:24]
    return (folder or cache_folder() / "compose") / f"{name}.json", wanted


def _plain(costs: Costs) -> dict[str, Any]:
    return {
        "alike": dataclasses.asdict(costs.alike),
        "steps": [
            [*key, dataclasses.astuple(cost)]
            for key, cost in costs.steps.items()
            if cost.source == "measured"
        ],
        "slowdowns": [[*key, value] for key, value in costs.slowdowns.items()],
        "fused": [
            [*key, dataclasses.astuple(cost)] for key, cost in costs.fused_iterations.items()
        ],
        "handoff": costs.handoff,
        "bookkeeping": costs.bookkeeping,
        "stretch": dict(costs.stretch),
        "trials": [[*key, value] for key, value in costs.trials.items()],
        "links": {name: dataclasses.astuple(link) for name, link in costs.links.items()},
        "group": costs.group,
    }


def _costs(held: dict[str, Any]) -> Costs:
    def table(name: str) -> dict[Key, Any]:
        return {Key(tuple(steps), tuple(on)): value for steps, on, value in held[name]}

    return Costs(
        alike=Alike(**held["alike"]),
        steps={key: Cost(*value) for key, value in table("steps").items()},
        slowdowns=table("slowdowns"),
        fused_iterations={key: Cost(*value) for key, value in table("fused").items()},
        handoff=float(held["handoff"]),
        bookkeeping=float(held["bookkeeping"]),
        stretch=dict(held["stretch"]),
        trials=table("trials"),
        links={name: Link(*each) for name, each in held["links"].items()},
        group=held["group"],
    )
