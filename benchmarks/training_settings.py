"""The settings in which `training.py` compares systems: equal hyper-parameters for all of them."""

import dataclasses

ENVIRONMENT = "CartPole-v1"
MAX_STEPS = 500  # of an episode
LEARNING_RATE, GAMMA = 2.5e-4, 0.99
EPSILON_START, EPSILON_END = 1.0, 0.05  # the latter after half of a training's steps
LEARNING_STARTS = 1_000  # environment steps before the first update
TARGET_STEPS = 500  # environment steps between copies to the target network


@dataclasses.dataclass(frozen=True)
class Setting:
    """One update of Adam follows each step of all environments; the loss is the squared error."""

    name: str
    num_envs: int
    batch_size: int
    hidden: tuple[int, ...]
    capacity: int  # transitions

    @property
    def target_updates(self) -> int:
        """Updates between copies to the target network."""
        return max(1, TARGET_STEPS // self.num_envs)

    def title(self, seeds: int) -> str:
        """Return a case's name."""
        return f"setting {self.name}, {seeds} seed{'s' if seeds > 1 else ''}"


SETTINGS = {
    "A": Setting("A", num_envs=10, batch_size=128, hidden=(120, 84), capacity=10_000),
    "B": Setting("B", num_envs=1, batch_size=64, hidden=(120, 84), capacity=10_000),
    "S": Setting("S", num_envs=1, batch_size=32, hidden=(32, 32), capacity=10_000),
    "R": Setting("R", num_envs=10, batch_size=128, hidden=(120, 84), capacity=131_070),
}
