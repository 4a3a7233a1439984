"""Programs of `programs/`, built in folders of their own by the Makefile that comes with each."""

import dataclasses
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@dataclasses.dataclass(frozen=True)
class Edit:
    """A change to one source of a program: `old` occurs there once."""

    file: str
    old: str
    new: str


@dataclasses.dataclass(frozen=True)
class Done:
    """How a host program ended."""

    status: int
    output: str
    complaints: str


class Workshop:
    """Builds programs, each variant once for all processes that share `root`."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = environment
        root.mkdir(exist_ok=True)

    def build(
        self,
        program: str,
        tasklets: int,
        traced: bool = False,
        variant: str = "",
        edits: tuple[Edit, ...] = (),
    ) -> Path:
        """The folder of a program that has been made there; `variant` names its edits."""
        name = f"{program}{variant}-{tasklets}{'-traced' if traced else ''}"
        with self._locked(name):
            folder = self._root / name
            if not folder.exists():
                part = self._root / f"{name}.part"
                shutil.rmtree(part, ignore_errors=True)
                shutil.copytree(PROGRAMS / program, part)
                for edit in edits:
                    _apply(edit, part)
                part.rename(folder)
                self._make(folder, tasklets, traced)
        return folder

    def _make(self, folder: Path, tasklets: int, traced: bool) -> None:
        done = subprocess.run(
            ["make", f"NR_TASKLETS={tasklets}"],
            cwd=folder, capture_output=True, text=True, check=False, timeout=300,
            env={**self._environment, **({"PIM_EMU_TRACE": "1"} if traced else {})},
        )  # fmt: skip
        if done.returncode != 0:
            shutil.rmtree(folder)
            raise AssertionError(f"make in {folder.name} failed:\n{done.stdout}{done.stderr}")

    def run(self, folder: Path, *arguments: str, **settings: str) -> Done:
        """Run the host program of a built folder, with settings of the emulator."""
        (host,) = [path for path in folder.glob("b*/*host*") if path.is_file()]
        done = subprocess.run(
            [f"./{host.relative_to(folder)}", *arguments],
            cwd=folder, capture_output=True, text=True, check=False, timeout=120,
            env={**self._environment, **settings},
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with (self._root / f".{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def shared_root(own: Path) -> Path:
    """The session's temporary folder, which under pytest-xdist is above each worker's `own`."""
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "programs"


def _apply(edit: Edit, folder: Path) -> None:
    path = folder / edit.file
    text = path.read_text()
    if text.count(edit.old) != 1:
        raise ValueError(f"{edit.old!r} is {text.count(edit.old)} times in {edit.file}, not once")
    path.write_text(text.replace(edit.old, edit.new))
