"""Checks of arguments, before anything is traced.

Errors name the argument, its valid values and the given value. Traced values pass, since only their
shape and dtype are known. This module imports JAX and NumPy only when they are needed.
"""

import difflib
import functools
import operator
import reprlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200


def shown(value: object) -> str:
    """Return a value's text for error messages, shortened if long."""
    return _SHORT.repr(value)


def integer(name: str, value: Any) -> int:
    """Convert an integer of any type to int; raise TypeError for other types and bools."""
    wrong = f"{name} must be an int, got {shown(value)}"
    if isinstance(value, bool) or getattr(value, "dtype", None) == "bool":
        raise TypeError(wrong)
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(wrong) from None


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """Convert an integer of any type to int; raise ValueError outside of `low` to `high`."""
    number = integer(name, value)
    if number < low or (high is not None and number > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be {limits}, got {number}")
    return number


def real(name: str, value: Any) -> Any:
    """Return a real scalar, concrete or traced, unchanged; raise TypeError for other types."""
    if type(value) in (int, float):  # without NumPy, which takes microseconds
        return value
    import numpy as np

    if np.shape(value) != ():
        raise ValueError(f"{name} must be a scalar, got shape {np.shape(value)}")
    dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    # NumPy does not give JAX's small floats, such as bfloat16, the kind "f".
    if getattr(dtype, "kind", "O") not in "iuf" and "float" not in str(dtype):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    return value


def within(name: str, value: Any, interval: str) -> Any:
    """Return a real scalar; raise ValueError outside of an interval like "[0, 1)", or for NaN."""
    number = float(real(name, value))  # comparing a JAX array would trace it under jit
    low, high = _ends(interval)
    above = number > low if interval[0] == "(" else number >= low
    below = number < high if interval[-1] == ")" else number <= high
    if not (above and below):
        raise ValueError(f"{name} must be {_in_words(interval)}, got {value}")
    return value


def scalar_within(name: str, value: Any, interval: str) -> Any:
    """Check a real scalar, in an interval such as "[0, 1)" unless it is traced.

    Returns:
      The scalar as a JAX array, [] float32.
    """
    import jax

    if isinstance(value, jax.core.Tracer):
        real(name, value)
    else:
        within(name, value, interval)
    return jax.numpy.asarray(value, jax.numpy.float32)


@functools.cache
def _ends(interval: str) -> tuple[float, float]:
    low, high = interval[1:-1].split(",")
    return float(low), float(high)


def _in_words(interval: str) -> str:
    low, high = (end.strip() for end in interval[1:-1].split(","))
    least = f"above {low}" if interval[0] == "(" else f"at least {low}"
    if high == "inf":
        return f"finite and {least}" if interval[-1] == ")" else least
    if interval[0] + interval[-1] == "[]":
        return f"from {low} to {high}"
    return f"{least} and {'below' if interval[-1] == ')' else 'at most'} {high}"


def require_array(name: str, array: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    """Raise TypeError unless an array has the dtype, ValueError unless it has the shape."""
    if array.dtype != dtype:
        import numpy as np

        raise TypeError(f"{name} must be {np.dtype(dtype)}, got {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")


def prng_key(name: str, key: Any) -> None:
    """Raise TypeError unless a value is a PRNG key, or an array of them, as a seed is not."""
    dtype = str(getattr(key, "dtype", ""))
    if not dtype.startswith("key<") and dtype != "uint32":
        raise TypeError(f"{name} must be a PRNG key such as jax.random.key(0), got {shown(key)}")


def meant(name: str, names: Collection[str]) -> str:
    """Return a hint for an unknown name: the closest known name, and the list of known names."""
    near = _near(name, names)
    hint = f"did you mean {near}? " if near else ""
    return f"{hint}there are {', '.join(names)}"


def _near(name: str, names: Iterable[str], others: Mapping[str, str] | None = None) -> str | None:
    """Return the closest name; case is ignored, and hyphens count as underscores."""
    known = {each: each for each in names} | dict(others or {})
    spelt = {each.lower().replace("-", "_"): right for each, right in known.items()}
    close = difflib.get_close_matches(name.lower().replace("-", "_"), spelt, n=1)
    return spelt[close[0]] if close else None


def one_of(
    name: str, value: object, names: Iterable[str], others: Mapping[str, str] | None = None
) -> None:
    """Raise ValueError unless the value is one of the names; `others` maps aliases to names."""
    if value not in tuple(names):
        near = _near(value, names, others) if isinstance(value, str) else None
        hint = f"; did you mean {near}?" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(names)}, got {shown(value)}{hint}")
