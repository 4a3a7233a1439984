"""Encoded rows that backends load, and the size of their records on DPUs."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.pim.partition import Chunks
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rows import encode_transition, to_words
from accel_rl.types import Array

CODEBOOK = 256  # most distinct rewards of short records; ARL_CODEBOOK of kernels/upmem/interface.h


def encode_chunks(program: PassProgram, chunks: Chunks) -> Array:
    """Encode chunks as the rows that backends load, int32 [D, T, 4]."""
    valid = jnp.arange(chunks.capacity, dtype=jnp.int32) < chunks.lengths[:, None]
    reward = program.rule.numerics.encode(chunks.transitions.reward)
    return to_words(encode_transition(chunks.transitions, program.num_actions, reward, valid))


def record_bytes(entries: int, num_actions: int, rewards: Array) -> int:
    """Return the bytes of a record in MRAM, 8 or 16, as `kernels/upmem/host/records.cpp`.

    Args:
      entries: S * A.
      num_actions: A.
      rewards: float32, all rewards. Fixed point may round them to fewer distinct values, and so
        shorten records. Traced rewards count as few distinct values.
    """
    wide = entries > 65_536 or num_actions > 256
    if not wide and not isinstance(rewards, jax.core.Tracer):
        wide = len(np.unique(np.asarray(rewards).view(np.uint32))) > CODEBOOK
    return 16 if wide else 8
