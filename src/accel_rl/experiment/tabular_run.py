"""Tabular runs: dataset -> chunks -> training on emulated DPUs -> exact return, modelled seconds.

`accel-rl train LOG` and `accel-rl demo` share this module.
"""

import dataclasses
import hashlib
import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from accel_rl import pim, tabular
from accel_rl.arguments import whole
from accel_rl.datasets import TabularDataset
from accel_rl.datasets.dataset import columns
from accel_rl.io.values import Json
from accel_rl.pim import Machine, modelled
from accel_rl.pim.partition import LANES
from accel_rl.pim.partition_stream import check_streamable
from accel_rl.types import MDP, Array, ArrayLike

_SEGMENTS = 10  # approximate number of calls in a training; Ctrl-C takes effect between calls

LONGEST_EPISODE = 1000  # steps, for environments without a time limit (CliffWalking)

Probe = Callable[[Array], Array]


@dataclasses.dataclass(frozen=True)
class TabularSettings:
    """Settings of a run, except its data; names and numbers only, as they are written as JSON."""

    rule: str = "q_learning"
    numerics: str = "fp32"
    order: str = "SEQ"
    stride: int = 4
    by: str = "time"  # or "owner", see `pim.partition`
    dpus: int = 2000
    passes: int = 100
    period: int = 1
    merge: str = "visits"
    alpha: float = 0.1
    gamma: float = 0.95
    epsilon: float = 0.1
    target_block: int = 128
    tasklets: int = 16
    backend: str = "auto"
    group_size: int | None = None  # DPUs whose rows are in memory at once; None: all
    seed: int = 0

    @property
    def update_rule(self) -> tabular.TabularRule:
        """Update rule, with the numerics."""
        return tabular.make_rule(self.rule, tabular.make_numerics(self.numerics))

    @property
    def rates(self) -> tabular.Hyperparameters:
        """Rates of the rule."""
        return tabular.Hyperparameters(self.alpha, self.gamma, self.epsilon)

    @property
    def kernel(self) -> modelled.KernelSettings:
        """Settings that the cost model depends on."""
        return modelled.KernelSettings(
            rule=self.rule,
            numerics=self.numerics,
            order=tabular.make_order(self.order, self.stride),
            target_block=self.target_block,
            tasklets=self.tasklets,
            passes=self.passes,
            period=self.period,
            merge=self.merge,
            lanes=LANES if self.by == "owner" else 0,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """Results of a run, on the host."""

    tables: np.ndarray  # [K, S, A] in the numerics' dtype
    values: np.ndarray  # [S, A] float32
    passes: np.ndarray  # [M] int, passes done at each merge
    returns: np.ndarray | None  # [M] float32, the greedy policy's exact returns; None unless probed
    effective: dict[str, float]  # alpha, gamma, epsilon as the numerics represent them
    measured_seconds: float  # of the emulation on this machine, compilation included


def describe(dataset: TabularDataset) -> dict[str, Json]:
    """Return a dataset's metadata, number of transitions, and a SHA-256 of its columns."""
    digest = hashlib.sha256()
    for column in columns(dataset).values():
        digest.update(np.ascontiguousarray(column, column.dtype.newbyteorder("<")).data)
    info = dataclasses.asdict(dataset.info)
    return {**info, "rows": len(dataset), "sha256": digest.hexdigest()}


def chunks_of(dataset: TabularDataset, dpus: int, by: str = "time") -> pim.Chunks:
    """Split a dataset over `dpus` DPUs, by time or by owner."""
    info = dataset.info
    return pim.partition(dataset.transitions, dpus, info.num_states, info.num_actions, by)


def check_groups(settings: TabularSettings) -> None:
    """Check, before any work, that groups of DPUs can take turns if the settings want it.

    Raises:
        ValueError: they cannot, by owner, on backend "upmem", or for a random choice.
    """
    if settings.group_size is None:
        return
    if settings.by != "time":
        raise ValueError(f"groups of DPUs take turns only by time, got by {settings.by}")
    if settings.backend == "upmem":
        raise ValueError(
            "groups of DPUs take turns only where DPUs do not keep their rows, got backend upmem"
        )
    check_streamable(settings.update_rule, settings.kernel.order)


def horizon_of(mdp: MDP) -> int:
    """Return the number of steps after which episodes are truncated in evaluation."""
    return LONGEST_EPISODE if mdp.time_limit is None else mdp.time_limit


def return_probe(mdp: MDP, horizon: int) -> Probe:
    """Make a function from action values [S, A] to the exact return of their greedy policy.

    Make it once for many trainings: each new function triggers recompilation.
    """

    def probe(values: Array) -> Array:
        return tabular.episode_return(mdp, tabular.greedy_policy(values), horizon)

    return probe


def train(
    chunks: pim.Chunks,
    settings: TabularSettings,
    probe: Probe | None = None,
    on_passes: Callable[[int], object] = lambda passes: None,
    *,
    segmented: bool = True,
    machine: Machine | None = None,
) -> Outcome:
    """Train in calls of equal length, which share a compiled program.

    The result does not depend on the segmentation: each call ends at a merge, and the next
    continues from the merged tables.

    Args:
        chunks: from `chunks_of`.
        settings: of the run.
        probe: from `return_probe`; None records no returns.
        on_passes: called after each call with its number of passes.
        segmented: False trains in a single call, which loads the DPUs only once.
        machine: whose limits the run must meet, and which backend "upmem" emulates.

    Returns:
        The outcome.
    """
    started, done = time.perf_counter(), 0
    tables: Array | None = None
    history: list[Array] = []
    lengths = segments(settings.passes, settings.period) if segmented else [settings.passes]
    for length in lengths:
        result = pim.train(
            chunks,
            settings.rates,
            settings.seed,
            schedule=pim.MergeSchedule(length, settings.period, settings.merge),
            initial=tables,
            first_pass=jnp.uint32(done),
            probe=probe,
            machine=machine,
            **_common(settings),
        )
        tables, done = result.tables, done + length
        history += [] if probe is None else [result.history]
        result.tables.block_until_ready()
        on_passes(length)
    returns = np.concatenate(history) if history else None
    return _outcome(settings, result, returns, time.perf_counter() - started)


def train_groups(
    dataset: TabularDataset,
    settings: TabularSettings,
    probe: Probe | None = None,
    on_passes: Callable[[int], object] = lambda passes: None,
    *,
    machine: Machine | None = None,
) -> Outcome:
    """Train as `train`, with the rows of `settings.group_size` DPUs in memory at once."""
    started, info = time.perf_counter(), dataset.info
    assert settings.group_size is not None
    result = pim.train_streamed(
        dataset.transitions,
        settings.dpus,
        info.num_states,
        info.num_actions,
        settings.rates,
        schedule=pim.MergeSchedule(settings.passes, settings.period, settings.merge),
        group_size=settings.group_size,
        probe=probe,
        on_merge=on_passes,
        machine=machine,
        **_common(settings),
    )
    return _outcome(settings, result, result.history, time.perf_counter() - started)


def _common(settings: TabularSettings) -> dict[str, Any]:
    """Return the arguments that both kinds of training take alike."""
    return {
        "rule": settings.update_rule,
        "order": settings.kernel.order,
        "target_block": settings.target_block,
        "backend": settings.backend,
        "tasklets": settings.tasklets,
    }


def _outcome(
    settings: TabularSettings,
    result: pim.TrainResult,
    returns: ArrayLike | None,
    measured_seconds: float,
) -> Outcome:
    effective = dataclasses.asdict(result.effective)
    return Outcome(
        tables=np.asarray(result.tables),
        values=np.asarray(result.values),
        passes=merge_passes(settings.passes, settings.period),
        returns=None if returns is None else np.asarray(returns),
        effective={name: round(float(rate), 7) for name, rate in effective.items()},
        measured_seconds=measured_seconds,
    )


def segments(passes: int, period: int) -> list[int]:
    """Return the passes of each call: about ten equal calls of whole periods, then the rest.

    Each length is compiled separately, so a number of calls without remainder is preferred.
    """
    for name, value in (("passes", passes), ("period", period)):
        whole(name, value, 1)
    periods = passes // period
    if periods == 0:
        return [passes]
    near = sorted(range(1, 2 * _SEGMENTS), key=lambda count: abs(count - _SEGMENTS))
    even = [count for count in near if periods % count == 0 and count >= _SEGMENTS // 2]
    calls = even[0] if even else min(_SEGMENTS, periods)
    length = periods // calls * period
    rest = passes - calls * length
    return [length] * calls + ([rest] if rest else [])


def merge_passes(passes: int, period: int) -> np.ndarray:
    """Return the number of passes done at each merge, the last included, [M] int."""
    return np.append(np.arange(period, passes, period), passes)


def record(
    environment: str,
    settings: TabularSettings,
    episode_return: float | None,
    modelled_seconds: dict[str, float],
) -> dict[str, Json]:
    """Return the entry of a run in `results.json`."""
    return {
        "environment": environment,
        "rule": settings.rule,
        "order": settings.order,
        "numerics": settings.numerics,
        "merge": settings.merge,
        "by": settings.by,
        "dpus": settings.dpus,
        "passes": settings.passes,
        "period": settings.period,
        "episode_return": episode_return,
        "modelled_seconds": modelled_seconds,
    }
