"""What losses refuse: the shapes of another transition, or of a batch."""

from typing import Any

import numpy as np


def require_shapes(**arguments: tuple[Any, str]) -> None:
    """Checks arguments against their shapes, a letter for each axis: one letter is one length.

    Raises:
      ValueError: if an argument has other axes, none of a length, or another length than the
        argument before it with the same letter.
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
