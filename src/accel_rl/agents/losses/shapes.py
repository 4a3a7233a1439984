"""Shape checks of losses."""

import numpy as np

from accel_rl.types import PyTree


def require_shapes(**arguments: tuple[PyTree, str]) -> None:
    """Check arguments against their shapes, written as one letter for each axis.

    Axes with the same letter have the same length.

    Raises:
      ValueError: if an argument has another number of axes or an axis of length 0, or its length
        differs from that of an earlier argument with the same letter.
    """
    lengths: dict[str, tuple[str, int]] = {}
    for name, (value, letters) in arguments.items():
        shape = np.shape(value)
        if len(shape) != len(letters) or 0 in shape:
            axes = f"[{', '.join(letters)}]"
            raise ValueError(
                f"{name} must be {axes} of one transition (vmap over a batch), got shape {shape}"
            )
        for letter, length in zip(letters, shape, strict=True):
            first, known = lengths.setdefault(letter, (name, length))
            if known != length:
                raise ValueError(
                    f"{name} must have {letter} = {known}, as {first} has, got shape {shape}"
                )
