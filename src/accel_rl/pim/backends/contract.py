"""The contract of a backend: the DPUs' side of training."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax.sharding import Mesh

from accel_rl.tabular.program import Program
from accel_rl.tabular.rule import Coefficients, Hyperparameters
from accel_rl.types import Array, ArrayLike


class Backend(NamedTuple):
    """A device set that trains chunks; see docs/pim-backend.md.

    A backend loads rows into DPU memories once, then runs passes of a tabular rule on them from a
    broadcast table. Merging and everything after it is the caller's.

    Attributes:
      name: as `select_backend` knows it.
      mesh: devices that hold tables between launches, for the merge.
      unsupported: program -> why the backend cannot run it, or None where it can.
      load: (program, rows int32 [D, T, 4], lengths int32 [D], coefficients) -> memory, a pytree:
        what lies in the DPUs' memories.
      launch: (program, memory, table [K * S * A], coefficients, seed uint32, first_pass uint32,
        num_passes static) -> tables [D, K * S * A]: every DPU starts from `table` and runs passes
        `first_pass` to `first_pass + num_passes - 1`. Rows beyond D may follow, here and in visits.
      visits: (program, memory, coefficients, seed, first_pass, num_passes static) -> uint32
        [D, K * S * A]: how often those passes update each entry.
      specialise: (program, hyperparameters) -> a backend for these rates, where they are known
        before tracing; None if there is nothing to gain.
      translate: an exception that jax raised -> what it means, or None where it is none of the
        backend's; None if the backend raises no exceptions of its own.
    """

    name: str
    mesh: Mesh
    unsupported: Callable[[Program], str | None]
    load: Callable[[Program, Array, Array, Coefficients], Any]
    launch: Callable[[Program, Any, Array, Coefficients, ArrayLike, ArrayLike, int], Array]
    visits: Callable[[Program, Any, Coefficients, ArrayLike, ArrayLike, int], Array]
    specialise: "Callable[[Program, Hyperparameters], Backend] | None" = None
    translate: Callable[[Exception], Exception | None] | None = None
