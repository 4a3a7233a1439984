"""accel_rl: reinforcement learning in JAX for when memory is the bottleneck.

`import accel_rl` imports no subpackage: each, such as `accel_rl.replay`, is imported on first use.
It lets JAX keep compiled programs (`cache.keep_compilations`).
"""

import importlib
from typing import TYPE_CHECKING, Any

from accel_rl.cache import keep_compilations

if TYPE_CHECKING:
    from accel_rl import (
        agents,
        am,
        compose,
        datasets,
        envs,
        experiment,
        hardware_models,
        io,
        networks,
        pim,
        plot,
        remote,
        replay,
        tabular,
        testing,
        train,
        types,
    )

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "agents",
    "am",
    "compose",
    "datasets",
    "envs",
    "experiment",
    "hardware_models",
    "io",
    "networks",
    "pim",
    "plot",
    "remote",
    "replay",
    "tabular",
    "testing",
    "train",
    "types",
]


keep_compilations()


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"accel_rl.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
