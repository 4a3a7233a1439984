"""Cache of measured costs on disk, by machine, versions and workload."""

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import platform
from pathlib import Path

import jax

from accel_rl import __version__
from accel_rl.cache import cache_folder
from accel_rl.compose.costs import Alike, Cost, Costs, Key
from accel_rl.compose.devices import DeviceLink
from accel_rl.experiment import Experiment
from accel_rl.experiment.configuration import to_mapping
from accel_rl.io import atomic_write
from accel_rl.io.machine import cpu_name
from accel_rl.io.values import Json

FORMAT = 6
_BY_KEY = ("steps", "slowdowns", "fused_iterations", "trials")
_VERSIONS = ("jax", "jaxlib", "flax", "optax", "numpy", "gymnax")
# Sections of a configuration on which costs depend, and the setting that is an exception.
_SECTIONS = ("environment", "agent", "replay", "schedule")
_EXCEPT = "learning_starts"


def fingerprint(experiment: Experiment) -> dict[str, Json]:
    """Return everything that costs depend on: machine, devices, versions and workload."""
    tables = to_mapping(experiment.configuration)
    return {
        "format": FORMAT,
        "machine": [platform.node(), platform.machine(), cpu_name(), os.cpu_count()],
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "devices": [f"{each.platform} {each.device_kind}" for each in jax.local_devices()]
        + [str(each) for each in jax.local_devices(backend="cpu")],
        "flags": os.environ.get("XLA_FLAGS", ""),
        "versions": {
            "accel-rl": __version__,  # a plain checkout has no metadata
            **{name: importlib.metadata.version(name) for name in _VERSIONS},
        },
        "workload": {
            section: {name: value for name, value in tables[section].items() if name != _EXCEPT}
            for section in _SECTIONS
        },
    }


def load(experiment: Experiment, folder: Path | None = None) -> Costs | None:
    """Load the costs saved for an experiment; None if there are none, or none that can be read."""
    path, wanted = _place(experiment, folder)
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        if held["fingerprint"] != json.loads(json.dumps(wanted)):
            return None
        return _costs(held["costs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # costs are then measured again, and the file is overwritten


def save(costs: Costs, experiment: Experiment, folder: Path | None = None) -> Path:
    """Write measured costs atomically; modelled costs are not kept.

    Raises:
      OSError: if the folder cannot be written.
    """
    path, wanted = _place(experiment, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"fingerprint": wanted, "costs": _plain(costs)}, indent=1)
    with atomic_write(path, "w") as file:
        file.write(text)
    return path


def _place(experiment: Experiment, folder: Path | None) -> tuple[Path, dict[str, Json]]:
    wanted = fingerprint(experiment)
    name = hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:24]
    return (folder or cache_folder() / "compose") / f"{name}.json", wanted


def _plain(costs: Costs) -> dict[str, Json]:
    """Convert costs for JSON; tables by `Key` become lists of steps, devices and value."""
    held = dataclasses.asdict(costs)
    measured = {key: each for key, each in held["steps"].items() if each["source"] == "measured"}
    held["steps"] = measured
    return held | {name: [[*key, each] for key, each in held[name].items()] for name in _BY_KEY}


def _costs(held: dict[str, Json]) -> Costs:
    tables = {
        name: {Key(tuple(steps), tuple(on)): each for steps, on, each in held[name]}
        for name in _BY_KEY
    }
    for name in ("steps", "fused_iterations"):
        tables[name] = {key: Cost(**each) for key, each in tables[name].items()}
    links = {name: DeviceLink(**each) for name, each in held["links"].items()}
    return Costs(**{**held, **tables, "alike": Alike(**held["alike"]), "links": links})
