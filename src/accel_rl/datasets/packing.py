"""Packing of transitions into 8- or 16-byte records, for user kernels that stream DPU memory.

`docs/datasets.md` states the layout byte by byte. Backend "upmem" has a packing of its own, with
fewer rewards: see `pim.partition.record_bytes`.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np

from accel_rl.datasets.dataset import DatasetInfo, TabularDataset, columns, validate
from accel_rl.types import TabularTransition

# Bits of the flags field.
TERMINATED = 1
TRUNCATED = 2
EPISODE_START = 4

# Little-endian, without gaps. `state_action` is s*A + a, and `next_row` is s'*A, the index of the
# next state's first Q-value.
NARROW = np.dtype(
    [
        ("state_action", "<u2"),
        ("next_row", "<u2"),
        ("reward", "<i2"),  # index into the codebook
        ("next_action", "u1"),
        ("flags", "u1"),
    ]
)
WIDE = np.dtype(
    [
        ("state_action", "<i4"),
        ("next_row", "<i4"),
        ("reward", "<f4"),
        ("next_action", "<u2"),
        ("flags", "<u2"),
    ]
)

# Capacity of each record: table entries S*A, actions A, distinct rewards.
_NARROW_LIMITS = {"S*A": 2**16, "A": 2**8, "distinct rewards": 2**15}
_WIDE_LIMITS = {"S*A": 2**31, "A": 2**16}


@dataclasses.dataclass(frozen=True, eq=False)
class PackedDataset:
    """Dataset packed into records, on the host."""

    records: np.ndarray  # [N] NARROW or WIDE
    codebook: np.ndarray | None  # [C] float32, ascending rewards of NARROW records; None with WIDE
    info: DatasetInfo

    def __len__(self) -> int:
        return len(self.records)

    @property
    def words(self) -> np.ndarray:
        """Records as little-endian words, [N, 2] or [N, 4] uint32, without a copy."""
        return self.records.view("<u4").reshape(len(self), -1)


def pack(dataset: TabularDataset, wide: bool | None = None) -> PackedDataset:
    """Pack a dataset into records; `unpack` restores it bit for bit.

    The 8-byte record supports up to 65,536 table entries S*A, 256 actions and 32,768 distinct
    rewards, stored once in a codebook. The 16-byte record supports up to 2^31 entries, 65,536
    actions and any reward.

    Args:
        dataset: the dataset; it is validated first.
        wide: True for 16 bytes, False for 8, None for the smaller one that fits.

    Returns:
        The records.

    Raises:
        ValueError: the dataset does not fit the requested record, or either of them.
    """
    validate(dataset)
    table, info = columns(dataset), dataset.info
    # Compare bits, not values: 0.0 and -0.0 are equal, and both must be restored.
    bits = np.unique(table["reward"].view(np.uint32))
    sizes = {
        "S*A": info.num_states * info.num_actions,
        "A": info.num_actions,
        "distinct rewards": len(bits),
    }
    if wide is None:
        wide = bool(_excess(sizes, _NARROW_LIMITS))
    excess = _excess(sizes, _WIDE_LIMITS if wide else _NARROW_LIMITS)
    if excess:
        raise ValueError(f"too large for the {16 if wide else 8}-byte record: {excess}")

    records = np.empty(len(dataset), WIDE if wide else NARROW)
    records["state_action"] = table["state"] * np.int32(info.num_actions) + table["action"]
    records["next_row"] = table["next_state"] * np.int32(info.num_actions)
    records["next_action"] = table["next_action"]
    records["flags"] = (
        (table["discount"] == 0) * np.uint8(TERMINATED)
        + np.asarray(dataset.truncated) * np.uint8(TRUNCATED)
        + np.asarray(dataset.episode_start) * np.uint8(EPISODE_START)
    )
    if wide:
        records["reward"] = table["reward"]
        return PackedDataset(records, None, info)
    rewards = bits.view(np.float32)
    ascending = np.argsort(rewards, kind="stable")
    codes = np.argsort(ascending).astype(np.int16)
    records["reward"] = codes[np.searchsorted(bits, table["reward"].view(np.uint32))]
    return PackedDataset(records, rewards[ascending], info)


def unpack(packed: PackedDataset) -> TabularDataset:
    """Unpack a dataset, the inverse of `pack`.

    Args:
        packed: from `pack`.

    Returns:
        The dataset, bit-identical to the one that was packed.
    """
    records, num_actions = packed.records, packed.info.num_actions
    reward = records["reward"]
    if records.dtype != WIDE:
        assert packed.codebook is not None
        reward = packed.codebook[reward]
    state, action = np.divmod(records["state_action"], num_actions)
    flags = records["flags"]
    return TabularDataset(
        TabularTransition(
            state=jnp.asarray(state.astype(np.int32)),
            action=jnp.asarray(action.astype(np.int32)),
            reward=jnp.asarray(reward.astype(np.float32)),
            next_state=jnp.asarray((records["next_row"] // num_actions).astype(np.int32)),
            discount=jnp.asarray(((flags & TERMINATED) == 0).astype(np.float32)),
            next_action=jnp.asarray(records["next_action"].astype(np.int32)),
        ),
        jnp.asarray(np.cumsum((flags & EPISODE_START) != 0, dtype=np.int32) - np.int32(1)),
        packed.info,
    )


def _excess(sizes: dict[str, int], limits: dict[str, int]) -> str:
    return ", ".join(
        f"{name} is {sizes[name]}, at most {limit}"
        for name, limit in limits.items()
        if sizes[name] > limit
    )
