"""Metadata of a checkpoint: the training it belongs to, and the versions and devices it ran on."""

import dataclasses
import importlib.metadata
import json
import platform
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from flax.traverse_util import flatten_dict

from accel_rl import __version__
from accel_rl.io import Checkpoint
from accel_rl.io.values import Json
from accel_rl.train.compiled import as_arrays, number_of_seeds
from accel_rl.train.evaluate import Evaluation
from accel_rl.train.program import Program
from accel_rl.train.state import TrainState
from accel_rl.types import Array

PACKAGES = ("jax", "jaxlib", "numpy", "flax", "optax", "gymnax", "orbax-checkpoint")


def checkpoint_metadata(
    program: Program,
    key: Array,
    period: int,
    hyper: Mapping[str, Json],
    seeds: Mapping[str, Json],
    evaluation: Evaluation | None,
) -> dict[str, Json]:
    """Collect what determines the numbers of a training, as JSON values.

    `training` must be equal where a training is resumed. Where `setting` differs, floating-point
    numbers may round differently.
    """
    device = jax.devices()[0]
    value = {
        "training": {
            "environment": program.env.name,
            "reward_scale": program.reward_scale,
            "schedule": dataclasses.asdict(program.schedule),
            "period": period,
            "seeds": number_of_seeds(key),
            "keys": np.asarray(jax.random.key_data(key)),
            "evaluation": None if evaluation is None else dataclasses.asdict(evaluation),
            "hyper": jax.tree.map(_float32, as_arrays(hyper)),
        },
        "setting": {
            "strategy": {name: str(each) for name, each in seeds.items()},
            "devices": {"count": jax.device_count(), "kind": device.device_kind},
            "versions": {
                "python": platform.python_version(),
                "accel-rl": __version__,  # a plain checkout has no metadata
                **{name: importlib.metadata.version(name) for name in PACKAGES},
            },
        },
    }
    return json.loads(json.dumps(value, default=np.ndarray.tolist))


def check_metadata(saved: Mapping[str, Json], ours: Mapping[str, Json]) -> None:
    """Refuse the checkpoint of another training; warn of other versions or devices.

    Raises:
      ValueError: names the first difference and both values; or the checkpoint has no metadata.
    """
    if not ours.keys() <= saved.keys():
        raise ValueError("the checkpoint does not say of which training it is")
    for name, theirs, mine in _differences(saved["training"], ours["training"]):
        raise ValueError(
            f"to resume exactly, {name} must be as in the checkpoint, {_short(theirs)}, got "
            f"{_short(mine)}"
        )
    changes = [
        f"{name} was {theirs}, is {mine}"
        for name, theirs, mine in _differences(saved["setting"], ours["setting"])
    ]
    if changes:
        warnings.warn(
            f"the training resumes, but perhaps not bit for bit: {'; '.join(changes)}",
            stacklevel=4,
        )


def restore(program: Program, checkpoint: Checkpoint) -> TrainState:
    """Load the state of a checkpoint, to inspect it or to act with it.

    Args:
      program: equal to the one that was trained.
      checkpoint: such as `io.Checkpoints(folder).newest()`, or `.highest()`.

    Returns:
      The state, with a leading axis if it holds several seeds.
    """
    seeds = checkpoint.about.get("training", {}).get("seeds")
    template = jax.eval_shape(program.init, jax.random.key(0))
    if seeds is not None:
        template = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((seeds, *leaf.shape), leaf.dtype), template
        )
    return checkpoint.state(template)


def _differences(
    saved: Mapping[str, Json], ours: Mapping[str, Json]
) -> Iterator[tuple[str, Any, Any]]:
    theirs, mine = (flatten_dict(dict(each), sep=".") for each in (saved, ours))
    for name in dict.fromkeys([*mine, *theirs]):
        if theirs.get(name) != mine.get(name):
            yield name, theirs.get(name), mine.get(name)


def _float32(value: Any) -> Any:
    """Round to the program's precision, with as few digits as identify the number."""
    if np.ndim(value):
        return [_float32(each) for each in value]
    return float(str(np.float32(value)))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
