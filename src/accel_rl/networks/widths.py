"""Checks of modules' arguments."""

from collections.abc import Sequence

from accel_rl.arguments import whole


def require_widths(name: str, widths: Sequence[int]) -> None:
    """Check that `widths` is a non-empty sequence of ints of at least 1.

    Raises:
      TypeError: if a width is not an int, or `widths` is not a sequence.
      ValueError: if there are no widths, or one is below 1.
    """
    if isinstance(widths, str) or not isinstance(widths, Sequence):
        raise TypeError(f"{name} must be a sequence of ints, got {widths!r}")
    if len(widths) == 0:
        raise ValueError(f"{name} must have at least one width, got {widths!r}")
    for width in widths:
        whole(name, width, 1)
