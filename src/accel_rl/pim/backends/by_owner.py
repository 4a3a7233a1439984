"""Emulation of passes by owner in JAX: DPUs split over devices, all lanes of a device together."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from accel_rl.tabular import owners, random
from accel_rl.tabular.orders import rotate_runs
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array, ArrayLike
from pim_emu import device_map


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class OwnerMemory:
    """Rows and runs in the DPUs' memories."""

    steps: owners.Steps  # of each device, with a leading axis [devices]
    entry: Array  # [D, R] int32, of each run
    dpus: Array  # [D] uint32, global indices


def load(
    program: PassProgram, mesh: Mesh, words: Array, lengths: Array, dpus: Array
) -> OwnerMemory:
    """Arrange rows [D, T, 4] in lanes, on the device that has the DPU."""

    def arrange(words: Array, lengths: Array, dpus: Array) -> OwnerMemory:
        runs = owners.find_runs(program, words, lengths)
        steps = owners.steps_of(program, owners.arrange(program, words, lengths), runs)
        return OwnerMemory(jax.tree.map(lambda x: x[None], steps), runs.entry, dpus)

    return device_map(arrange, 0, mesh)(words, lengths, dpus)


def launch(
    program: PassProgram,
    mesh: Mesh,
    memory: OwnerMemory,
    table: Array,
    c: Coefficients,
    seed: ArrayLike,
    first_pass: ArrayLike,
    num_passes: int,
) -> Array:
    """Run passes from `table` [K * S * A]; return the values of runs [D, K * R]."""

    def run(memory: OwnerMemory, table: Array, c: Coefficients, seed: Array, first: Array) -> Array:
        steps = jax.tree.map(lambda x: x[0], memory.steps)
        values = owners.value_table(program, table, c)
        starts = owners.run_starts(program, memory.entry, table).reshape(len(memory.dpus), -1)

        def one_pass(k: Array, runs: Array) -> Array:
            keys_of = functools.partial(owners.lane_keys, program, memory.dpus, seed, first + k)
            taken = _in_order(program, steps, keys_of(random.ORDER_STREAM))
            return owners.sweep(program, taken, runs, values, c, keys_of(random.ACTION_STREAM))

        return jax.lax.fori_loop(np.uint32(0), np.uint32(num_passes), one_pass, starts)

    seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
    return device_map(run, (0, None, None, None, None), mesh)(memory, table, c, seed, first_pass)


def visits(
    program: PassProgram,
    mesh: Mesh,
    memory: OwnerMemory,
    c: Coefficients,
    seed: ArrayLike,
    first_pass: ArrayLike,
    num_passes: int,
) -> Array:
    """Count the updates of runs in passes, uint32 [D, K * R]."""

    def count(memory: OwnerMemory, c: Coefficients, seed: Array, first: Array) -> Array:
        steps = jax.tree.map(lambda x: x[0], memory.steps)

        def add(k: Array, counts: Array) -> Array:
            # Choices go by the step, and the steps of a run are the same in any order.
            stream = random.ACTION_STREAM
            keys = owners.lane_keys(program, memory.dpus, seed, first + k, stream)
            return counts + owners.visit_counts(program, steps, c, keys)

        zeros = jnp.zeros((len(memory.dpus), program.results), jnp.uint32)
        return jax.lax.fori_loop(np.uint32(0), np.uint32(num_passes), add, zeros)

    seed, first_pass = (jnp.asarray(x, jnp.uint32) for x in (seed, first_pass))
    return device_map(count, (0, None, None, None), mesh)(memory, c, seed, first_pass)


def _in_order(program: PassProgram, steps: owners.Steps, keys: Array) -> owners.Steps:
    """Put rows into the order of a pass, for which lanes have `keys`."""
    if steps.places is None:
        return steps
    source = rotate_runs(steps.places, keys, min(len(steps.index), program.runs))
    index, reward = (
        jnp.take_along_axis(column, source, axis=0, mode="clip")
        for column in (steps.index, steps.reward)
    )
    return dataclasses.replace(steps, index=index, reward=reward)
