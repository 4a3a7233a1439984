"""JAX backend: DPUs split over devices, with a fast pass on each device."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from accel_rl.pim.backends import by_owner
from accel_rl.pim.backends.contract import Backend
from accel_rl.tabular.passes import Path, order_rows, select_path, visit_counts
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array, ArrayLike
from pim_emu import device_map, dpu_mesh, pad_axis


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EmulatedMemory:
    """Rows in the DPUs' memories, with the DPU axis padded to a multiple of the devices."""

    words: Array  # [D, T, 4] int32, rows as stored
    arranged: Array | None  # [devices, ...] rows as the pass reads them, if all passes are alike
    lengths: Array  # [D] int32
    dpus: Array  # [D] uint32, global indices


@functools.cache
def jax_backend(mesh: Mesh | None = None, path: str = "auto") -> Backend:
    """Return the backend that emulates DPUs in JAX, split over devices.

    Args:
      mesh: devices, from `pim_emu.dpu_mesh`; all local devices if None.
      path: form of the pass on a device, see `accel_rl.tabular.passes`.
    """
    mesh = dpu_mesh() if mesh is None else mesh
    chosen = select_path(path, mesh.devices.flat[0].platform)

    def load(
        program: PassProgram, words: Array, lengths: Array, c: Coefficients
    ) -> EmulatedMemory | by_owner.OwnerMemory:
        dpus = jnp.arange(words.shape[0], dtype=jnp.uint32)
        words, lengths, dpus = pad_axis((words, lengths, dpus), mesh)
        if program.lanes:
            return by_owner.load(program, mesh, words, lengths, dpus)
        arranged = None
        if program.is_static:

            def arrange(words: Array, lengths: Array, dpus: Array, c: Coefficients) -> Array:
                return chosen.arrange(program, order_rows(program, words, lengths, dpus, c))[None]

            arranged = device_map(arrange, (0, 0, 0, None), mesh)(words, lengths, dpus, c)
        return EmulatedMemory(words, arranged, lengths, dpus)

    def launch(
        program: PassProgram,
        memory: EmulatedMemory | by_owner.OwnerMemory,
        table: Array,
        c: Coefficients,
        seed: ArrayLike,
        first_pass: ArrayLike,
        num_passes: int,
    ) -> Array:
        if isinstance(memory, by_owner.OwnerMemory):
            return by_owner.launch(program, mesh, memory, table, c, seed, first_pass, num_passes)

        def run(
            memory: EmulatedMemory, table: Array, c: Coefficients, seed: Array, first: Array
        ) -> Array:
            def one_pass(k: Array, tables: Array) -> Array:
                return _one_pass(program, chosen, memory, tables, c, seed, first + k)

            tables = jnp.broadcast_to(table, (memory.lengths.shape[0], program.entries))
            return jax.lax.fori_loop(np.uint32(0), np.uint32(num_passes), one_pass, tables)

        seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
        table, axis = split_tables(table, mesh)
        return device_map(run, (0, axis, None, None, None), mesh)(
            memory, table, c, seed, first_pass
        )

    def visits(
        program: PassProgram,
        memory: EmulatedMemory | by_owner.OwnerMemory,
        c: Coefficients,
        seed: ArrayLike,
        first_pass: ArrayLike,
        num_passes: int,
    ) -> Array:
        if isinstance(memory, by_owner.OwnerMemory):
            return by_owner.visits(program, mesh, memory, c, seed, first_pass, num_passes)

        def count(memory: EmulatedMemory, c: Coefficients, seed: Array, first: Array) -> Array:
            words, lengths, dpus = memory.words, memory.lengths, memory.dpus

            def add(k: Array, counts: Array) -> Array:
                rows = order_rows(program, words, lengths, dpus, c, seed, first + k)
                return counts + visit_counts(program, rows)

            zeros = jnp.zeros((words.shape[0], program.entries), jnp.uint32)
            return jax.lax.fori_loop(np.uint32(0), np.uint32(num_passes), add, zeros)

        seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
        return device_map(count, (0, None, None, None), mesh)(memory, c, seed, first_pass)

    return Backend("jax", mesh, lambda program: None, load, launch, visits)


def split_tables(table: Array, mesh: Mesh) -> tuple[Array, int | None]:
    """Return the start of a launch, padded for the mesh, and its axis for `device_map`.

    Args:
      table: [K * S * A], for all DPUs, or [D, K * S * A], padded with zeros as rows are.
      mesh: devices over which DPUs are split.
    """
    return (table, None) if table.ndim == 1 else (pad_axis(table, mesh), 0)


def _one_pass(
    program: PassProgram,
    path: Path,
    memory: EmulatedMemory,
    tables: Array,
    c: Coefficients,
    seed: Array,
    pass_index: Array,
) -> Array:
    if memory.arranged is not None:
        return path.sweep(program, tables, memory.arranged[0], c)
    rows = order_rows(program, memory.words, memory.lengths, memory.dpus, c, seed, pass_index)
    return path.sweep(program, tables, path.arrange(program, rows), c)
