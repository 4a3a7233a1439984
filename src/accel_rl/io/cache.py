"""Cache folder of the library, for compiled programs, builds and measured costs."""

import os
from pathlib import Path

VARIABLE = "ACCEL_RL_CACHE"  # path of another folder


def cache_folder() -> Path:
    """Return `$ACCEL_RL_CACHE`, else `accel_rl` in `$XDG_CACHE_HOME` or, if unset, `~/.cache`."""
    own = os.environ.get(VARIABLE)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(own) if own else Path(base) / "accel_rl").expanduser().resolve()
