"""Registry of environments by name: tabular ones built here, all others from gymnax.

gymnax takes two seconds to import, so only the calls that need it import it.
"""

import difflib
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import jax

from accel_rl.envs import families
from accel_rl.envs.cliff_walking import cliff_walking, cliff_walking_layout
from accel_rl.envs.dynamics import check_tables
from accel_rl.envs.frozen_lake import frozen_lake, frozen_lake_layout
from accel_rl.envs.taxi import taxi, taxi_layout
from accel_rl.types import MDP, Environment, GridLayout


class _Entry(NamedTuple):
    build: Callable[..., Any]
    layout: Callable[..., GridLayout] | None
    arguments: dict[str, object]  # defaults of both functions for this name; callers override them
    build_arguments: dict[str, object]  # further defaults of `build` alone
    custom: bool = False  # registered by a user: what it builds may have no tables


_TABULAR = {
    "FrozenLake-v1": _Entry(
        frozen_lake, frozen_lake_layout, {"map_name": "4x4"}, {"time_limit": 100}
    ),
    "FrozenLake8x8-v1": _Entry(
        frozen_lake, frozen_lake_layout, {"map_name": "8x8"}, {"time_limit": 200}
    ),
    "Taxi-v3": _Entry(taxi, taxi_layout, {}, {}),
    "Taxi-v4": _Entry(taxi, taxi_layout, {}, {}),
    "CliffWalking-v1": _Entry(cliff_walking, cliff_walking_layout, {}, {}),
    "CliffWalkingSlippery-v1": _Entry(
        cliff_walking, cliff_walking_layout, {}, {"is_slippery": True}
    ),
}


def register(name: str, build: Any, layout: Callable[..., GridLayout] | None = None) -> None:
    """Register a custom environment by name, in this process.

    The name then works in `environment` and configurations and, if it has tables, in `make`,
    `make_mdp` and for logs. If the module that calls `register` is not yet imported, as on the
    command line, write `module:name`.

    Args:
        name: of the environment.
        build: a `types.Environment`, a gymnax environment, or a function that returns one, or an
            `MDP`, from the keyword arguments that users give.
        layout: returns the layout of an MDP for drawing, from the same arguments; None: it cannot
            be drawn.
    """
    if ":" in name:
        raise ValueError(f"name must have no colon, which ends a module's name, got {name!r}")
    if name in list_environments(gymnax=True):
        raise ValueError(f"name must be a new one, {name!r} is registered already")
    if isinstance(build, Environment) or not callable(build):
        made, build = build, lambda: made
    _TABULAR[name] = _Entry(build, layout, {}, {}, custom=True)


def make(name: str, **kwargs: object) -> tuple[Any, Any]:
    """Make a gymnax environment and its default parameters.

    The names of `list_environments()` yield a `TabularEnv`; other names go to `gymnax.make`, except
    MountainCarContinuous-v0, where gymnax lacks the left wall. Taxi-v3 and Taxi-v4 are the same
    here: Gymnasium's v4 only fixed the rain.

    Args:
        name: an environment's registered name; `module:name` imports the module that registers it.
        **kwargs: arguments of the builder (`frozen_lake`, `taxi`, `cliff_walking`) or of gymnax's
            environment.

    Returns:
        env: a `gymnax.environments.environment.Environment`.
        params: its default parameters.

    Raises:
        TypeError: the environment has no such argument.
        ValueError: the name is unknown; the message lists similar names.
    """
    if resolve(name) in _TABULAR:
        from accel_rl.envs.tabular_env import TabularEnv

        env = TabularEnv(make_mdp(name, **kwargs), name)
        return env, env.default_params
    if name == "MountainCarContinuous-v0":
        from accel_rl.envs.mountain_car import MountainCarContinuous

        car = MountainCarContinuous(**kwargs)
        return car, car.default_params
    import gymnax

    if name not in gymnax.registered_envs:
        raise ValueError(_unknown(name, list_environments(gymnax=True)))
    return gymnax.make(name, **kwargs)


