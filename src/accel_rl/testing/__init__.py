"""Checks of users' own components: compiled programs, and implementations of contracts.

Each `check_` function exercises an implementation of a contract, and raises AssertionError that
names the violation; `docs/extending/` shows one at the end of each page.
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
    """Import a check on first use, so that each check imports only its own dependencies."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{name.partition('_')[2]}")
    return getattr(module, name)
