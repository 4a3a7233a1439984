"""CPU backend in C: whole launches by native kernels, on XLA's own threads."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from accel_rl import native
from accel_rl.arguments import one_of
from accel_rl.pim.backends.contract import Backend
from accel_rl.pim.backends.emulated import split_tables
from accel_rl.tabular.passes import native as kernels
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array, ArrayLike
from pim_emu import device_map, dpu_mesh, pad_axis


@functools.cache
def cpu_backend(mesh: Mesh | None = None) -> Backend:
    """Return the backend that emulates DPUs with native kernels.

    Args:
      mesh: CPU devices, from `pim_emu.dpu_mesh`; all local CPU devices if None.
    """
    native.library()
    if mesh is None:
        try:
            mesh = dpu_mesh(jax.local_devices(backend="cpu"))
        except RuntimeError as error:  # JAX_PLATFORMS may leave the CPU out
            raise native.KernelsAbsent(f"jax has no CPU devices: {error}") from error
    for device in mesh.devices.flat:
        one_of("platform of the mesh", device.platform, ("cpu",))

    def load(
        program: PassProgram, words: Array, lengths: Array, c: Coefficients
    ) -> kernels.NativeRows:
        dpus = jnp.arange(words.shape[0], dtype=jnp.uint32)
        padded = pad_axis((words, lengths, dpus), mesh)
        rows = device_map(functools.partial(kernels.examine, program), 0, mesh)(*padded)
        # An error on one device would leave the others waiting for it: all get the same verdict.
        verdict = jnp.tile(kernels.first_fault(rows.verdict), (mesh.size, 1))
        return dataclasses.replace(rows, verdict=verdict)

    def launch(
        program: PassProgram,
        memory: kernels.NativeRows,
        table: Array,
        c: Coefficients,
        seed: ArrayLike,
        first_pass: ArrayLike,
        num_passes: int,
    ) -> Array:
        def run(
            rows: kernels.NativeRows, table: Array, c: Coefficients, seed: Array, first: Array
        ) -> Array:
            return kernels.launch(program, rows, table, c, seed, first, num_passes)

        seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
        table, axis = split_tables(table, mesh)
        mapped = device_map(run, (0, axis, None, None, None), mesh)
        return mapped(memory, table, c, seed, first_pass)

    def visits(
        program: PassProgram,
        memory: kernels.NativeRows,
        c: Coefficients,
        seed: ArrayLike,
        first_pass: ArrayLike,
        num_passes: int,
    ) -> Array:
        def count(rows: kernels.NativeRows, seed: Array, first: Array) -> Array:
            return kernels.visit_counts(program, rows, seed, first, num_passes)

        seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
        return device_map(count, (0, None, None), mesh)(memory, seed, first_pass)

    return Backend("cpu", mesh, kernels.unsupported, load, launch, visits)
