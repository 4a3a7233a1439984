"""Checks of arguments, with errors that name the argument, its valid values and the given value."""

import operator
import reprlib

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200


def shown(value: object) -> str:
    """Return a value's text for error messages, shortened if long."""
    return _SHORT.repr(value)


def instance(name: str, value: object, kind: type | tuple[type, ...], maker: str) -> None:
    """Raise TypeError unless the value is of a type; the error names `maker` as its source."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(each.__name__ for each in kinds)
        raise TypeError(f"{name} must be a {wanted} ({maker}), got {shown(value)}")


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """Convert an integer of any type to int, and check its range.

    Raises:
      TypeError: if it is not an integer, or a bool.
      ValueError: if it is below `low` or above `high`.
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
