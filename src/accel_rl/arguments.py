"""Checks of arguments, before anything is traced.

Errors name the argument, what it may be and what was given. What is only known when a program runs
passes: its shape alone can be looked at. JAX and NumPy are not imported here, for those who do
without.
"""

import difflib
import operator
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200


def shown(value: object) -> str:
    """A value as error messages show it: long ones are shortened."""
    return _SHORT.repr(value)


def integer(name: str, value: Any) -> int:
    """A whole number of any integer type, as an int; raises TypeError of others, and of bools."""
    wrong = f"{name} must be an int, got {shown(value)}"
    if isinstance(value, bool) or getattr(value, "dtype", None) == "bool":
        raise TypeError(wrong)
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(wrong) from None


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """A whole number of any integer type, as an int.

    Raises:
      TypeError: if it is none; a bool is none.
      ValueError: if it is below `low` or above `high`.
    """
    number = integer(name, value)
    if number < low or (high is not None and number > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be {limits}, got {number}")
    return number


def real(name: str, value: Any) -> Any:
    """A single real number, known or traced, as it is; its range is the caller's to check.

    Raises:
      TypeError: if it is no number; a bool is none.
      ValueError: if it is several.
    """
    import numpy as np

    if np.shape(value) != ():
        raise ValueError(f"{name} must be a scalar, got shape {np.shape(value)}")
    dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    # JAX's small floats are of no kind that NumPy knows.
    if getattr(dtype, "kind", "O") not in "iuf" and "float" not in str(dtype):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    return value


def meant(name: str, names: Iterable[str], others: Mapping[str, str] | None = None) -> str:
    """What to say after a name that is none of some: the one that was meant, and which there are.

    Args:
      name: as it was given; case, and hyphens for underscores, count for nothing.
      names: those there are.
      others: further names that one may go by, each with the right one.
    """
    names = list(names)
    near = _near(name, names, others or {})
    hint = f"did you mean {near}? " if near else ""
    return f"{hint}there are {', '.join(names)}"


def _near(name: str, names: Iterable[str], others: Mapping[str, str]) -> str | None:
    spelt = {_plain(each): each for each in names}
    spelt.update({_plain(each): right for each, right in others.items()})
    close = difflib.get_close_matches(_plain(name), spelt, n=1)
    return spelt[close[0]] if close else None


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def one_of(name: str, value: Any, names: Any, others: Mapping[str, str] | None = None) -> None:
    """Raises ValueError unless the value is one of some names; `others` is as of `meant`."""
    if value not in tuple(names):
        near = _near(value, names, others or {}) if isinstance(value, str) else None
        hint = f"; did you mean {near}?" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(names)}, got {shown(value)}{hint}")


def instance(name: str, value: Any, kind: type | tuple[type, ...], maker: str = "") -> None:
    """Raises TypeError unless the value is of a type; `maker` says what makes one."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        hint = f" ({maker})" if maker else ""
        wanted = " or ".join(each.__name__ for each in kinds)
        article = "an" if wanted[0] in "AEIOUaeiou" else "a"
        raise TypeError(f"{name} must be {article} {wanted}{hint}, got {shown(value)}")


def function(name: str, value: Any) -> None:
    """Raises TypeError unless the value can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {shown(value)}")
