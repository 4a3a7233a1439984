"""What a checkpoint is from, and whether a training may go on from it."""

import dataclasses
import importlib.metadata
import json
import platform
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from accel_rl.train.compiled import Evaluation, arrays, number_of_seeds
from accel_rl.train.program import Program
from accel_rl.types import Array

PACKAGES = ("accel-rl", "jax", "jaxlib", "numpy", "flax", "optax", "gymnax", "orbax-checkpoint")


def origin(
    program: Program,
    key: Array,
    period: int,
    hyper: Mapping[str, Any],
    seeds: Mapping[str, Any],
    evaluation: Evaluation | None,
) -> dict[str, Any]:
    """What decides what a training computes and logs, for JSON.

    `training` must be the same where a training is resumed. Elsewhere in `setting` floating-point
    numbers may round differently.
    """
    device = jax.devices()[0]
    value = {
        "training": {
            "environment": program.env.name,
            "schedule": dataclasses.asdict(program.schedule),
            "period": period,
            "seeds": number_of_seeds(key),
            "keys": np.asarray(jax.random.key_data(key)),
            "evaluation": None if evaluation is None else dataclasses.asdict(evaluation),
            "hyper": jax.tree.map(_float32, arrays(hyper)),
        },
        "setting": {
            "strategy": {name: str(each) for name, each in seeds.items()},
            "devices": {"count": jax.device_count(), "kind": device.device_kind},
            "versions": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in PACKAGES},
            },
        },
    }
    return json.loads(json.dumps(value, default=np.ndarray.tolist))


def check_origin(saved: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuses a checkpoint of another training, and warns of one made in another setting.

    Raises:
      ValueError: naming what differs first, and both values; or it is not one of `chunked`.
    """
    if not ours.keys() <= saved.keys():
        raise ValueError("the checkpoint does not say of which training it is")
    for name, theirs, mine in _changes(saved["training"], ours["training"]):
        raise ValueError(
            f"to go on exactly, {name} must be as in the checkpoint, {_short(theirs)}, got "
            f"{_short(mine)}"
        )
    changes = [
        f"{name} was {theirs}, is {mine}"
        for name, theirs, mine in _changes(saved["setting"], ours["setting"])
    ]
    if changes:
        warnings.warn(
            f"the training goes on, but perhaps not bit for bit: {'; '.join(changes)}",
            stacklevel=4,
        )


def _changes(saved: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    theirs, mine = _flat(saved), _flat(ours)
    for name in dict.fromkeys([*mine, *theirs]):
        if theirs.get(name) != mine.get(name):
            yield name, theirs.get(name), mine.get(name)


def _flat(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted names; lists are values."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{inner}": each for inner, each in _flat(value).items()})
        else:
            flat[name] = value
    return flat


def _float32(value: Any) -> Any:
    """As the program takes it, with as few digits as tell it apart."""
    if np.ndim(value):
        return [_float32(each) for each in value]
    return float(str(np.float32(value)))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
