"""Command-line interface `accel-rl`.

Importing this package does not import jax. Each command imports its modules when it runs, after
`runtime.prepare_jax` has set the variables that jax reads only at its first import.
"""

from accel_rl.cli.app import main

__all__ = ["main"]
