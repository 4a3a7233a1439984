"""The other interpreter that `training.py` asks to train: see `training_sb3.py`."""

import dataclasses
from pathlib import Path
from types import TracebackType
from typing import Any

import training_settings
from common import warn
from interpreter import Interpreter
from training_settings import Setting

SCRIPT = Path(__file__).resolve().with_name("training_sb3.py")
HOW = f"for SB3 and SBX give --rivals PYTHON; {SCRIPT.name} says how to make that environment"


class Rivals:
    """A process that answers requests; systems are () where there is none. Use it in a `with`."""

    def __init__(self, python: str | None) -> None:
        """Start the interpreter, and warns if it cannot."""
        self.systems: tuple[str, ...] = ()
        self.versions: dict[str, str | None] = {}
        self._interpreter = None
        if python is None:
            warn(f"their claims are null: {HOW}")
            return
        try:
            self._interpreter = Interpreter(python, SCRIPT)
        except (OSError, RuntimeError) as error:
            warn(f"rivals did not start: {error}; {HOW}")
            return
        hello = self._interpreter.greeting
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
        if self._interpreter is None:
            raise RuntimeError(f"there is no process to train {system}")
        return self._interpreter.ask(request)

    def __enter__(self) -> "Rivals":
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        if self._interpreter is not None:
            self._interpreter.close()


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
