"""PEARL's performance model and search, the baseline for other models.

Source: the artifact `CatherineMeng/HeteroRL`, its files `SysConfig/SysCon.py` (both steps) and
`PerfPopulator.py` (the co-located rule). We had no access to the full text of the paper (CF'24, DOI
10.1145/3649153.3649193), so nothing here is quoted from it.

Step 1 places computation, exhaustively over pairs of devices (d_RM, d_L):

    T_itr = sample(d_RM) + max(update(d_RM) + insert(d_RM), learn(d_L))

with the co-located times where d_RM = d_L. Step 2 then places Data Storage where its traffic with
Learner, Actors and Replay Manager takes the least time. Both steps break ties by the table's order.

**Co-located times.** A row may state them, as the artifact's demonstration table does. Otherwise
they follow from the kind of device. A CPU or GPU serialises the tasks: x_co = learn + x for all
four tasks. On an FPGA the two are separate circuits: x_co = x. As in the artifact's program, the
rule also applies to `learn` itself (2 learn). Reading learn_co = learn would change no iteration
time, because update_co + insert_co >= 2 learn is the greater side of the max either way. A serial
device thus pays for learning three times in T_itr. The artifact's model is pessimistic about
co-location; it is kept as it is.

**One departure.** The artifact divides the index traffic of the Replay Manager, counted in words,
by a bandwidth in GB per ms, and all other traffic in GB. This unit error decides where Data Storage
goes. Here every amount is in bytes.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal, get_args

from accel_rl.arguments import one_of, whole, within

Kind = Literal["cpu", "gpu", "fpga"]

_WORD = 4  # bytes: float32 and int32


@dataclasses.dataclass(frozen=True)
class TaskSeconds:
    """Seconds of one call of each task on one device, each for its whole batch.

    Attributes:
      insert: insertion of the insertion batch into the Replay Manager.
      sample: sampling of the training batch's indices.
      update: update of the training batch's priorities.
      learn: one training step.
    """

    insert: float
    sample: float
    update: float
    learn: float

    def __post_init__(self) -> None:
        for name, seconds in dataclasses.asdict(self).items():
            within(name, seconds, "[0, inf)")


@dataclasses.dataclass(frozen=True)
class PearlRow:
    """Row of the profile table: one device.

    Attributes:
      kind: selects the co-located rule.
      alone: seconds with Replay Manager and Learner on different devices.
      stated: co-located seconds, if stated; None applies the rule.
    """

    kind: Kind
    alone: TaskSeconds
    stated: TaskSeconds | None = None

    def __post_init__(self) -> None:
        one_of("kind", self.kind, get_args(Kind))

    @property
    def co_located(self) -> TaskSeconds:
        """Seconds with Replay Manager and Learner on this device; see the module docstring."""
        if self.stated is not None:
            return self.stated
        if self.kind == "fpga":
            return self.alone
        learn = self.alone.learn
        return TaskSeconds(**{k: learn + x for k, x in dataclasses.asdict(self.alone).items()})


@dataclasses.dataclass(frozen=True)
class PearlLink:
    """Connection between two devices, or within one device."""

    latency: float  # seconds
    bandwidth: float  # bytes per second

    def __post_init__(self) -> None:
        within("latency", self.latency, "[0, inf)")
        within("bandwidth", self.bandwidth, "(0, inf]")

    def seconds(self, amount: float) -> float:
        """Return modelled seconds to move `amount` bytes: latency + amount / bandwidth."""
        return self.latency + amount / self.bandwidth


@dataclasses.dataclass(frozen=True)
class PearlWorkload:
    """Sizes of an algorithm that PEARL's model reads."""

    train_batch: int  # transitions of one training step: B_train
    insert_batch: int  # transitions of one insertion: B_ins
    state_size: int  # words of an observation: S
    action_size: int  # words of an action: A; the artifact takes the number of discrete actions

    def __post_init__(self) -> None:
        for name, size in dataclasses.asdict(self).items():
            whole(name, size, 1)

    @property
    def learner_bytes(self) -> int:
        """C_L: two states, action, reward, termination and weight of each trained sample."""
        return self.train_batch * (2 * self.state_size + self.action_size + 3) * _WORD

    @property
    def actors_bytes(self) -> int:
        """C_A: two states, action, reward and termination of each inserted transition."""
        return self.insert_batch * (2 * self.state_size + self.action_size + 2) * _WORD

    @property
    def replay_manager_bytes(self) -> int:
        """C_RM: one index of each trained sample."""
        return self.train_batch * _WORD


@dataclasses.dataclass(frozen=True)
class PearlMapping:
    """Result of PEARL's composer: the device of each role, with modelled figures."""

    replay_manager: str
    learner: str
    data_storage: str
    modelled_iteration_seconds: float  # T_itr
    modelled_samples_per_second: float  # trained: B_train / T_itr, inf where T_itr is 0
    modelled_traffic_seconds: Mapping[str, float]  # of step 2, for Data Storage on each device


def modelled_iteration_seconds(
    table: Mapping[str, PearlRow], replay_manager: str, learner: str
) -> float:
    """Return T_itr of step 1, in seconds, for two devices (`SysCon.py`, `compute_mapping`)."""
    together = replay_manager == learner
    manager = table[replay_manager].co_located if together else table[replay_manager].alone
    learning = table[learner].co_located if together else table[learner].alone
    return manager.sample + max(manager.update + manager.insert, learning.learn)


def modelled_traffic_seconds(
    links: Mapping[tuple[str, str], PearlLink], storage: str, other: str, amount: float, host: str
) -> float:
    """Return the seconds to move `amount` bytes between Data Storage and one other role.

    Traffic of two accelerators passes through the host and pays for both hops (`SysCon.py`,
    `getbwkey`).

    Args:
      links: by pair of devices, in either order; `(d, d)` is within a device.
      storage: Data Storage's device.
      other: the other role's device.
      amount: bytes.
      host: the CPU that connects the accelerators.
    """
    direct = storage == other or host in (storage, other)
    hops = [(storage, other)] if direct else [(host, storage), (host, other)]
    pairs = [(one, two) if (one, two) in links else (two, one) for one, two in hops]
    return sum(links[pair].seconds(amount) for pair in pairs)


def pearl_mapping(
    table: Mapping[str, PearlRow],
    links: Mapping[tuple[str, str], PearlLink],
    workload: PearlWorkload,
    *,
    host: str = "CPU",
) -> PearlMapping:
    """Place Replay Manager and Learner, then Data Storage, in the two steps of PEARL's composer.

    Args:
      table: profile rows by device.
      links: as for `modelled_traffic_seconds`.
      workload: sizes; the table's times are for its batches.
      host: the CPU, which runs the Actors; a device of the table.
    """
    one_of("host", host, table)
    manager, learner = min(
        ((manager, learner) for manager in table for learner in table),
        key=lambda pair: modelled_iteration_seconds(table, *pair),
    )
    seconds = modelled_iteration_seconds(table, manager, learner)
    parts = (
        (learner, workload.learner_bytes),
        (host, workload.actors_bytes),
        (manager, workload.replay_manager_bytes),
    )
    traffic = {
        device: sum(modelled_traffic_seconds(links, device, *part, host) for part in parts)
        for device in table
    }
    return PearlMapping(
        manager,
        learner,
        min(traffic, key=lambda device: traffic[device]),
        seconds,
        workload.train_batch / seconds if seconds else math.inf,
        traffic,
    )
