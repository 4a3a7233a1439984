"""Contract of a backend, the DPU side of training."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax.sharding import Mesh

from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Coefficients, Hyperparameters
from accel_rl.types import Array, ArrayLike


class Backend(NamedTuple):
    """Set of devices that trains chunks; see docs/pim-backend.md.

    A backend loads rows into DPU memories once, then runs passes of a tabular rule on them from a
    broadcast table. The caller merges the tables.

    Attributes:
      name: name for `select_backend`.
      mesh: devices that hold tables between launches, for the merge.
      unsupported: program -> why the backend cannot run it, or None if it can.
      load: (program, rows int32 [D, T, 4], lengths int32 [D], coefficients) -> memory, a pytree
        with the contents of the DPUs' memories.
      launch: (program, memory, table [K * S * A], coefficients, seed uint32, first_pass uint32,
        num_passes static) -> tables [D, K * S * A]: every DPU starts from `table` and runs passes
        `first_pass` to `first_pass + num_passes - 1`. Padding may follow the tables, as in visits.
        A table [D, K * S * A] gives each DPU a start of its own.
        By owner, values of runs [D, K * R] (see `accel_rl.tabular.owners`) in place of tables.
      visits: (program, memory, coefficients, seed, first_pass, num_passes static) -> uint32
        [D, K * S * A], or [D, K * R] by owner: number of updates of each in those passes.
      specialise: (program, hyperparameters) -> backend for these rates, if they are known before
        tracing; None if there is nothing to gain.
      translate: exception raised by jax -> exception of the backend, or None if the backend did not
        cause it; None if the backend has no exceptions of its own.
    """

    name: str
    mesh: Mesh
    unsupported: Callable[[PassProgram], str | None]
    load: Callable[[PassProgram, Array, Array, Coefficients], object]
    launch: Callable[[PassProgram, Any, Array, Coefficients, ArrayLike, ArrayLike, int], Array]
    visits: Callable[[PassProgram, Any, Coefficients, ArrayLike, ArrayLike, int], Array]
    specialise: "Callable[[PassProgram, Hyperparameters], Backend] | None" = None
    translate: Callable[[Exception], Exception | None] | None = None
