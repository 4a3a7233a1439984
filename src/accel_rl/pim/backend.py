"""What trains the chunks: the backend contract, and the backend in JAX.

A backend holds the DPUs' side of training: it loads rows into their memories once, then runs passes
of a tabular rule on them from a broadcast table. Merging and everything after it is the caller's.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from accel_rl.tabular.passes import Path, is_static, order_rows, select_path
from accel_rl.tabular.program import Program
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array, ArrayLike
from pim_emu import device_map, dpu_mesh, pad_axis

NAMES = ("auto", "jax", "cpu", "upmem")


class Backend(NamedTuple):
    """A device set that trains chunks; made by `jax_backend`. See docs/pim-backend.md.

    Attributes:
      name: as `select_backend` knows it.
      mesh: devices that hold tables between launches, for the merge.
      load: (program, rows int32 [D, T, 4], lengths int32 [D], coefficients) -> memory, a pytree:
        what lies in the DPUs' memories.
      launch: (program, memory, table [K * S * A], coefficients, seed uint32, first_pass uint32,
        num_passes static) -> tables [D, K * S * A]: every DPU starts from `table` and runs passes
        `first_pass` to `first_pass + num_passes - 1`.
    """

    name: str
    mesh: Mesh
    load: Callable[[Program, Array, Array, Coefficients], Any]
    launch: Callable[[Program, Any, Array, Coefficients, ArrayLike, ArrayLike, int], Array]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Memory:
    """Rows in the DPUs' memories, the DPU axis padded to a multiple of the devices."""

    rows: Array  # arranged rows of each device where all passes are alike, else [D, T, 4] words
    lengths: Array  # [D] int32
    dpus: Array  # [D] uint32, global indices


@functools.cache
def jax_backend(mesh: Mesh | None = None, path: str = "auto") -> Backend:
    """DPUs emulated in JAX: split over devices, and a fast pass within each.

    Args:
      mesh: devices, from `pim_emu.dpu_mesh`; all local devices if None.
      path: form of the pass within a device, see `accel_rl.tabular.passes`.

    Raises:
      ValueError: if the path is unknown.
    """
    mesh = dpu_mesh() if mesh is None else mesh
    chosen = select_path(path, mesh.devices.flat[0].platform)

    def load(program: Program, words: Array, lengths: Array, c: Coefficients) -> Memory:
        dpus = jnp.arange(words.shape[0], dtype=jnp.uint32)
        words, lengths, dpus = pad_axis((words, lengths, dpus), mesh)
        if is_static(program):

            def arrange(words: Array, lengths: Array, dpus: Array, c: Coefficients) -> Array:
                return chosen.arrange(program, order_rows(program, words, lengths, dpus, c))[None]

            words = device_map(arrange, (0, 0, 0, None), mesh)(words, lengths, dpus, c)
        return Memory(words, lengths, dpus)

    def launch(
        program: Program,
        memory: Memory,
        table: Array,
        c: Coefficients,
        seed: ArrayLike,
        first_pass: ArrayLike,
        num_passes: int,
    ) -> Array:
        def run(memory: Memory, table: Array, c: Coefficients, seed: Array, first: Array) -> Array:
            def one_pass(k: Array, tables: Array) -> Array:
                return _one_pass(program, chosen, memory, tables, c, seed, first + k)

            tables = jnp.broadcast_to(table, (memory.lengths.shape[0], *table.shape))
            return jax.lax.fori_loop(np.uint32(0), np.uint32(num_passes), one_pass, tables)

        seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
        return device_map(run, (0, None, None, None, None), mesh)(
            memory, table, c, seed, first_pass
        )

    return Backend("jax", mesh, load, launch)


def select_backend(backend: str | Backend) -> Backend:
    """The backend of that name, or the backend itself.

    Raises:
      ValueError: if the name is unknown, or the backend is absent: the message says how to get it.
    """
    if isinstance(backend, Backend):
        return backend
    if backend not in NAMES:
        raise ValueError(f"backend must be one of {', '.join(NAMES)}, got {backend!r}")
    if backend in ("cpu", "upmem"):
        raise ValueError(
            f"backend {backend!r} is absent: it needs the native kernels, which this version of "
            "accel_rl does not contain; use 'jax' or 'auto'"
        )
    return jax_backend()


def _one_pass(
    program: Program,
    path: Path,
    memory: Memory,
    tables: Array,
    c: Coefficients,
    seed: Array,
    pass_index: Array,
) -> Array:
    if is_static(program):
        return path.sweep(program, tables, memory.rows[0], c)
    rows = order_rows(program, memory.rows, memory.lengths, memory.dpus, c, seed, pass_index)
    return path.sweep(program, tables, path.arrange(program, rows), c)
