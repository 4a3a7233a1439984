"""CPU backend in C: whole launches by native kernels, on XLA's own threads."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from accel_rl import native
from accel_rl.arguments import one_of
from accel_rl.pim.backends.contract import Backend
from accel_rl.pim.backends.emulated import split_tables
from accel_rl.tabular.passes import native as by_time
from accel_rl.tabular.passes import native_owned as by_owner
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array, ArrayLike
from pim_emu import device_map, dpu_mesh, pad_axis

Memory = by_time.NativeRows | by_owner.NativeLanes


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

    def load(program: PassProgram, words: Array, lengths: Array, c: Coefficients) -> Memory:
        dpus = jnp.arange(words.shape[0], dtype=jnp.uint32)
        padded = pad_axis((words, lengths, dpus), mesh)
        memory = device_map(functools.partial(_kernels(program).examine, program), 0, mesh)(*padded)
        # An error on one device would leave the others waiting for it: all get the same verdict.
        verdict = jnp.tile(by_time.first_fault(memory.verdict), (mesh.size, 1))
        return dataclasses.replace(memory, verdict=verdict)

    def launch(
        program: PassProgram,
        memory: Memory,
        table: Array,
        c: Coefficients,
        seed: ArrayLike,
        first_pass: ArrayLike,
        num_passes: int,
    ) -> Array:
        def run(memory: Memory, table: Array, c: Coefficients, seed: Array, first: Array) -> Array:
            launch = _kernels(program).launch
            return launch(program, memory, table, c, seed, first, num_passes)

        seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
        table, axis = split_tables(table, mesh)
        mapped = device_map(run, (0, axis, None, None, None), mesh)
        return mapped(memory, table, c, seed, first_pass)

    def visits(
        program: PassProgram,
        memory: Memory,
        c: Coefficients,
        seed: ArrayLike,
        first_pass: ArrayLike,
        num_passes: int,
    ) -> Array:
        def count(memory: Memory, seed: Array, first: Array) -> Array:
            return _kernels(program).visit_counts(program, memory, seed, first, num_passes)

        seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
        return device_map(count, (0, None, None), mesh)(memory, seed, first_pass)

    def unsupported(program: PassProgram) -> str | None:
        return _kernels(program).unsupported(program)

    return Backend("cpu", mesh, unsupported, load, launch, visits)


def _kernels(program: PassProgram) -> Any:
    return by_owner if program.lanes else by_time
