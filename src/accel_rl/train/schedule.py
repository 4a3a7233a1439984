"""Static schedule of a training program's steps, and its division into segments."""

import dataclasses
import math

from accel_rl.arguments import whole

MOST_STEPS = 2**31 - 1
MOST_AHEAD, MOST_KEYS = 512, 2**13  # iterations whose keys are generated at once, and these keys


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Steps of one iteration, and the staleness allowed between acting and learning.

    Every executor honours it, so that all compute the same.
    """

    num_envs: int = 1  # environments that step together, E
    rollout: int = 1  # steps of each environment in an iteration
    updates: int = 1  # agent updates in an iteration
    learning_starts: int = 1_000  # steps of all environments before the first update
    policy_lag: int = 0  # iterations by which the policy that acts is older than the newest
    priority_lag: int = 0  # priority updates that a sample need not have seen

    def __post_init__(self) -> None:
        """Raise ValueError if a number is out of range, TypeError if it is not an int."""
        for field in dataclasses.fields(self):
            least = 1 if field.name in ("num_envs", "rollout", "updates") else 0
            whole(field.name, getattr(self, field.name), least)

    @property
    def steps(self) -> int:
        """Environment steps in an iteration, over all environments."""
        return self.num_envs * self.rollout

    @property
    def warmup(self) -> int:
        """Iterations before the first update."""
        return math.ceil(self.learning_starts / self.steps)

    @property
    def keys(self) -> int:
        """PRNG keys of an iteration."""
        return self.rollout * (1 + self.num_envs) + 2 * self.updates

    @property
    def ahead(self) -> int:
        """Iterations of a segment whose keys are generated in one call; some may go unused."""
        return max(1, min(MOST_AHEAD, MOST_KEYS // self.keys))


def default_period(steps: int) -> int:
    """Return a hundredth of the environment steps, at least 1."""
    return max(1, steps // 100)


def segments(
    schedule: Schedule, steps: int, period: int | None = None, *, part: bool = False
) -> list[tuple[int, bool]]:
    """Divide a training of `steps` environment steps into segments of about `period` steps.

    The iterations before learning are segments of their own, so that a segment either learns in
    each of its iterations or in none. Boundaries depend on `period`, never on where a training was
    stopped.

    Args:
      schedule: of the program.
      steps: environment steps in all, rounded up to whole iterations.
      period: environment steps in a segment, rounded up to whole iterations; `steps` / 100 if None.
      part: of a training that goes on: it need not reach the first update.

    Returns:
      (iterations, learning) of each segment; `learning` is a bool.
    """
    whole("steps", steps, 1)
    period = default_period(steps) if period is None else whole("period", period, 1)
    total = math.ceil(steps / schedule.steps)
    if total * schedule.steps > MOST_STEPS:
        raise ValueError(f"steps must be at most {MOST_STEPS:,}, counted in int32, got {steps:,}")
    if total <= schedule.warmup and not part:
        raise ValueError(
            f"steps must be more than learning_starts ({schedule.learning_starts}), got {steps}"
        )
    length, warmup = math.ceil(period / schedule.steps), min(schedule.warmup, total)
    return [
        (min(length, last - first), learning)
        for start, last, learning in ((0, warmup, False), (warmup, total, True))
        for first in range(start, last, length)
    ]
