"""UPMEM DPUs: toolkits, control of the DPUs held, recordings of their work, exceptions."""

from accel_rl.pim.upmem.control import Recording, held, recording, release, typed_errors, why_absent
from accel_rl.pim.upmem.errors import (
    BuildFailed,
    DpuFault,
    InvalidRows,
    RankLost,
    SdkMissing,
    TooFewDpus,
    TooLarge,
    UpmemError,
)
from accel_rl.pim.upmem.host import LaunchReport
from accel_rl.pim.upmem.toolkit import Toolkit, find_toolkit, which_toolkit

__all__ = [
    "BuildFailed",
    "DpuFault",
    "InvalidRows",
    "LaunchReport",
    "RankLost",
    "Recording",
    "SdkMissing",
    "TooFewDpus",
    "TooLarge",
    "Toolkit",
    "UpmemError",
    "find_toolkit",
    "held",
    "recording",
    "release",
    "typed_errors",
    "which_toolkit",
    "why_absent",
]
