"""Checks that users make of their own parts: of compiled programs, and of what keeps a contract.

Each `check_` function plays an implementation through its contract and raises AssertionError that
says what is broken; `docs/extending/` shows one at the end of each page.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accel_rl.testing.agent import check_agent
    from accel_rl.testing.device import check_device
    from accel_rl.testing.environment import check_environment
    from accel_rl.testing.inplace import assert_inplace
    from accel_rl.testing.link import check_link
    from accel_rl.testing.sampler import check_sampler

__all__ = [
    "assert_inplace",
    "check_agent",
    "check_device",
    "check_environment",
    "check_link",
    "check_sampler",
]


def __getattr__(name: str) -> Any:
    """Each check imports what it is about, and no more."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{name.partition('_')[2]}")
    return getattr(module, name)
