"""Every public name says what it is, and each package that has some has a place in the reference.

That the pages hold each name is checked where they are made: `make site` warns of one left out.
"""

import dataclasses
import importlib
import inspect
import pathlib
import pkgutil
import re

import pytest

import accel_rl
import pim_emu

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
OF_THE_COMMAND = "accel_rl.cli"


def packages():
    """Names of the packages that list what they export, but for the command's."""
    yield "pim_emu"
    for root in (accel_rl, pim_emu):
        for found in pkgutil.walk_packages(root.__path__, root.__name__ + "."):
            exports = found.ispkg and not found.name.startswith(OF_THE_COMMAND)
            if exports and hasattr(importlib.import_module(found.name), "__all__"):
                yield found.name


PACKAGES = sorted(packages())


def mentions(text, name):
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def lacks(name, value):
    """What the documentation of an exported function or class leaves out."""
    text = inspect.getdoc(value) or ""
    if isinstance(value, type):
        made_up = dataclasses.is_dataclass(value) and text.startswith(f"{value.__name__}(")
        if not vars(value).get("__doc__") or made_up:
            yield f"{name} has no docstring"
        for member, called in vars(value).items():
            told = member.startswith("_") or inspect.getdoc(getattr(value, member))
            if not told and (inspect.isfunction(called) or isinstance(called, property)):
                yield f"{name}.{member} has no docstring"
    elif callable(value):
        if not value.__doc__:
            yield f"{name} has no docstring"
        for argument in inspect.signature(value).parameters:
            if not mentions(text, argument):
                yield f"{name} does not mention {argument}"


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_exported_is_documented(package):
    module = importlib.import_module(package)
    assert module.__doc__
    assert f"automodule:: {package}\n" in PAGES
    found = []
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            assert f"automodule:: {value.__name__}\n" in PAGES
        elif getattr(value, "__module__", "").partition(".")[0] in ("accel_rl", "pim_emu"):
            found += lacks(name, value)
    assert found == []


def test_packages_are_found():
    assert {"accel_rl.replay", "accel_rl.compose.devices", "pim_emu", "pim_emu.cost"} <= {*PACKAGES}


def test_what_is_lacking_is_found():
    def summed(first, second):
        """The sum of `first` and another."""

    @dataclasses.dataclass
    class Pair:
        first: int

        def total(self):
            return self.first

    assert list(lacks("summed", summed)) == ["summed does not mention second"]
    assert list(lacks("Pair", Pair)) == ["Pair has no docstring", "Pair.total has no docstring"]
