"""Fresh virtual environments, and commands run in them as a user of the library would."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
_OURS = ("ACCEL_RL_", "JAX_", "MPL", "PYTHON", "XLA_")  # set for the tests, not by a user


def run(*words, cwd, expect=0, **variables):
    """What a command prints on stdout and stderr, outside the checkout and its settings."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=inherited | {name: str(value) for name, value in variables.items()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == expect, f"{words}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout, done.stderr


class Environment:
    """A virtual environment of this interpreter's version, empty but for pip."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        folder.mkdir(parents=True)
        run(sys.executable, "-m", "venv", folder, cwd=folder)

    def pip(self, *words, **variables):
        command = (self.bin / "python", "-m", "pip", "--disable-pip-version-check", *words)
        return run(*command, cwd=self.folder, **variables)

    @property
    def packages(self):
        """The folder that packages are installed to."""
        (found,) = (self.folder / "lib").glob("python*/site-packages")
        return found

    def install(self, what, **variables):
        """Installs the library, and what it declares as its dependencies, and theirs: no more.

        Dependencies are links to those that the tests run with, a gigabyte that is not copied.
        """
        self.pip("install", "--quiet", "--no-deps", "--no-compile", what, **variables)
        (library,) = importlib.metadata.distributions(name="accel-rl", path=[str(self.packages)])
        for each in _needed(library):
            tops = {file.parts[0] for file in each.files} - {"..", "__pycache__"}
            for name in tops:
                link = self.packages / name
                if not link.exists():
                    link.symlink_to(each.locate_file(name))

    def python(self, program, cwd):
        """Runs a program in Python; what it prints."""
        return run(self.bin / "python", "-c", program, cwd=cwd, XDG_CACHE_HOME=cwd)[0]

    def accel_rl(self, *words, cwd, expect=0):
        """Runs the installed command, with compiled programs kept in `cwd` alone."""
        return run(self.bin / "accel-rl", *words, cwd=cwd, expect=expect, XDG_CACHE_HOME=cwd)


def _needed(distribution):
    """The distributions that one needs without extras, by its metadata and by theirs."""
    found, open_ends = {}, [(distribution, ())]
    while open_ends:
        each, extras = open_ends.pop()
        for line in each.requires or ():
            requirement = Requirement(line)
            marker, wanted = requirement.marker, [{"extra": x} for x in ("", *extras)]
            key = requirement.name, frozenset(requirement.extras)
            if key not in found and (not marker or any(map(marker.evaluate, wanted))):
                found[key] = importlib.metadata.distribution(requirement.name)
                open_ends.append((found[key], requirement.extras))
    return found.values()
