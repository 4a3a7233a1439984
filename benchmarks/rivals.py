"""Environments of rivals that do not go with ours: where `make rivals` puts them, and making them.

    python benchmarks/rivals.py [NAME]...

Makes `build/rivals-NAME` from `requirements/NAME.txt` for each name that is given, or for all. What
is there with the same requirements is left as it is. An environment takes up to 5 GB.
"""

import argparse
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
REQUIREMENTS = HERE / "requirements"
# What pins the environment of each, under the option by which benchmarks take its interpreter.
OPTIONS = {"--rivals": "torch", "--ray": "ray", "--reverb": "reverb"}


def environment(name: str) -> Path:
    """Return the folder of an environment."""
    return BUILD / f"rivals-{name}"


def made(name: str) -> bool:
    """Whether the environment is there, whole, and of the present requirements."""
    done = environment(name) / "requirements.txt"
    return done.is_file() and done.read_bytes() == (REQUIREMENTS / f"{name}.txt").read_bytes()


def interpreter(option: str) -> str | None:
    """Return the interpreter for an option of `OPTIONS`; None if its environment is absent."""
    name = OPTIONS[option]
    return str(environment(name) / "bin" / "python") if made(name) else None


def make(name: str) -> None:
    """Make an environment anew.

    Raises:
      subprocess.CalledProcessError: if pip fails; what it said is on standard error.
    """
    folder = environment(name)
    venv.create(folder, clear=True, with_pip=True)
    requirements = REQUIREMENTS / f"{name}.txt"
    install = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps"]
    command = [str(folder / "bin" / "python"), *install, "--requirement", str(requirements)]
    subprocess.run(command, check=True)
    # Written last, so that what was stopped halfway is made again.
    (folder / "requirements.txt").write_bytes(requirements.read_bytes())


def main() -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(OPTIONS.values()))
    names = parser.parse_args().names or list(OPTIONS.values())
    if unknown := sorted(set(names) - set(OPTIONS.values())):
        parser.error(f"no rivals called {', '.join(unknown)}: {', '.join(OPTIONS.values())} are")
    failed = []
    for name in names:
        if made(name):
            print(f"{environment(name)} is there")
            continue
        print(f"making {environment(name)}", flush=True)
        try:
            make(name)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"WARNING: {name} was not made, its claims will be null: {error}", flush=True)
            failed.append(name)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
