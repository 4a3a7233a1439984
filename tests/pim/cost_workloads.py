"""The machine, the rules and the work of a DPU that tests of the cost model share."""

from accel_rl.pim import cost
from pim_emu.machine import load_machine

MACHINE = load_machine()
RULES = ("q_learning", "sarsa", "sarsa_epsilon_greedy", "expected_sarsa", "double_q_learning")


def workload(rows=(10_000,), num_states=16, num_actions=4, **fields):
    """Work of one DPU for each of `rows`."""
    return cost.DpuWorkload(tuple(rows), num_states, num_actions, **fields)


def occupied(size):
    """Cycles of the engine: 8 bytes as in random reads at 73 MB/s, then half a cycle a byte."""
    return 8 * 350e6 / 73e6 + (size - 8) / 2
