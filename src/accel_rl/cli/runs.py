"""A tabular run: dataset -> chunks -> training on emulated DPUs -> exact return, modelled seconds.

`accel-rl train` and `accel-rl demo` share it.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from accel_rl import pim, tabular
from accel_rl.datasets import TabularDataset
from accel_rl.pim import Machine, modelled
from accel_rl.types import MDP, Array

_SEGMENTS = 10  # a training is cut into about so many calls, between which Ctrl-C is heard

LONGEST_EPISODE = 1000  # steps, for environments that set no limit themselves (CliffWalking)

Probe = Callable[[Array], Array]


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that decides a run, beside its data. Names and numbers only: it is written as JSON."""

    rule: str = "q_learning"
    numerics: str = "fp32"
    order: str = "SEQ"
    stride: int = 4
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
    seed: int = 0

    @property
    def kernel(self) -> modelled.Kernel:
        """What the cost model needs of it."""
        return modelled.Kernel(
            rule=self.rule,
            numerics=self.numerics,
            order=tabular.make_order(self.order, self.stride),
            target_block=self.target_block,
            tasklets=self.tasklets,
            passes=self.passes,
            period=self.period,
            merge=self.merge,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a run learned, on the host."""

    tables: np.ndarray  # [K, S, A] in the numerics' dtype
    values: np.ndarray  # [S, A] float32
    passes: np.ndarray  # [M] int, passes done at each merge
    returns: np.ndarray | None  # [M] float32, the greedy policy's exact returns, if probed
    effective: dict[str, float]  # alpha, gamma, epsilon as the numerics represent them
    measured_seconds: float  # of the emulation on this machine, compilation included


def chunks_of(dataset: TabularDataset, dpus: int) -> pim.Chunks:
    """The dataset, split over `dpus` DPUs.

    Raises:
        ValueError: there are fewer rows than DPUs.
    """
    info = dataset.info
    return pim.partition(dataset.transitions, dpus, info.num_states, info.num_actions)


def horizon_of(mdp: MDP) -> int:
    """Steps after which an episode is cut when policies are scored."""
    return LONGEST_EPISODE if mdp.time_limit is None else mdp.time_limit


def return_probe(mdp: MDP, horizon: int) -> Probe:
    """A function of action values [S, A]: the exact return per episode of their greedy policy.

    Make it once for many trainings: each new function is compiled anew.
    """

    def probe(values: Array) -> Array:
        return tabular.episode_return(mdp, tabular.greedy_policy(values), horizon)

    return probe


def train(
    chunks: pim.Chunks,
    settings: Settings,
    probe: Probe | None = None,
    on_passes: Callable[[int], Any] = lambda passes: None,
    *,
    segmented: bool = True,
    machine: Machine | None = None,
) -> Outcome:
    """Trains, in calls of equal length so that each is compiled once.

    The result does not depend on the cuts: each falls on a merge, where the next call goes on.

    Args:
        chunks: from `chunks_of`.
        settings: what to train and how.
        probe: from `return_probe`; None records no returns.
        on_passes: told after each call how many passes it did.
        segmented: False trains in a single call, without the cost of loading the DPUs again.
        machine: what the run must fit, and what backend "upmem" emulates.

    Returns:
        The outcome.

    Raises:
        ValueError: a setting is out of range, or the backend is absent.
    """
    rule = tabular.make_rule(settings.rule, tabular.make_numerics(settings.numerics))
    run = functools.partial(
        pim.train,
        chunks,
        tabular.Hyperparameters(settings.alpha, settings.gamma, settings.epsilon),
        settings.seed,
        rule=rule,
        order=tabular.make_order(settings.order, settings.stride),
        target_block=settings.target_block,
        backend=settings.backend,
        probe=probe,
        machine=machine,
        tasklets=settings.tasklets,
    )
    started, done = time.perf_counter(), 0
    tables: Array | None = None
    history: list[Array] = []
    lengths = segments(settings.passes, settings.period) if segmented else [settings.passes]
    for length in lengths:
        schedule = pim.Schedule(length, settings.period, settings.merge)
        result = run(schedule=schedule, initial=tables, first_pass=jnp.uint32(done))
        tables, done = result.tables, done + length
        history += [] if probe is None else [result.history]
        result.tables.block_until_ready()
        on_passes(length)
    effective = dataclasses.asdict(result.effective)
    return Outcome(
        tables=np.asarray(tables),
        values=np.asarray(result.values),
        passes=merge_passes(settings.passes, settings.period),
        returns=np.concatenate(history) if history else None,
        effective={name: round(float(rate), 7) for name, rate in effective.items()},
        measured_seconds=time.perf_counter() - started,
    )


def segments(passes: int, period: int) -> list[int]:
    """Passes of each call: about ten equal calls of whole periods, then one with what is left.

    Each length is compiled for itself, so a number of calls that leaves nothing over is preferred.

    Raises:
        ValueError: a number is below 1.
    """
    for name, value in (("passes", passes), ("period", period)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
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
    """[M] int: passes done at each merge, the last included."""
    return np.append(np.arange(period, passes, period), passes)


def record(
    environment: str,
    settings: Settings,
    episode_return: float | None,
    modelled_seconds: dict[str, float],
) -> dict[str, Any]:
    """A run in one line of `results.json`."""
    return {
        "environment": environment,
        "rule": settings.rule,
        "order": settings.order,
        "numerics": settings.numerics,
        "merge": settings.merge,
        "dpus": settings.dpus,
        "passes": settings.passes,
        "period": settings.period,
        "episode_return": episode_return,
        "modelled_seconds": modelled_seconds,
    }
