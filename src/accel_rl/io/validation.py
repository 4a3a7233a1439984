"""Validation of values from files and the command line, with errors of one line."""

import json
from typing import Any, TypeVar

import pydantic

T = TypeVar("T")

STRICT = pydantic.ConfigDict(
    strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
)
"""Configuration of dataclasses that are read from files and words."""


_INTEGER = pydantic.TypeAdapter(int)


def validated(adapter: pydantic.TypeAdapter[T], value: object, name: str) -> T:
    """Return a value of TOML or JSON as the adapter's type; otherwise as `decoded`."""
    try:
        # Strict JSON: lists become tuples and ints floats, but no string or bool becomes a number.
        text = json.dumps(value)
    except TypeError as error:  # a date of TOML
        raise ValueError(f"{name}: {error}") from error
    return decoded(adapter, text, name)


def decoded(adapter: pydantic.TypeAdapter[T], text: str | bytes, name: str) -> T:
    """Decode JSON as the adapter's type.

    Raises:
      ValueError: if it is not JSON or not of the type; the message names the setting and the value.
    """
    try:
        return adapter.validate_json(text)
    except pydantic.ValidationError as error:
        raise _first_error(error, name) from error


def integer(value: object, name: str) -> int:
    """Return a value of TOML or JSON as an int; whole floats are ints."""
    return validated(_INTEGER, whole(value), name)


def whole(value: object) -> Any:
    """Return whole floats, such as 1e5, as ints; in lists, too."""
    if isinstance(value, list | tuple):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def finite(table: T) -> T:
    """Return a table; raise ValueError if it holds infinity or NaN, which JSON cannot represent."""
    try:
        json.dumps(table, allow_nan=False)
    except ValueError as error:
        raise ValueError("must hold finite numbers") from error
    return table


def _first_error(error: pydantic.ValidationError, name: str) -> ValueError:
    """Return the first of pydantic's errors in a line that names the setting and its value."""
    found = error.errors(include_url=False)[0]
    path = ".".join(str(each) for each in (name, *found["loc"]) if each != "")
    if found["type"] == "json_invalid":
        return ValueError(f"{name} is not JSON: {found['ctx']['error']}")
    if found["type"] == "missing":
        return ValueError(f"{path} is missing")
    if found["type"] == "value_error" and not path:  # of a check of the whole
        return ValueError(str(found["ctx"]["error"]))
    reason = found["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    for detail in (", unable to parse", ", got a number"):
        reason = reason.partition(detail)[0]
    return ValueError(f"{path} {reason}".strip() + f", got {json.dumps(found['input'])}")
