"""Simulators of kernels/rtl, built once for the sources and parameters, and runs of them."""

import fcntl
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import NamedTuple

import numpy as np
from optional import needs

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "kernels" / "rtl"
BUILDS = ROOT / "build" / "rtl" / "tests"
FIELDS = 6  # 64-bit words of a request, and of a response before its match lines
RESET = 255

needs_verilator = needs("RTL simulation")


class Responses(NamedTuple):
    """What the simulator wrote; one entry for each request."""

    taken: np.ndarray  # [n] uint64, the clock in which the request was taken, from 1
    given: np.ndarray  # [n] uint64, the clock in which the response was taken
    x: np.ndarray  # [n] uint64
    y: np.ndarray
    z: np.ndarray
    lines: np.ndarray  # [n, words] uint32

    @property
    def cycles(self):
        """Clocks from the first request to the last response, both counted."""
        return int(self.given.max() - self.taken[0] + 1)


@functools.cache
def _sources_digest():
    digest = hashlib.sha256(_said(["verilator", "--version"]).encode())
    for path in sorted(path for path in SOURCES.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _said(words):
    done = subprocess.run(words, cwd=SOURCES, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}:\n{done.stdout}{done.stderr}"
    return done.stdout


def _given(parameters):
    return " ".join(f"{name}={value}" for name, value in sorted(parameters.items()))


def simulator(top, **parameters):
    """The program that simulates a design with these parameters."""
    given = _given(parameters)
    folder = BUILDS / _sources_digest() / f"{top}-{given.replace(' ', '-')}"
    program = folder / "simulate"
    if program.exists():
        return program
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(BUILDS / ".lock"):
        for old in BUILDS.iterdir():  # of sources that have changed since
            if old.is_dir() and old.name != folder.parent.name:
                shutil.rmtree(old)
    runtime = folder.parent / "runtime"
    with _locked(folder.parent / ".lock"):
        _said(["make", f"OUT={folder}", f"RUNTIME={runtime}", str(runtime / "verilated.o")])
    with _locked(folder.parent / f".lock-{folder.name}"):
        make = ["make", "simulate", f"TOP={top}", f"PARAMETERS={given}"]
        _said([*make, f"OUT={folder}", f"RUNTIME={runtime}"])
    return program


class _locked:
    def __init__(self, path):
        self._file = path.open("w")

    def __enter__(self):
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self._file.close()


def requests(operation, a=0, b=0, c=0, wait=0, hold=0):
    """Requests of the driver, [n, 6] uint64; numbers are repeated."""
    columns = np.broadcast_arrays(*(np.asarray(v, np.uint64) for v in (operation, a, b, c)))
    wait, hold = (np.broadcast_to(np.asarray(v, np.uint64), columns[0].shape) for v in (wait, hold))
    return np.stack([*columns, wait, hold], axis=-1).reshape(-1, FIELDS)


def simulate(program, stream, words=0):
    """Run requests, [n, 6] uint64, through a simulator; `words` of 32 match lines are kept."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = (os.path.join(folder, name) for name in ("requests", "responses"))
        np.ascontiguousarray(stream, np.uint64).tofile(source)
        done = subprocess.run(
            [str(program), source, target, str(words)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        table = np.fromfile(target, np.uint64).reshape(len(stream), FIELDS + words)
    return Responses(*table[:, :5].T, table[:, FIELDS:].astype(np.uint32))


def lint(top, **parameters):
    """What a strict lint says of a design; empty if nothing."""
    words = ["make", "lint", f"TOP={top}", f"PARAMETERS={_given(parameters)}"]
    done = subprocess.run(words, cwd=SOURCES, capture_output=True, text=True)
    return done.stderr if done.returncode else ""
