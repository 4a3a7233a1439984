"""Environments of other libraries, by names such as "brax:ant".

A family is a module with a function make(name, **arguments) -> `types.Environment`, imported when a
name asks for it. Its library is an extra of the same name.
"""

import importlib

from accel_rl.types import Environment

__all__ = ["FAMILIES", "is_family", "make"]

FAMILIES = ("brax", "jumanji")


def is_family(name: str) -> bool:
    """Return whether a name is of a family's environment."""
    return name.partition(":")[0] in FAMILIES and ":" in name


def make(name: str, **kwargs: object) -> Environment:
    """Make an environment of a family.

    Args:
      name: "family:name".
      **kwargs: arguments of the library's constructor.

    Raises:
      ValueError: if the library is not installed, or has no such environment.
    """
    family, _, own = name.partition(":")
    try:
        module = importlib.import_module(f"accel_rl.envs.families.{family}")
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{name} needs {error.name}, which is not installed: pip install 'accel-rl[{family}]'"
        ) from error
    made: Environment = module.make(own, **kwargs)
    return made._replace(name=name)
