"""Stable-Baselines3 in the other interpreter, as `compose.py` asks it: see `compose_sb3.py`."""

from pathlib import Path

from common import warn
from interpreter import Interpreter

from accel_rl.experiment import Experiment

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

    def train(self, wanted: Experiment, iterations: int, threads: int) -> float | None:
        """Wall seconds of an iteration, with so many threads of torch."""
        config = wanted.configuration
        if self._interpreter is None or config.replay.sampler != "uniform":
            return None
        settings = {
            "batch_size": config.replay.batch_size,
            "buffer_size": config.replay.capacity,
            "hidden": list(config.agent.options["hidden"]),
            "learning_rate": wanted.hyper["agent"].get("learning_rate", 1e-3),
        }
        request = {
            "algorithm": config.agent.name,
            "environment": config.environment.name,
            "num_envs": config.schedule.num_envs,
            "rollout": config.schedule.rollout,
            "updates": config.schedule.updates,
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
