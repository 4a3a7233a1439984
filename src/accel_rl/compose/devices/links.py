"""Links between the host's memory and JAX's devices, measured with transfers."""

import jax
import numpy as np

from accel_rl.compose import timing
from accel_rl.compose.devices.device import Link

SIZES = 4, 2**24  # bytes: what latency and what bandwidth is measured with


def measured_link(device: jax.Device, seconds: float = 0.1) -> Link:
    """Of transfers from the host to a device and back, half the time of a round trip.

    Args:
      device: of JAX. A host device is reached by copies in the host's memory.
      seconds: of each of two measurements.
    """
    small, large = (_round_trip(device, size, seconds) / 2 for size in SIZES)
    bandwidth = (SIZES[1] - SIZES[0]) / max(large - small, 1e-9)
    return Link(small, bandwidth, "measured")


def _round_trip(device: jax.Device, size: int, seconds: float) -> float:
    sent = np.zeros(size, np.uint8)

    def go() -> None:
        # A CPU device may take an array as it lies; what comes back is a copy for sure.
        there = jax.device_put(sent, device, may_alias=False)
        np.array(jax.block_until_ready(there))

    return timing.alone(go, seconds).median
