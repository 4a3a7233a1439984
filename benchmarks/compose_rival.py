"""Stable-Baselines3 in the other interpreter, as `compose.py` asks it: see `compose_sb3.py`."""

from pathlib import Path

from common import warn
from interpreter import Interpreter

from accel_rl.compose import Spec
from accel_rl.compose import spec as specs

RIVAL = "SB3"
SCRIPT = Path(__file__).resolve().with_name("compose_sb3.py")


class Rival:
    """The other interpreter; `train` gives None where there is none."""

    def __init__(self, python: str | None) -> None:
        """Start it, and warns if it cannot."""
        self._interpreter = None
        if python is None:
            warn("SB3's claims are null: give --rivals PYTHON; training_sb3.py says how to make it")
            return
        try:
            self._interpreter = Interpreter(python, SCRIPT)
            self.version = self._interpreter.greeting["version"]
        except (OSError, RuntimeError) as error:
            warn(f"SB3 did not start: {error}")

    def train(self, spec: Spec, iterations: int, threads: int) -> float | None:
        """Wall seconds of an iteration, with so many threads of torch."""
        if self._interpreter is None or spec.replay != "uniform":
            return None
        settings = {
            "batch_size": spec.batch_size,
            "buffer_size": spec.capacity,
            "hidden": list(specs.workload(spec).hidden),
            "learning_rate": spec.agent.get("learning_rate", 1e-3),
        }
        request = {
            "algorithm": spec.algorithm,
            "environment": spec.environment,
            "num_envs": spec.num_envs,
            "rollout": spec.rollout,
            "updates": spec.updates,
            "iterations": iterations,
            "threads": threads,
            "settings": settings,
        }
        try:
            return float(self._interpreter.ask(request)["wall"]) / iterations
        except RuntimeError as error:
            warn(f"SB3 ended without an answer: {error}")
            self._interpreter.close()
            self._interpreter = None
            return None
