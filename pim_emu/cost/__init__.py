"""Modelled time on a DPU's pipeline, of launches, and of transfers between host and DPUs.

`docs/cost-model.md` states the equations and their sources. Nothing has been run on UPMEM hardware.
"""

from pim_emu.cost.pipeline import random_cycles, round_robin_cycles, share_cycles
from pim_emu.cost.transfers import (
    broadcast_seconds,
    launch_seconds,
    pull_seconds,
    push_seconds,
)

__all__ = [
    "broadcast_seconds",
    "launch_seconds",
    "pull_seconds",
    "push_seconds",
    "random_cycles",
    "round_robin_cycles",
    "share_cycles",
]
