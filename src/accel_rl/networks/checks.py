"""Checks of what modules are made with."""

from collections.abc import Sequence

from accel_rl.arguments import whole


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
        whole(name, width, 1)
