"""Models of hardware that accel_rl does not run on: latency, energy and placement.

- `associative_memory`: AMPER's sampling on TCAM arrays
- `fpga`: PEARL's learner and replay manager on an FPGA
- `pearl`: the assignment of tasks to devices in PEARL's artifact
- `energy`: joules from device power, and meters of real counters
- `portability`: performance portability over platforms

Figures carry their source and status; docs/am-hardware.md and docs/compose-model.md state the
equations.
"""

from accel_rl.hardware_models import associative_memory, energy, fpga, pearl, portability

__all__ = ["associative_memory", "energy", "fpga", "pearl", "portability"]
