"""The rows that backends load, and the records that DPUs keep of them."""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.pim.partition import Chunks
from accel_rl.tabular.program import Program
from accel_rl.tabular.rows import encode_transition, to_words
from accel_rl.types import Array

CODEBOOK = 256  # distinct rewards of short records, as ARL_CODEBOOK of kernels/upmem/interface.h


def encode_chunks(program: Program, chunks: Chunks) -> Array:
    """int32 [D, T, 4]: the rows that backends load."""
    valid = jnp.arange(chunks.capacity, dtype=jnp.int32) < chunks.lengths[:, None]
    reward = program.rule.numerics.encode(chunks.transitions.reward)
    return to_words(encode_transition(chunks.transitions, program.num_actions, reward, valid))


def record_bytes(entries: int, num_actions: int, rewards: Array) -> int:
    """Bytes of a row in MRAM, 8 or 16, as `kernels/upmem/host/records.cpp` decides it.

    Args:
      entries: S * A.
      num_actions: A.
      rewards: float32, of all rows. Fixed point may make fewer distinct rewards of them, and so
        shorter records. Traced ones count as few.
    """
    wide = entries > 65_536 or num_actions > 256
    if not wide and not isinstance(rewards, jax.core.Tracer):
        wide = len(np.unique(np.asarray(rewards).view(np.uint32))) > CODEBOOK
    return 16 if wide else 8
