"""Fresh virtual environments, and commands run in them as a user of the library would."""

import os
import subprocess
import sys
from pathlib import Path

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

    def install(self, *requirements, **variables):
        """Installs with all dependencies, in the versions that the tests run with."""
        # Without --no-compile, compiling all of jax takes longer than everything else.
        words = ("--quiet", "--no-compile", "--constraint", ROOT / "constraints.txt")
        self.pip("install", *words, *requirements, **variables)

    def accel_rl(self, *words, cwd, expect=0):
        """Runs the installed command, with compiled programs kept in `cwd` alone."""
        return run(self.bin / "accel-rl", *words, cwd=cwd, expect=expect, XDG_CACHE_HOME=cwd)
