"""Checks of arguments. Errors name the argument, what it may be and what was given."""

import operator
import reprlib

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200


def shown(value: object) -> str:
    """Return a value as error messages show it: long ones are shortened."""
    return _SHORT.repr(value)


def instance(name: str, value: object, kind: type | tuple[type, ...], maker: str) -> None:
    """Raise TypeError unless the value is of a type; `maker` says what makes one."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(each.__name__ for each in kinds)
        raise TypeError(f"{name} must be a {wanted} ({maker}), got {shown(value)}")


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return a whole number of any integer type, as an int.

    Raises:
      TypeError: not a whole number.
      ValueError: below `low` or above `high`.
    """
    limits = f"of at least {low}" if high is None else f"from {low} to {high}"
    expected = f"{name} must be a whole number {limits}, got {shown(value)}"
    if isinstance(value, bool):
        raise TypeError(expected)
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(expected) from None
    if number < low or (high is not None and number > high):
        raise ValueError(expected)
    return number
