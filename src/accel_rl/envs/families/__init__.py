"""Environments of other libraries, by names such as "brax:ant".

A family is a module with a function make(name, **arguments) -> `types.Environment`, imported when a
name asks for it. Its library is an extra of the same name. A family's name in front of a colon is
reserved: it never means a module of the user's own.
"""

import importlib
import importlib.metadata

import jax

from accel_rl.types import Environment

__all__ = ["FAMILIES", "is_family", "make"]

FAMILIES = ("brax", "craftax", "jumanji")

# Families without an adapter: distribution and reason.
_NOT_OFFERED = {
    "jaxatari": (
        "jaxtari",
        "its games start only with sprites that each user downloads after a statement on owning "
        "the Atari ROMs, so no adapter could be tested; one of your own is "
        "envs.register(NAME, ENVIRONMENT)",
    )
}


def is_family(name: str) -> bool:
    """Return whether a name begins with a family's reserved prefix."""
    family, colon, _ = name.partition(":")
    return bool(colon) and family in (*FAMILIES, *_NOT_OFFERED)


def make(name: str, **kwargs: object) -> Environment:
    """Make an environment of a family.

    Args:
      name: "family:name".
      **kwargs: arguments of the library's constructor.

    Raises:
      ValueError: if the library is not installed, cannot be imported beside this jax or has no
        such environment, or if the family has no adapter.
    """
    family, _, own = name.partition(":")
    if family in _NOT_OFFERED:
        package, why = _NOT_OFFERED[family]
        raise ValueError(f"{name} is not offered: {package} ({_found(package)}): {why}")
    try:
        module = importlib.import_module(f"accel_rl.envs.families.{family}")
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{name} needs {error.name}, which is not installed: pip install 'accel-rl[{family}]'"
        ) from error
    except (ImportError, AttributeError) as error:  # of names that jax has dropped
        raise ValueError(
            f"{name} needs {family}, of which {_found(family)} cannot be imported beside jax "
            f"{jax.__version__}: {error}. Versions that work: pip install 'accel-rl[{family}]'"
        ) from error
    made: Environment = module.make(own, **kwargs)
    return made._replace(name=name)


def _found(package: str) -> str:
    try:
        return f"version {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
