"""Files: written so that a reader never meets half of one."""

from accel_rl.io.atomic import atomic_write

__all__ = ["atomic_write"]
