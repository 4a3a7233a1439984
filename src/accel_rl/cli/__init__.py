"""The `accel-rl` command.

Importing it imports no jax: each command imports what it needs once it is asked to run, after
`runtime.prepare_jax` has set what jax reads only at its first import.
"""

from accel_rl.cli.app import main

__all__ = ["main"]
