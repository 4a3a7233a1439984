"""Where the library keeps what it can make again: compiled programs, builds, measured costs."""

import os
from pathlib import Path

VARIABLE = "ACCEL_RL_CACHE"  # names another folder


def cache_folder() -> Path:
    """`$ACCEL_RL_CACHE`, or else `accel_rl` in `$XDG_CACHE_HOME` or, without that, `~/.cache`."""
    own = os.environ.get(VARIABLE)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(own) if own else Path(base) / "accel_rl").expanduser().resolve()
