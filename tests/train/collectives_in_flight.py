"""Call a program with a collective often, and wait for results only so often.

Arguments: devices, calls, calls between waits. On two cores `2 200 200` never ends with jax 0.10.2.
"""

import os
import sys

devices, calls, ahead = map(int, sys.argv[1:])
os.environ["XLA_FLAGS"] = (
    f"--xla_force_host_platform_device_count={devices}"
    " --xla_cpu_collective_call_warn_stuck_timeout_seconds=5"
    " --xla_cpu_collective_call_terminate_timeout_seconds=20"
)

import jax  # noqa: E402 - it reads XLA_FLAGS when it is imported
import numpy as np  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

mesh = jax.make_mesh((devices,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
x = jax.device_put(np.ones(devices, np.float32), jax.NamedSharding(mesh, P("d")))
total = jax.jit(
    jax.shard_map(lambda x: jax.lax.psum(x, "d"), mesh=mesh, in_specs=P("d"), out_specs=P())
)
total(x).block_until_ready()
print("compiled", flush=True)
for call in range(1, calls + 1):
    y = total(x)
    if call % ahead == 0:
        y.block_until_ready()
print(y.block_until_ready())
