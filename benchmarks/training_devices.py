"""Host devices for seeds to be sharded over."""

import os

import jax

from accel_rl.io.machine import core_count


def use_all_cores() -> None:
    """Give JAX a host device for each core; to be called before it computes anything.

    What `XLA_FLAGS` says of their number is left as it is.
    """
    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        jax.config.update("jax_num_cpu_devices", core_count())
