"""The rows that backends load, and how often each pass visits each entry."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from accel_rl.pim.partition import Chunks
from accel_rl.tabular.passes import order_rows, visit_counts
from accel_rl.tabular.program import Program
from accel_rl.tabular.rows import encode_transition, to_words
from accel_rl.tabular.rule import Coefficients
from accel_rl.types import Array
from pim_emu import device_map, pad_axis


def encode_chunks(program: Program, chunks: Chunks) -> Array:
    """int32 [D, T, 4]: the rows that backends load."""
    valid = jnp.arange(chunks.capacity, dtype=jnp.int32) < chunks.lengths[:, None]
    reward = program.rule.numerics.encode(chunks.transitions.reward)
    return to_words(encode_transition(chunks.transitions, program.num_actions, reward, valid))


def count_visits(
    program: Program,
    words: Array,
    lengths: Array,
    c: Coefficients,
    seed: Array,
    first_pass: Array,
    num_passes: int,
    mesh: Mesh,
) -> Array:
    """uint32 [D, K * S * A]: updates of each entry on each DPU in the given passes.

    Rows [D, T, 4] are counted on the devices of the mesh.
    """
    num_dpus = words.shape[0]

    def count(
        words: Array, lengths: Array, dpus: Array, c: Coefficients, seed: Array, first: Array
    ) -> Array:
        def add(k: Array, counts: Array) -> Array:
            rows = order_rows(program, words, lengths, dpus, c, seed, first + k)
            return counts + visit_counts(program, rows)

        zeros = jnp.zeros((words.shape[0], program.entries), jnp.uint32)
        return jax.lax.fori_loop(np.uint32(0), np.uint32(num_passes), add, zeros)

    split = pad_axis((words, lengths, jnp.arange(num_dpus, dtype=jnp.uint32)), mesh)
    mapped = device_map(count, (0, 0, 0, None, None, None), mesh)
    return mapped(*split, c, seed, first_pass)[:num_dpus]
