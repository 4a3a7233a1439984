"""Replay buffers with uniform, prioritised, rank-based and AMPER sampling, updated in place.

Each sample carries the sampling probabilities of its items (estimates for AMPER).
"""

from accel_rl.replay.amper import amper_fr
from accel_rl.replay.amper_k import amper_k
from accel_rl.replay.index import Index, IndexState, importance_weights, make_index
from accel_rl.replay.make import SAMPLERS, make
from accel_rl.replay.n_step import NStep, n_step
from accel_rl.replay.newest import newest
from accel_rl.replay.priorities import sequence_priority, td_priority
from accel_rl.replay.prioritised import prioritised
from accel_rl.replay.rank_based import rank_based
from accel_rl.replay.replay import Replay, ReplayState, after, compose
from accel_rl.replay.ring import Ring
from accel_rl.replay.sampler import MakeSampler, Sampler, Span
from accel_rl.replay.sharded import shard, whole_batch
from accel_rl.replay.store import Store, StoreState, make_store
from accel_rl.replay.uniform import uniform
from accel_rl.replay.vault import Vault

__all__ = [
    "SAMPLERS",
    "Index",
    "IndexState",
    "MakeSampler",
    "NStep",
    "Replay",
    "ReplayState",
    "Ring",
    "Sampler",
    "Span",
    "Store",
    "StoreState",
    "Vault",
    "after",
    "amper_fr",
    "amper_k",
    "compose",
    "importance_weights",
    "make",
    "make_index",
    "make_store",
    "n_step",
    "newest",
    "prioritised",
    "rank_based",
    "sequence_priority",
    "shard",
    "td_priority",
    "uniform",
    "whole_batch",
]
