"""Modelled seconds of launches of a set of DPUs, and of transfers between the host and their MRAM.

Bandwidths are known for a single DPU and for a full rank whose DPUs are served in parallel. A
partly filled rank costs as much as a full rank, or as its DPUs one by one if that is less; both are
upper bounds. Ranks follow each other, `Machine.overlapping_ranks` at a time.
"""

from pim_emu.arguments import whole
from pim_emu.machine import Machine, check_machine


def push_seconds(machine: Machine, dpus: int, size: int) -> float:
    """Return the seconds to send `size` bytes to each of `dpus` DPUs, from one buffer for each.

    Args:
      machine: from `load_machine`.
      dpus: number of DPUs.
      size: bytes for each DPU.

    Raises:
      TypeError: if an argument is of another type.
      ValueError: if a number is out of the machine's range.
    """
    _check(machine, dpus, size)
    one, rank = machine.to_dpu_bandwidth, machine.to_rank_bandwidth
    return _parallel_seconds(machine, dpus, size, one, rank)


def pull_seconds(machine: Machine, dpus: int, size: int) -> float:
    """Return the seconds to fetch `size` bytes from each of `dpus` DPUs.

    Args:
      machine: from `load_machine`.
      dpus: number of DPUs.
      size: bytes for each DPU.

    Raises:
      TypeError, ValueError: as `push_seconds`.
    """
    _check(machine, dpus, size)
    one, rank = machine.from_dpu_bandwidth, machine.from_rank_bandwidth
    return _parallel_seconds(machine, dpus, size, one, rank)


def broadcast_seconds(machine: Machine, dpus: int, size: int) -> float:
    """Return the seconds to send the same `size` bytes to `dpus` DPUs; ranks count as full.

    Args:
      machine: from `load_machine`.
      dpus: number of DPUs.
      size: bytes for each DPU.

    Raises:
      TypeError, ValueError: as `push_seconds`.
    """
    _check(machine, dpus, size)
    seconds = machine.dpus_per_rank * size / machine.broadcast_bandwidth
    return seconds * -(-_ranks(machine, dpus) // machine.overlapping_ranks)


def launch_seconds(machine: Machine, dpus: int) -> float:
    """Return the seconds of a synchronous launch beyond the cycles of its slowest DPU.

    The host starts the ranks and polls them until the last one is done.

    Args:
      machine: from `load_machine`.
      dpus: number of DPUs.

    Raises:
      TypeError, ValueError: as `push_seconds`.
    """
    _check(machine, dpus, 0)
    return machine.launch_seconds + _ranks(machine, dpus) * machine.launch_rank_seconds


def _ranks(machine: Machine, dpus: int) -> int:
    """Return the ranks of `dpus` DPUs, the last one partly filled."""
    return -(-dpus // machine.dpus_per_rank)


def _check(machine: Machine, dpus: int, size: int) -> None:
    check_machine(machine)
    whole("dpus", dpus, 0, machine.total_dpus)
    whole("size", size, 0)


def _parallel_seconds(
    machine: Machine, dpus: int, size: int, dpu_bandwidth: float, rank_bandwidth: float
) -> float:
    def rank_seconds(members: int) -> float:
        in_turn = members * size / dpu_bandwidth
        return min(in_turn, machine.dpus_per_rank * size / rank_bandwidth)

    full, rest = divmod(dpus, machine.dpus_per_rank)
    rounds, started = divmod(full, machine.overlapping_ranks)
    if started:  # the rank that is partly filled joins a round
        return (rounds + 1) * rank_seconds(machine.dpus_per_rank)
    return rounds * rank_seconds(machine.dpus_per_rank) + rank_seconds(rest)
