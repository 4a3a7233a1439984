"""Tabular training on processing-in-memory: DPUs train on chunks of a log, the host merges tables.

chunks = pim.partition(dataset.transitions, num_dpus, num_states, num_actions)
result = pim.train(chunks, rule=tabular.q_learning(), schedule=pim.MergeSchedule(passes=100))
"""

from accel_rl.pim import cost, match, modelled, upmem
from accel_rl.pim.agents import AgentsResult, agent_chunks, train_agents
from accel_rl.pim.backends import (
    Backend,
    cpu_backend,
    jax_backend,
    select_backend,
    upmem_backend,
)
from accel_rl.pim.merge import MERGES, SWIFTRL, MergeSchedule, merge_tables
from accel_rl.pim.partition import Chunks, chunk_lengths, partition
from accel_rl.pim.partition_stream import train_streamed
from accel_rl.pim.train import TrainResult, train
from pim_emu import Machine, available_machines, load_machine

__all__ = [
    "MERGES",
    "SWIFTRL",
    "AgentsResult",
    "Backend",
    "Chunks",
    "Machine",
    "MergeSchedule",
    "TrainResult",
    "agent_chunks",
    "available_machines",
    "chunk_lengths",
    "cost",
    "cpu_backend",
    "jax_backend",
    "load_machine",
    "match",
    "merge_tables",
    "modelled",
    "partition",
    "select_backend",
    "train",
    "train_agents",
    "train_streamed",
    "upmem",
    "upmem_backend",
]
