"""The other interpreter that `training.py` asks to train: see `training_sb3.py`."""

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import training_settings
from common import warn
from training_settings import Setting

SCRIPT = Path(__file__).resolve().with_name("training_sb3.py")
HOW = f"for SB3 and SBX give --rivals PYTHON; {SCRIPT.name} says how to make that environment"


class Rivals:
    """A process that answers requests; systems are () where there is none. Use it in a `with`."""

    def __init__(self, python: str | None) -> None:
        """Starts the interpreter, and warns if it cannot."""
        self.systems: tuple[str, ...] = ()
        self.versions: dict[str, str | None] = {}
        self._process = None
        if python is None:
            warn(f"their claims are null: {HOW}")
            return
        environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "PYTHONPATH")}
        try:
            self._process = subprocess.Popen(
                [python, str(SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**environment, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""},
            )
            hello = self._answer()
        except (OSError, RuntimeError) as error:
            warn(f"rivals did not start: {error}; {HOW}")
            return
        self.systems, self.versions = tuple(hello["systems"]), hello["versions"]

    def train(
        self, system: str, setting: Setting, steps: int, seed: int = 0, evaluate: bool = False
    ) -> dict[str, Any]:
        """Train, in a kept model or, to evaluate, a new one: cpu and wall seconds, and returns.

        Raises:
          RuntimeError: if the process ended.
        """
        request = {
            "system": system,
            "setting": _described(setting),
            "steps": steps,
            "seed": seed,
            "evaluate": evaluate,
        }
        process = self._process
        if process is None or process.stdin is None:
            raise RuntimeError(f"there is no process to train {system}")
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        process = self._process
        line = process.stdout.readline() if process is not None and process.stdout else ""
        if not line:
            raise RuntimeError(f"{SCRIPT.name} ended without an answer")
        return dict(json.loads(line))

    def __enter__(self) -> "Rivals":
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the process."""
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()


def _described(setting: Setting) -> dict[str, Any]:
    """All that a system must know of the setting."""
    return {
        **dataclasses.asdict(setting),
        "environment": training_settings.ENVIRONMENT,
        "learning_rate": training_settings.LEARNING_RATE,
        "gamma": training_settings.GAMMA,
        "epsilon_start": training_settings.EPSILON_START,
        "epsilon_end": training_settings.EPSILON_END,
        "learning_starts": training_settings.LEARNING_STARTS,
        "target_steps": training_settings.TARGET_STEPS,
    }
