"""Datasets of finite MDPs: collection, validation, storage, import and packing."""

from accel_rl.datasets.arrays import from_arrays
from accel_rl.datasets.collection import collect, rollout
from accel_rl.datasets.dataset import DatasetError, DatasetInfo, TabularDataset, validate
from accel_rl.datasets.minari import from_minari
from accel_rl.datasets.packing import PackedDataset, pack, unpack
from accel_rl.datasets.policies import (
    Policy,
    deterministic_policy,
    epsilon_greedy_policy,
    random_policy,
    stochastic_policy,
)
from accel_rl.datasets.storage import load, save
from accel_rl.datasets.text import load_text

__all__ = [
    "DatasetError",
    "DatasetInfo",
    "PackedDataset",
    "Policy",
    "TabularDataset",
    "collect",
    "deterministic_policy",
    "epsilon_greedy_policy",
    "from_arrays",
    "from_minari",
    "load",
    "load_text",
    "pack",
    "random_policy",
    "rollout",
    "save",
    "stochastic_policy",
    "unpack",
    "validate",
]
