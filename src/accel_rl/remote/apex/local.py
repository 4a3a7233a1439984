"""Actors as processes on this machine."""

import contextlib
import subprocess
import sys
import time

from accel_rl.remote.apex.launcher import PATIENCE, Actors


class LocalActors(Actors[subprocess.Popen[str]]):
    """Actors of a training, each in a child process that ends with this one."""

    @property
    def processes(self) -> list[subprocess.Popen[str]]:
        """Actor processes, indexed by actor number."""
        return self.running

    def _start(self, number: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "accel_rl.remote.apex.process"],
            stdin=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C reaches only this process, which ends them
        )
        assert process.stdin is not None
        # Not on the command line, which every user can read. The pipe stays open: its end tells the
        # actor that this process has ended, or that it is to stop.
        with contextlib.suppress(BrokenPipeError):  # it has ended already; `_how` reports it
            process.stdin.write(self._order(number) + "\n")
            process.stdin.flush()
        return process

    def _how(self, actor: subprocess.Popen[str]) -> str | None:
        return None if actor.poll() is None else f"exit code {actor.returncode}"

    def _stop(self) -> None:
        for process in self.running:
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
        until = time.monotonic() + PATIENCE
        for process in self.running:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
