"""The backend in C on CPU: whole launches by native kernels, on XLA's own threads."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from accel_rl import native
from accel_rl.pim.backends.contract import Backend
from accel_rl.tabular.passes import native as kernels
from accel_rl.tabular.program import Program
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array, ArrayLike
from pim_emu import device_map, dpu_mesh, pad_axis


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Memory:
    """Rows in the DPUs' memories, the DPU axis padded to a multiple of the devices."""

    rows: Array  # int32 [D, T, 4], checked
    lengths: Array  # [D] int32
    dpus: Array  # [D] uint32, global indices


@functools.cache
def cpu_backend(mesh: Mesh | None = None) -> Backend:
    """DPUs emulated by native kernels.

    Args:
      mesh: CPU devices, from `pim_emu.dpu_mesh`; all local ones if None.

    Raises:
      ValueError: if the mesh has a device other than a CPU.
      accel_rl.native.KernelsAbsent: if there are no native kernels.
    """
    native.library()
    mesh = dpu_mesh(jax.local_devices(backend="cpu")) if mesh is None else mesh
    platforms = {device.platform for device in mesh.devices.flat}
    if platforms != {"cpu"}:
        raise ValueError(f"mesh must hold CPU devices only, got {', '.join(sorted(platforms))}")

    def load(program: Program, words: Array, lengths: Array, c: Coefficients) -> Memory:
        words, lengths, dpus = _split(words, lengths, mesh)
        check = functools.partial(kernels.check_rows, program)
        return Memory(device_map(check, 0, mesh)(words, lengths), lengths, dpus)

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
            rows, lengths, dpus = memory.rows, memory.lengths, memory.dpus
            return kernels.launch(program, rows, lengths, dpus, table, c, seed, first, num_passes)

        seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
        return device_map(run, (0, None, None, None, None), mesh)(
            memory, table, c, seed, first_pass
        )

    def visits(
        program: Program,
        words: Array,
        lengths: Array,
        c: Coefficients,
        seed: ArrayLike,
        first_pass: ArrayLike,
        num_passes: int,
    ) -> Array:
        def count(words: Array, lengths: Array, dpus: Array, seed: Array, first: Array) -> Array:
            rows = kernels.check_rows(program, words, lengths)
            return kernels.visit_counts(program, rows, lengths, dpus, seed, first, num_passes)

        seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
        mapped = device_map(count, (0, 0, 0, None, None), mesh)
        return mapped(*_split(words, lengths, mesh), seed, first_pass)[: words.shape[0]]

    return Backend("cpu", mesh, kernels.unsupported, load, launch, visits)


def _split(words: Array, lengths: Array, mesh: Mesh) -> tuple[Array, Array, Array]:
    dpus = jnp.arange(words.shape[0], dtype=jnp.uint32)
    return pad_axis((words, lengths, dpus), mesh)
