"""Another interpreter, with packages that ours lacks: a process that answers lines of JSON."""

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import Report, System, warn


class Interpreter:
    """Runs a script that greets and then answers each request, all of them a line."""

    def __init__(
        self, python: str, script: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start it.

        Args:
          python: the interpreter.
          script: what it runs.
          environment: its variables; None: ours, but on the CPU and without our settings of
            Python and XLA.

        Raises:
          OSError: if there is no such interpreter.
          RuntimeError: if it did not greet.
        """
        if environment is None:
            kept = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "PYTHONPATH")}
            environment = {**kept, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
        self._script = script
        self._process = subprocess.Popen(
            [python, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            self.greeting = self._answer()
        except RuntimeError:
            self.close()
            raise

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Its answer; raises RuntimeError if there is none."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise RuntimeError(f"{self._script.name} ended: {error}") from error
        return self._answer()

    def system(self, request: dict[str, Any], work: float) -> System:
        """Return a system each of whose runs is a request that is answered with its wall time."""

        def elsewhere(repeats: int) -> tuple[float, float]:
            wall = sum(self.ask(request)["wall"] for _ in range(repeats)) / repeats
            return wall, wall

        return System(lambda: elsewhere(1), work, elsewhere)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # of a request that it did not read
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._script.name} ended without an answer")
        try:
            return dict(json.loads(line))
        except (TypeError, ValueError) as error:
            raise RuntimeError(f"{self._script.name} answered {line!r}") from error


def rivals_of(report: Report, python: str | None, script: Path) -> Interpreter | None:
    """Start the rivals' interpreter, if there is one, and record their versions."""
    if python is None:
        warn(f"claims are null: give --rivals PYTHON; {script.name} says what it needs")
        return None
    rivals = Interpreter(python, script)
    report.versions.update(rivals.greeting["versions"])
    return rivals
