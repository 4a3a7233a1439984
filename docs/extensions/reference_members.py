"""What autodoc does not see: fields told in comments, constants, and a summary of each package."""

import ast
import importlib
import inspect
import itertools
import re
import sys
import textwrap
from types import ModuleType
from typing import Any

import public_names
from docstring_markdown import restructured
from sphinx.application import Sphinx

_AFTER_CONVERSION = 900
_LONGEST_VALUE = 200
_TUPLE_FIELD = "Alias for field number"


def fields(cls: type) -> dict[str, str]:
    """Fields of a class, and what the comment or string that stands with each says; "" without.

    Args:
      cls: a class written in a file. Strings are left to autodoc, but for those of a named tuple.
    """
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return {}
    body = ast.parse(source).body[0].body
    lines = source.splitlines()
    found = {}
    for node, after in itertools.zip_longest(body, body[1:]):
        if not isinstance(node, ast.AnnAssign) or node.target.id.startswith("_"):
            continue
        string = isinstance(after, ast.Expr) and ast.literal_eval(after.value)
        if not string:
            found[node.target.id] = _comment(lines, node)
        elif issubclass(cls, tuple):
            found[node.target.id] = " ".join(string.split())
    return found


def _comment(lines: list[str], node: ast.stmt) -> str:
    """Return the comment beside or above an assignment, with its continuation lines."""
    line = lines[node.end_lineno - 1].encode()
    beside = line[node.end_col_offset :].decode().strip()
    parts = []
    if beside.startswith("#"):
        column = lines[node.end_lineno - 1].rindex(beside)
        for each in lines[node.end_lineno :]:
            if each.rfind("#") != column or each[:column].strip():
                break
            parts.append(each)
        parts.insert(0, beside)
    else:
        above = reversed(lines[: node.lineno - 1])
        parts = [*itertools.takewhile(lambda each: each.strip().startswith("#"), above)][::-1]
    return " ".join(part.strip().lstrip("# ") for part in parts)


def _assignment(package: ModuleType, name: str) -> tuple[str, str]:
    """Return the expression of a constant and its comment, from the module that sets it."""
    value = getattr(package, name)
    below = [each for each in sys.modules if each.startswith(package.__name__.partition(".")[0])]
    below.sort(key=lambda each: not each.startswith(package.__name__))
    for module in (sys.modules[each] for each in below):
        if vars(module).get(name) is not value or not getattr(module, "__file__", None):
            continue
        lines = inspect.getsource(module).splitlines()
        for node in ast.parse("\n".join(lines)).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", 0)]
            if any(isinstance(each, ast.Name) and each.id == name for each in targets):
                return ast.unparse(node.value), _comment(lines, node)
    raise LookupError(f"{package.__name__}.{name} is set nowhere")


def _constant(package: ModuleType, name: str, homes: dict[str, str]) -> list[str]:
    expression, comment = _assignment(package, name)
    comment = restructured(comment, package.__name__, homes)
    if len(expression) > _LONGEST_VALUE:
        expression = repr(getattr(package, name))
    shown = [f"   :value: {expression}"] if len(expression) <= _LONGEST_VALUE else []
    return [f".. py:data:: {name}", *shown, "", f"   {comment}", ""]


def _summary(package: ModuleType, listed: list[str], homes: dict[str, str]) -> list[str]:
    if not listed:  # a package of modules: an empty table would be an error
        return []
    rows = [".. list-table::", "   :widths: 30 70", ""]
    for name in listed:
        value = getattr(package, name)
        if public_names.is_constant(value):
            text = _assignment(package, name)[1]
        else:
            text = re.split(r"(?<=\.)\s|\n\n", inspect.getdoc(value) or "", maxsplit=1)[0]
        text = restructured(" ".join(text.split()), package.__name__, homes)
        rows += [
            f"   * - :py:obj:`{name} <{homes[f'{package.__name__}.{name}']}>`",
            f"     - {text}",
        ]
    return [*rows, ""]


def _members(package: ModuleType, listed: list[str], homes: dict[str, str]) -> list[str]:
    """List constants, lazy exports and function objects, which autodoc omits."""
    lines = []
    for name in listed:
        value = getattr(package, name)
        full = f"{package.__name__}.{name}"
        if homes[full] != full:
            continue
        if public_names.is_constant(value):
            lines += _constant(package, name, homes)
        elif isinstance(value, type) and name not in dir(package):
            lines += [f".. autoclass:: {full}", ""]
        elif name not in dir(package) or not (inspect.isroutine(value) or isinstance(value, type)):
            lines += [f".. autofunction:: {full}", ""]
    return lines


def _describe(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    homes = app.config.public_homes
    if what == "module":
        package = importlib.import_module(name)
        listed = public_names.names(package)
        lines += ["", *_summary(package, listed, homes), *_members(package, listed, homes)]
    if what in ("class", "exception") and not any(line.startswith(":ivar") for line in lines):
        told = {field: comment for field, comment in fields(value).items() if comment}
        if told:
            told = {each: restructured(comment, name, homes) for each, comment in told.items()}
            lines += ["", *(f":ivar {each}: {comment}" for each, comment in told.items()), ""]


def _skip(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    if str(inspect.getdoc(value)).startswith(_TUPLE_FIELD):
        return True
    full = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', name)}"
    home = app.config.public_homes.get(full)
    documented = app.env.current_document.autodoc_module
    elsewhere = what == "module" and home and home.rpartition(".")[0] != documented
    return True if elsewhere else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the documenters.

    Args:
      app: Sphinx.
    """
    app.connect("autodoc-process-docstring", _describe, priority=_AFTER_CONVERSION)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}
