"""Values of settings: parsed from words, validated, and formatted as words."""

import difflib
import itertools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accel_rl.io.values import Json

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
    """Split text at commas outside brackets and quotes: `[64,64],[32]` has two parts."""
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
        raise ValueError(f"values must be comma-separated, none of them empty, got {text!r}")
    return parts


def assignment(text: str) -> tuple[str, str]:
    """Split `a.b=c` into the dotted name and the value's text."""
    name, equals, value = text.partition("=")
    if not equals or not all(name.split(".")) or not value:
        raise ValueError(f"settings are written section.name=value, got {text!r}")
    return name.strip(), value.strip()


def check_known(name: str, known: Iterable[str], what: str = "setting") -> None:
    """Raise ValueError for an unknown name; suggest a similar name, or list all names."""
    names = list(known)
    if name in names:
        return
    section, _, last = name.rpartition(".")
    near = [each for each in names if section and each.startswith(f"{section}.")] or names
    hint = f"there are {', '.join(near)}"
    # An equal last part before a similar one; names of the same section before others.
    for least, some in itertools.product((1.0, 0.6), (near, names)):
        lasts = {each.rpartition(".")[2]: each for each in reversed(some)}
        if close := difflib.get_close_matches(last, lasts, n=1, cutoff=least):
            hint = f"did you mean {lasts[close[0]]}?"
            break
    raise ValueError(f"no {what} is named {name!r}; {hint}")


def text(value: object) -> str:
    """Format a value as a word of the command line that `parse` reads."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{','.join(text(each) for each in value)}]"
    return str(value)


def assignments(settings: Mapping[str, Json]) -> str:
    """Format settings as words of the command line."""
    return " ".join(f"{name}={text(value)}" for name, value in settings.items())
