"""UPMEM backend: real DPU programs, on hardware with the vendor's SDK, or emulated."""

import dataclasses
import functools

import jax
import numpy as np

from accel_rl import native
from accel_rl.arguments import whole
from accel_rl.pim.backends.contract import Backend
from accel_rl.pim.backends.cpu import cpu_backend
from accel_rl.pim.backends.emulated import jax_backend, split_tables
from accel_rl.pim.upmem import kernels
from accel_rl.pim.upmem.errors import SdkMissing
from accel_rl.pim.upmem.host import host
from accel_rl.pim.upmem.toolkit import find_toolkit, known_machine
from accel_rl.tabular.passes.native import seeds_of
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Coefficients, Hyperparameters
from accel_rl.types import Array, ArrayLike
from pim_emu import device_map, dpu_mesh

DEFAULT_TASKLETS = 16


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class UpmemMemory:
    """Rows for the DPUs, and for the host, which counts visits."""

    rows: kernels.DpuRows
    counting: object  # memory of the backend that counts visits


def upmem_backend(
    tasklets: int = DEFAULT_TASKLETS,
    machine: str | None = None,
    *,
    sdk: str | None = None,
    asynchronous: bool = True,
    specialise: bool = True,
    count_instructions: bool = False,
) -> Backend:
    """Return the backend that trains on UPMEM DPUs, one for each chunk.

    Programs are compiled for each rule, numerics, order and shape at first use and cached. The
    process holds its DPUs until it ends, or until `pim.upmem.release`.

    Args:
      tasklets: tasklets per DPU, from 1 to the machine's limit; results do not depend on it.
      machine: name of the machine whose limits programs must fit, and which is emulated; the
        default machine if None.
      sdk: "vendor", "emulator" or "auto"; see `pim.upmem.find_toolkit`.
      asynchronous: some ranks move data while others compute.
      specialise: compile concrete rates into INT32 programs, as shifts and adds.
      count_instructions: DPUs count instructions instead of cycles, for `pim.upmem.recording`.
    """
    whole("tasklets", tasklets, 1, known_machine(machine).max_tasklets)
    settings = kernels.UpmemSettings(
        toolkit=find_toolkit(sdk),
        tasklets=tasklets,
        machine=machine,
        asynchronous=asynchronous,
        count_instructions=count_instructions,
        rates=None,
    )
    return _backend(settings, specialise)


@functools.cache
def _backend(settings: kernels.UpmemSettings, specialise: bool) -> Backend:
    library = host(settings.toolkit)
    try:
        mesh = dpu_mesh(jax.local_devices(backend="cpu")[:1])
    except RuntimeError as error:  # JAX_PLATFORMS may leave the CPU out
        raise SdkMissing(f"jax has no CPU devices, which call the DPUs: {error}") from error
    counting = jax_backend(mesh) if native.why_absent() else cpu_backend(mesh)

    def load(program: PassProgram, words: Array, lengths: Array, c: Coefficients) -> UpmemMemory:
        run = functools.partial(kernels.load, settings, program)
        rows = device_map(run, 0, mesh)(words, lengths)
        return UpmemMemory(rows, counting.load(program, words, lengths, c))

    def launch(
        program: PassProgram,
        memory: UpmemMemory,
        table: Array,
        c: Coefficients,
        seed: ArrayLike,
        first_pass: ArrayLike,
        num_passes: int,
    ) -> Array:
        def run(rows: kernels.DpuRows, table: Array, c: Coefficients, seeds: list[Array]) -> Array:
            return kernels.launch(settings, program, rows, table, c, seeds, num_passes)

        # Outside `run`: an unused vmapped seed would make all operands of `mapped` batched.
        seeds = seeds_of(program, c, seed, first_pass)
        table, axis = split_tables(table, mesh)
        mapped = device_map(run, (0, axis, None, None), mesh)
        return mapped(memory.rows, table, c, seeds)

    def visits(
        program: PassProgram,
        memory: UpmemMemory,
        c: Coefficients,
        seed: ArrayLike,
        first_pass: ArrayLike,
        num_passes: int,
    ) -> Array:
        return counting.visits(program, memory.counting, c, seed, first_pass, num_passes)

    def with_rates(program: PassProgram, rates: Hyperparameters) -> Backend:
        if program.rule.numerics.dtype != np.int32 or not _known(rates):
            return _backend(settings, False)
        with jax.ensure_compile_time_eval():
            c = program.rule.coefficients(rates)
        entries = (int(c.alpha), int(c.gamma), int(c.epsilon))
        return _backend(dataclasses.replace(settings, rates=entries), False)

    return Backend(
        "upmem",
        mesh,
        kernels.unsupported,
        load,
        launch,
        visits,
        specialise=with_rates if specialise else None,
        translate=library.translate,
    )


def _known(rates: Hyperparameters) -> bool:
    leaves = jax.tree.leaves(rates)
    return not any(isinstance(x, jax.core.Tracer) or np.ndim(x) for x in leaves)
