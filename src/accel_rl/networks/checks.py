"""Checks of what modules are made with."""

from collections.abc import Sequence

import numpy as np


def require_widths(name: str, widths: Sequence[int]) -> None:
    """Raises unless there are widths, each an int of at least 1.

    Raises:
      TypeError: if a width is no int, or `widths` no sequence.
      ValueError: if there is none, or one is below 1.
    """
    if isinstance(widths, str) or not isinstance(widths, Sequence):
        raise TypeError(f"{name} must be a sequence of ints, got {widths!r}")
    if len(widths) == 0:
        raise ValueError(f"{name} must have at least one width, got {widths!r}")
    for width in widths:
        require_at_least(name, width, 1)


def require_at_least(name: str, value: int, least: int) -> None:
    """Raises TypeError if the value is no int, ValueError if it is below `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}")