def make_mdp(name: str, **kwargs: object) -> MDP:
    """Make the tables of a tabular environment, with the time limit of Gymnasium's registry.

    Args:
        name: one of `list_environments()`, or `module:name`, as for `make`.
        **kwargs: arguments of its builder: `frozen_lake`, `taxi` or `cliff_walking`.
    """
    _entry(name)  # raises ValueError for another name
    mdp = build(name, **kwargs)
    if not isinstance(mdp, MDP):
        raise ValueError(f"{name} has no tables: it was registered as an environment")
    return mdp


def build(name: str, **kwargs: object) -> Any:
    """Build what a name was registered with, None for gymnax's names.

    Returns:
        An `MDP`, whose tables were checked, a `types.Environment` or a gymnax environment.
    """
    entry = _TABULAR.get(resolve(name))
    if entry is None:
        return None
    built = entry.build(**{**entry.arguments, **entry.build_arguments, **kwargs})
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(built))
    if isinstance(built, MDP) and not traced:
        check_tables(built)
    return built


def layout(name: str, **kwargs: object) -> GridLayout:
    """Make the layout for drawing a tabular environment.

    Args:
        name: one of `list_environments()`, or `module:name`, as for `make`.
        **kwargs: `map_name`, `desc` for FrozenLake; `passenger`, `destination` for Taxi.
    """
    entry = _entry(name)
    if entry.layout is None:
        raise ValueError(f"{name} was registered without a layout, so it cannot be drawn")
    return entry.layout(**{**entry.arguments, **kwargs})


def list_environments(*, gymnax: bool = False) -> tuple[str, ...]:
    """List the names that `make` knows.

    Args:
        gymnax: also list gymnax's environments, which imports gymnax.

    Returns:
        The tabular environments built here, then gymnax's.
    """
    if not gymnax:
        return tuple(_TABULAR)
    from gymnax import registered_envs

    return (*_TABULAR, *registered_envs)


def resolve(name: str) -> str:
    """Return the registered name of an environment, after importing the module in front of it.

    Args:
        name: `name`, or `module:name` for an environment that `module` registers.

    Raises:
        ValueError: the module does not exist, cannot be imported or does not register the name, or
            is a family's reserved prefix.
    """
    module, colon, own = name.partition(":")
    if not colon:
        return name
    if families.is_family(name):
        raise ValueError(f"{name} has neither tables nor a gymnax class; make it by `environment`")
    import_named(name)
    if own not in _TABULAR:
        raise ValueError(f"module {module} registers no {own!r}; {_hint(own, tuple(_TABULAR))}")
    return own


def registers(name: str) -> bool:
    """Return whether the module of `module:name` registers the name here, after importing it."""
    import_named(name)
    return name.partition(":")[2] in _TABULAR


def import_named(name: str) -> ModuleType:
    """Import the module of `module:name`.

    Raises:
        ValueError: the module does not exist or cannot be imported.
    """
    module = name.partition(":")[0]
    if not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(f"a name with a colon must be MODULE:NAME, got {name!r}")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        lacking = f"{module}.".startswith(f"{error.name}.")
        why = "it is neither installed nor on Python's path" if lacking else str(error)
        raise ValueError(f"module {module} of {name!r} cannot be imported: {why}") from error


def has_tables(name: str, *, drawn: bool = False) -> bool:
    """Return whether `make_mdp` knows a name and, with `drawn`, whether it has a layout too."""
    try:
        entry = _entry(name)
    except ValueError:
        return False
    if entry.custom and not isinstance(entry.build(), MDP):
        return False
    return not drawn or entry.layout is not None


def _entry(name: str) -> _Entry:
    own = resolve(name)
    if own not in _TABULAR:
        others = "agents such as dqn need no tables"
        raise ValueError(_unknown(name, tuple(_TABULAR), "environment with tables", others))
    return _TABULAR[own]


def _unknown(
    name: str,
    known: tuple[str, ...],
    what: str = "environment",
    others: str = "Gymnasium's are made by host_environment",
) -> str:
    hint = _hint(name, known)
    elsewhere = "" if hint.endswith("?") else f"; one of your own is MODULE:NAME, {others}"
    return f"no {what} is named {name!r}; {hint}{elsewhere}"


def _hint(name: str, known: tuple[str, ...]) -> str:
    lower = {each.lower(): each for each in known}
    close = [lower[each] for each in difflib.get_close_matches(name.lower(), lower, n=3)]
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(known)}"
