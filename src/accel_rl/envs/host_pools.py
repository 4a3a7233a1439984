"""Where groups of host environments run: in this thread, in a pool of threads, in processes."""

import contextlib
import functools
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from typing import Any

from accel_rl.envs import host_worker

PATIENCE = 5.0  # seconds that a process is given to close its environments

Makes = Sequence[Callable[[], Any]]
Bounds = Sequence[tuple[int, int]]
Call = Callable[..., Callable[[], Any]]
"""call(method, *arguments) of a `host_worker.Group`; the result is a function that waits for it."""


def here(name: str, makes: Makes, bounds: Bounds, stack: contextlib.ExitStack) -> list[Call]:
    """Groups that run in the caller's thread.

    Args:
      name: of the environments, for messages.
      makes: one function for each environment.
      bounds: (first, last + 1) of each group's environments.
      stack: is given what closes the groups.
    """

    def call(group: host_worker.Group, method: str, *arguments: Any) -> Callable[[], Any]:
        result = getattr(group, method)(*arguments)
        return lambda: result

    return [functools.partial(call, group) for group in _groups(makes, bounds, stack)]


def in_threads(name: str, makes: Makes, bounds: Bounds, stack: contextlib.ExitStack) -> list[Call]:
    """Groups with a thread each; see `here`."""
    groups = _groups(makes, bounds, stack)
    pool = stack.enter_context(ThreadPoolExecutor(len(bounds), name))

    def call(group: host_worker.Group, method: str, *arguments: Any) -> Callable[[], Any]:
        return pool.submit(getattr(group, method), *arguments).result

    return [functools.partial(call, group) for group in groups]


def in_processes(
    name: str, makes: Makes, bounds: Bounds, stack: contextlib.ExitStack
) -> list[Call]:
    """Groups with a process each; see `here`."""
    processes = []
    for first, last in bounds:
        processes.append(_Process(name, makes[first:last], first))
        stack.callback(processes[-1].close)
    return [process.call for process in processes]


def _groups(makes: Makes, bounds: Bounds, stack: contextlib.ExitStack) -> list[host_worker.Group]:
    groups = []
    for first, last in bounds:
        groups.append(host_worker.Group(makes[first:last], first))
        stack.push(groups[-1].closing)  # told what failed, unlike close: both errors are shown
    return groups


class _Process:
    """A `Group` in another process: a fresh one, for a fork of a program with threads may hang."""

    def __init__(self, name: str, makes: Makes, first: int) -> None:
        import cloudpickle

        self._what = f"the process of {name} {first} to {first + len(makes) - 1}"
        pickled = cloudpickle.dumps((list(makes), first))
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                # -P: the script's folder is no place to import from.
                [sys.executable, "-P", host_worker.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._send((sys.path, pickled))

    def call(self, method: str, *arguments: Any) -> Callable[[], Any]:
        self._send((method, arguments))
        return self._receive

    def close(self) -> None:
        self._connection.close()  # which the process reads as the end
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: Any) -> None:
        try:
            self._connection.send(message)
        except OSError as error:
            raise self._ended() from error

    def _receive(self) -> Any:
        try:
            good, result = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if not good:
            raise RuntimeError(f"{self._what} failed:\n{result}")
        return result

    def _ended(self) -> RuntimeError:
        self.close()
        return RuntimeError(f"{self._what} ended, with exit code {self._process.returncode}")
