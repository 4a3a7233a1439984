"""The rows that backends load."""

import jax.numpy as jnp

from accel_rl.pim.partition import Chunks
from accel_rl.tabular.program import Program
from accel_rl.tabular.rows import encode_transition, to_words
from accel_rl.types import Array


def encode_chunks(program: Program, chunks: Chunks) -> Array:
    """int32 [D, T, 4]: the rows that backends load."""
    valid = jnp.arange(chunks.capacity, dtype=jnp.int32) < chunks.lengths[:, None]
    reward = program.rule.numerics.encode(chunks.transitions.reward)
    return to_words(encode_transition(chunks.transitions, program.num_actions, reward, valid))
