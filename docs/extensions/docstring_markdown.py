"""Docstrings are written as in Markdown: code spans in single backticks, examples by indenting.

They become what Napoleon and then Sphinx read; a code span that names something public becomes a
reference to it.
"""

import inspect
import re
import textwrap
from collections.abc import Collection
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon import GoogleDocstring

_SPAN = re.compile(r"(?<![`:\w])`([^`\n]+)`(?!`)")
_NAMED = re.compile(r"\w+(?:, \w+)*: ")  # in a list of what is returned
_SPECIAL = re.compile(r"(?<!\\)([*|]|(?<=\w)_(?!\w))")


def _public(span: str, place: str, homes: dict[str, str]) -> str | None:
    """Return the full name of what a span means, read at a place: near names come first."""
    called = span.removesuffix("()")
    while place:
        if f"{place}.{called}" in homes:
            return homes[f"{place}.{called}"]
        place = place.rpartition(".")[0]
    return homes.get(called) or homes.get(f"accel_rl.{called}")


def _arguments(value: Any) -> set[str]:
    try:
        return set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return set()


def restructured(
    line: str, place: str, homes: dict[str, str], arguments: Collection[str] = ()
) -> str:
    """Return a line of a docstring as reStructuredText.

    Args:
      line: in Markdown.
      place: full name of what the docstring belongs to.
      homes: what can be referred to, and where it is documented.
      arguments: spans that are never references.
    """
    pieces = []
    end = 0
    for match in _SPAN.finditer(line):
        span = match[1]
        full = None if span in arguments else _public(span, place, homes)
        code = f":py:obj:`{span} <{full}>`" if full else f"``{span}``"
        before = _SPECIAL.sub(r"\\\1", line[end : match.start()])
        glued_before = before[-1:].isalnum()
        glued_after = line[match.end() : match.end() + 1].isalnum()
        pieces += [before, "\\ " * glued_before, code, "\\ " * glued_after]
        end = match.end()
    return "".join([*pieces, _SPECIAL.sub(r"\\\1", line[end:])])


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _returns(lines: list[str]) -> list[str]:
    """Return the section on what is returned as a field: a text, or a list of what has names.

    Napoleon would take what stands before a colon for a type.
    """
    if "Returns:" not in lines:
        return lines
    start = lines.index("Returns:")
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _depth(lines[end])):
        end += 1
    block = textwrap.dedent("\n".join(lines[start + 1 : end])).splitlines()
    if all(_NAMED.match(line) for line in block if line and not _depth(line)):
        block = [line if not line or _depth(line) else f"* {line}" for line in block]
        block = [line if line[:1] == "*" else f"  {line.strip()}" for line in block]
    return [*lines[:start], ":returns:", *(f"  {line}" for line in block), "", *lines[end:]]


def _convert(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    homes = app.config.public_homes
    arguments = _arguments(value)
    result: list[str] = []
    literal: int | None = None  # depth of the text that an example belongs to
    for number, line in enumerate(lines):
        if literal is not None and line.strip() and _depth(line) <= literal:
            literal = None
        if literal is not None:
            result.append(line)
            continue
        following = lines[number + 1 : number + 3]
        introduces = (
            line.rstrip().endswith(":")
            and len(following) == 2
            and not following[0].strip()
            and _depth(following[1]) >= _depth(line) + 4
        )
        if introduces:
            literal = _depth(line)
        text = restructured(line, name, homes, arguments)
        text = text + ":" if introduces else text
        result.append(text)
    # Napoleon takes what stands before a colon in an attribute's docstring for a type.
    if what not in ("attribute", "property", "data"):
        result = _returns(result)
        result = GoogleDocstring(result, app.config, app, what, name, value, options).lines()
    lines[:] = result


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the conversion.

    Args:
      app: Sphinx.
    """
    app.connect("autodoc-process-docstring", _convert)
    return {"parallel_read_safe": True}
