"""What the packages export, and references to it by whatever name a docstring or type gives."""

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

ROOTS = ("accel_rl", "pim_emu")
FOLDERS_ONLY = "accel_rl"  # exports its packages, and its version
WITHOUT_LIST = ("accel_rl.types", "accel_rl.native")  # public, without __all__

_logger = logging.getLogger(__name__)


def packages() -> list[ModuleType]:
    """Return packages that export names, and the public modules beside them."""
    found = [importlib.import_module(name) for name in WITHOUT_LIST]
    for root in map(importlib.import_module, ROOTS):
        found += [root] if hasattr(root, "__all__") and root.__name__ != FOLDERS_ONLY else []
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if module.ispkg and not module.name.startswith("accel_rl.cli"):
                imported = importlib.import_module(module.name)
                found += [imported] if hasattr(imported, "__all__") else []
    exported = [getattr(each, name) for each in found for name in getattr(each, "__all__", ())]
    modules = [each for each in exported if inspect.ismodule(each)]
    return sorted({each.__name__: each for each in found + modules}.values(), key=str)


def names(package: ModuleType) -> list[str]:
    """Public names of a package or module, modules among them left out.

    Args:
      package: what is imported.
    """
    listed = getattr(package, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(package).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == package.__name__
        ]
    return [name for name in listed if not inspect.ismodule(getattr(package, name))]


def is_constant(value: Any) -> bool:
    """Whether it is a value or the name of a type, rather than a function or class.

    Args:
      value: what a package exports.
    """
    return not (
        inspect.isroutine(value) or isinstance(value, type) or hasattr(value, "__wrapped__")
    )


def homes() -> dict[str, str]:
    """Where the reference documents a full name: under the shortest that exports the same.

    Keys are public names, and the names of functions and classes where they are defined.
    """
    exports: dict[Any, list[str]] = {}
    for package in packages():
        for name in names(package):
            value = getattr(package, name)
            public = f"{package.__name__}.{name}"
            defined = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', name)}"
            exports.setdefault(public if is_constant(value) else defined, []).append(public)
    shortest = {defined: min(public, key=len) for defined, public in exports.items()}
    found = {
        name: shortest[defined] for defined in exports for name in (defined, *exports[defined])
    }
    return found | {package.__name__: package.__name__ for package in packages()}


def _resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Element | None:
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    public = app.config.public_homes.get(target)
    if public is not None:
        return env.domains.python_domain.resolve_xref(
            env, node["refdoc"], app.builder, "obj", public, node, content
        )
    return content if _exists(target) else None


def _exists(target: str) -> bool:
    """Whether a name means something, of another library or not public."""
    try:
        pkgutil.resolve_name(target.partition("[")[0])
    except (ImportError, AttributeError, ValueError):
        return False
    return True


def _all_documented(app: Sphinx, env: BuildEnvironment) -> None:
    documented = env.domains.python_domain.objects
    for full in sorted(set(app.config.public_homes.values())):
        if full not in documented:
            _logger.warning("%s is public and in no page of the reference", full)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the resolution of names, and the check that the reference leaves none out.

    Args:
      app: Sphinx.
    """
    app.add_config_value("public_homes", homes(), "", dict)
    app.connect("missing-reference", _resolve)
    app.connect("env-check-consistency", _all_documented)
    return {"parallel_read_safe": True}
