"""Measured links between host memory and JAX devices."""

import jax
import numpy as np

from accel_rl.compose import timing
from accel_rl.compose.devices.device import Link

SIZES = 4, 2**24  # bytes of the transfers that measure latency and bandwidth


def measured_link(device: jax.Device, seconds: float = 0.1) -> Link:
    """Measure a device's link: a transfer takes half the time of a round trip from the host.

    Args:
      device: JAX device. A host device is reached by copies in host memory.
      seconds: of each of the two measurements.
    """
    small, large = (_round_trip(device, size, seconds) / 2 for size in SIZES)
    bandwidth = (SIZES[1] - SIZES[0]) / max(large - small, 1e-9)
    return Link(small, bandwidth, "measured")


def _round_trip(device: jax.Device, size: int, seconds: float) -> float:
    sent = np.zeros(size, np.uint8)

    def go() -> None:
        # Force copies both ways: a CPU device might otherwise alias the host array.
        there = jax.device_put(sent, device, may_alias=False)
        np.array(jax.block_until_ready(there))

    return timing.alone(go, seconds).median
