"""Build flags of programs: counted, with stack checks, traced; `enum emu_build` of abi.h."""

import os

COUNTED = 1
STACKS = 2
TRACED = 4


def is_set(variable: str) -> bool:
    """Return whether an environment variable is set to anything but 0 or nothing."""
    return os.environ.get(variable, "0") not in ("", "0")


def describe(flags: int) -> str:
    """Describe build flags in the user's terms."""
    if flags & TRACED:
        return "traced (PIM_EMU_TRACE or -fsanitize=thread)"
    return "not traced" if flags else "fast (PIM_EMU_FAST)"
