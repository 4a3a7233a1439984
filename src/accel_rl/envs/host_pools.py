"""Pools that run groups of host environments: in this thread, in threads or in processes."""

import contextlib
import functools
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from typing import Any

from accel_rl.envs import host_worker

PATIENCE = 5.0  # seconds for a process to close its environments before it is killed

Makes = Sequence[Callable[[], object]]
Bounds = Sequence[tuple[int, int]]
Call = Callable[..., Callable[[], object]]
"""call(method, *arguments) of a `host_worker.WorkerGroup`: a function that waits for the result."""


def here(name: str, makes: Makes, bounds: Bounds, stack: contextlib.ExitStack) -> list[Call]:
    """Make groups that run in the caller's thread.

    Args:
      name: of the environments, for messages.
      makes: one function for each environment.
      bounds: (first, last + 1) of each group's environments.
      stack: closes the groups.
    """

    def call(
        group: host_worker.WorkerGroup, method: str, *arguments: object
    ) -> Callable[[], object]:
        result = getattr(group, method)(*arguments)
        return lambda: result

    return [functools.partial(call, group) for group in _groups(makes, bounds, stack)]


def in_threads(name: str, makes: Makes, bounds: Bounds, stack: contextlib.ExitStack) -> list[Call]:
    """Make groups with one thread each; see `here`."""
    groups = _groups(makes, bounds, stack)
    pool = stack.enter_context(ThreadPoolExecutor(len(bounds), name))

    def call(
        group: host_worker.WorkerGroup, method: str, *arguments: object
    ) -> Callable[[], object]:
        return pool.submit(getattr(group, method), *arguments).result

    return [functools.partial(call, group) for group in groups]


def in_processes(
    name: str, makes: Makes, bounds: Bounds, stack: contextlib.ExitStack
) -> list[Call]:
    """Make groups with one process each; see `here`."""
    processes = []
    for first, last in bounds:
        processes.append(_Process(name, makes[first:last], first))
        stack.callback(processes[-1].close)
    return [process.call for process in processes]


def _groups(
    makes: Makes, bounds: Bounds, stack: contextlib.ExitStack
) -> list[host_worker.WorkerGroup]:
    groups = []
    for first, last in bounds:
        groups.append(host_worker.WorkerGroup(makes[first:last], first))
        stack.push(groups[-1].closing)  # unlike a callback, it gets the exception, to chain errors
    return groups


class _Process:
    """Group in a fresh process, since a fork of a program with threads may deadlock."""

    def __init__(self, name: str, makes: Makes, first: int) -> None:
        import cloudpickle

        self._what = f"the process of {name} {first} to {first + len(makes) - 1}"
        pickled = cloudpickle.dumps((list(makes), first))
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                # -P: keep the script's folder off sys.path.
                [sys.executable, "-P", host_worker.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._send((sys.path, pickled))

    def call(self, method: str, *arguments: object) -> Callable[[], object]:
        self._send((method, arguments))
        return self._receive

    def close(self) -> None:
        self._connection.close()  # the process gets EOF, and ends
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: object) -> None:
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
