"""The mathematics of one transition, without batches: `vmap` is the caller's."""

from accel_rl.agents.losses.q_learning import q_learning
from accel_rl.agents.losses.regression import LOSSES, huber, squared

__all__ = ["LOSSES", "huber", "q_learning", "squared"]
