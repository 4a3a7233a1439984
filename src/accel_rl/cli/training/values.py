"""Single values of a configuration: read from text, and checked against a type."""

import collections.abc
import difflib
import json
import math
import tomllib
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Union

_NONE = ("none", "null")
_OPENING, _CLOSING = "[{(", "]})"


def parse(text: str) -> Any:
    """Parse a word of the command line as a TOML value or None, else return it as a string.

    `1e-3`, `500_000`, `true`, `[64, 64]` and `"quoted"` are TOML; `none` and `null` are None.
    """
    if text.lower() in _NONE:
        return None
    try:
        (value,) = tomllib.loads(f"value = {text}").values()
    except (tomllib.TOMLDecodeError, ValueError):
        return text
    return value


def split(text: str) -> list[str]:
    """Split text at commas outside brackets and quotes: `[64,64],[32]` has two parts.

    Raises:
      ValueError: if a part is empty.
    """
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    parts = [part.strip() for part in parts]
    if not all(parts):
        raise ValueError(f"values must be parted by single commas, got {text!r}")
    return parts


def assignment(text: str) -> tuple[str, str]:
    """Split `a.b=c` into the dotted name and the value's text.

    Raises:
      ValueError: if the text is not of that form.
    """
    name, equals, value = text.partition("=")
    if not equals or not all(name.split(".")) or not value:
        raise ValueError(f"settings are written section.name=value, got {text!r}")
    return name.strip(), value.strip()


def unknown(name: str, known: Iterable[str], what: str = "setting") -> ValueError:
    """Return the error for an unknown name; it suggests a similar name, or lists all names."""
    names = list(known)
    section, _, last = name.rpartition(".")
    near = [each for each in names if section and each.startswith(f"{section}.")] or names
    hint = f"there are {', '.join(near)}"
    # An equal last part before a similar one; names of the same section before others.
    for least in (1.0, 0.6):
        for some in (near, names):
            lasts = {each.rpartition(".")[2]: each for each in reversed(some)}
            close = difflib.get_close_matches(last, lasts, n=1, cutoff=least)
            if close:
                return ValueError(f"no {what} is named {name!r}; did you mean {lasts[close[0]]}?")
    return ValueError(f"no {what} is named {name!r}; {hint}")


def conform(kind: Any, value: Any, name: str) -> Any:
    """Convert a value to a type of the configuration.

    Whole floats become ints, ints become floats and lists become tuples where the type asks for it.

    Args:
      kind: bool, int, float, str, None, Literal, a sequence or mapping of such, or a union.
      value: from TOML, JSON or the command line.
      name: the setting, for the message.

    Raises:
      ValueError: if the value is not of the type.
    """
    for choice in _choices(kind):
        fits, result = _fit(choice, value, name)
        if fits:
            return result
    raise ValueError(f"{name} must be {describe(kind)}, got {_shown(value)}")


def configurable(kind: Any) -> bool:
    """Return whether values of a type can be given as text."""
    for choice in _choices(kind):
        origin = typing.get_origin(choice)
        if choice in (bool, int, float, str, None, type(None)) or origin is Literal:
            continue
        if not _is_sequence(origin) or not configurable(typing.get_args(choice)[0]):
            return False
    return True


def describe(kind: Any) -> str:
    """Describe a type in words."""
    named = {bool: "true or false", int: "an integer", float: "a finite number", str: "a string"}
    words = []
    for choice in _choices(kind):
        origin = typing.get_origin(choice)
        if origin is Literal:
            words.append(f"one of {', '.join(map(str, typing.get_args(choice)))}")
        elif _is_sequence(origin):
            words.append(f"a list, each item {describe(typing.get_args(choice)[0])}")
        elif origin is collections.abc.Mapping:
            words.append("a table of names and values, all numbers finite")
        else:
            words.append("none" if choice in (None, type(None)) else named[choice])
    return " or ".join(words)


def _fit(kind: Any, value: Any, name: str) -> tuple[bool, Any]:
    origin = typing.get_origin(kind)
    if kind in (None, type(None)):
        return value is None, None
    if origin is Literal:
        return value in typing.get_args(kind), value
    if _is_sequence(origin):
        if not isinstance(value, Sequence) or isinstance(value, str):
            return False, None
        of = typing.get_args(kind)[0]
        return True, tuple(conform(of, each, f"{name}[{n}]") for n, each in enumerate(value))
    if origin is collections.abc.Mapping:
        return isinstance(value, collections.abc.Mapping) and _is_json(dict(value)), value
    if kind is int and isinstance(value, float) and value.is_integer():
        return True, int(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return True, float(value)
    if kind is float and isinstance(value, float):
        return math.isfinite(value), value
    return type(value) is kind, value


def _is_json(value: Any) -> bool:
    """Return whether JSON can represent a value: finite numbers only, no dates."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _choices(kind: Any) -> tuple[Any, ...]:
    if typing.get_origin(kind) in (Union, types.UnionType):
        return typing.get_args(kind)
    return (kind,)


def _is_sequence(origin: Any) -> bool:
    return origin in (tuple, list, collections.abc.Sequence)


def _shown(value: Any) -> str:
    try:
        return json.dumps(value)
    except TypeError:
        return str(value)


def text(value: Any) -> str:
    """Format a value as a word of the command line that `parse` reads."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{','.join(text(each) for each in value)}]"
    return str(value)
