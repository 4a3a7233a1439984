"""Hyper-parameters by name: defaults, limits and validation."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import NamedTuple, ParamSpec, TypeVar

from accel_rl.arguments import meant, scalar_within
from accel_rl.types import Array, ArrayLike

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Limits(NamedTuple):
    """Default, closed range and description of a hyper-parameter."""

    default: float
    low: float
    high: float
    meaning: str


def resolve(
    limits: Mapping[str, Limits], given: Mapping[str, ArrayLike], others: str = ""
) -> dict[str, Array]:
    """Return every hyper-parameter as a float32 scalar: the given value, else the default.

    Args:
      limits: known hyper-parameters.
      given: scalars by name; `vmap` over several.
      others: hint, appended to the message about an unknown name, where other names belong.
    """
    for name in given:
        if name not in limits:
            raise TypeError(f"no hyper-parameter {name!r}; {meant(name, limits)}{others}")

    return {
        name: scalar_within(name, given.get(name, each.default), f"[{each.low}, {each.high}]")
        for name, each in limits.items()
    }


def options_only(factory: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let an agent's factory say where hyper-parameters go, if it is given one."""
    known = inspect.signature(factory).parameters
    options = [name for name, each in known.items() if each.kind is each.KEYWORD_ONLY]

    @functools.wraps(factory)
    def made(*args: _P.args, **given: _P.kwargs) -> _T:
        name = next((each for each in given if each not in known), None)
        if name is not None:
            raise TypeError(
                f"{factory.__name__} has no option {name!r}; {meant(name, options)}. "
                f"Hyper-parameters are given to agent.init(key, {name}=...), or to a training as "
                f"agent={{{name!r}: ...}}"
            )
        return factory(*args, **given)

    return made
