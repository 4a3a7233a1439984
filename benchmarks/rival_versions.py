"""Versions of packages, for the scripts that interpreters of rivals run: they lack the library."""

import importlib.metadata


def versions_of(packages):
    """Return the packages' versions, None for an absent one."""
    found = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found
