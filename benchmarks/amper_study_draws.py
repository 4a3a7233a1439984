"""What `amper_study.py` draws, and what it makes of the draws."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import replay

BATCH = 64
BINS = 50
UNIFORM, PER = "uniform replay", "PER, sum tree"
AMPER_K, EXACT = "AMPER-k", "AMPER-fr exact"
PREFIX, DITHERED = "AMPER-fr prefix", "AMPER-fr dithered"
PLAIN = (UNIFORM, PER)  # without groups or candidates
AMPER = (AMPER_K, EXACT, PREFIX, DITHERED)
SYSTEMS: dict[str, Callable[[int], replay.MakeSampler]] = {
    UNIFORM: lambda groups: replay.uniform(),
    PER: lambda groups: replay.prioritised("tree"),
    AMPER_K: lambda groups: replay.amper_k(groups=groups),
    EXACT: lambda groups: replay.amper_fr("exact", groups=groups),
    PREFIX: lambda groups: replay.amper_fr("prefix", groups=groups),
    DITHERED: lambda groups: replay.amper_fr("dithered", groups=groups),
}


class Setting(NamedTuple):
    """One point of the study; groups and ratio are 0 where the system has none."""

    law: str
    size: int  # N, items in the memory, which is full
    groups: int = 0  # m
    ratio: float = 0.0  # wanted size of the candidate set over N

    @property
    def case(self) -> str:
        """The name in records."""
        text = f"{self.law} priorities, {self.size:,} items"
        return text if not self.groups else f"{text}, m = {self.groups}, CSP ratio {self.ratio:g}"


def with_new(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return what training leaves: small errors, and 1 % of items that nothing has drawn yet."""
    values = np.abs(rng.normal(size=size))
    values[: size // 100] = 40
    return values


def half_new(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return what a training begins with: half of the items have the initial priority."""
    values = 0.3 * np.abs(rng.normal(size=size))
    values[: size // 2] = 1
    return values


LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda rng, n: rng.uniform(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "|normal|": lambda rng, n: np.abs(rng.normal(size=n)),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "|normal| and 1 % new": with_new,
    "|normal| and half new": half_new,
}


@dataclasses.dataclass(frozen=True)
class Priorities:
    """Priorities that follow a law, their exact probabilities, and the parts they are counted in.

    Attributes:
      values: [N] float32, above 0; the exponent alpha is 1.
      exact: [N] float64, p_i / sum p.
      bin: [N] int, which of `BINS` parts of [0, highest], equally wide, holds each.
      part: [N] int, which of `BINS` parts of the items in order, equally many, each is in.
      highest: [N] bool, whether each is among the 1 % with the highest priorities.
    """

    values: np.ndarray
    exact: np.ndarray
    bin: np.ndarray
    part: np.ndarray
    highest: np.ndarray

    @property
    def edges(self) -> np.ndarray:
        """[BINS + 1], of the bins."""
        return np.linspace(0, float(self.values.max()), BINS + 1)


@functools.cache
def priorities(law: str, size: int) -> Priorities:
    """Return the same priorities at every call."""
    drawn = LAWS[law](np.random.default_rng(7), size)
    values = np.maximum(drawn, 1e-6).astype(np.float32)
    weights = values.astype(np.float64)
    number = np.minimum((weights / weights.max() * BINS).astype(int), BINS - 1)
    rank = np.empty(size, int)
    rank[np.argsort(values, kind="stable")] = np.arange(size)
    part, highest = rank * BINS // size, rank >= size - size // 100
    return Priorities(values, weights / weights.sum(), number, part, highest)


@functools.cache
def _compiled(system: str, size: int, groups: int) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """Draws from a memory of so many items; laws, ratios and keys share what was compiled."""
    memory = replay.make(np.int32(0), size, BATCH, SYSTEMS[system](groups))

    @jax.jit
    def draw(
        values: jax.Array, hyperparameters: dict[str, Any], keys: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        state = memory.init(**hyperparameters)
        state = memory.add(state, jnp.arange(size, dtype=jnp.int32), values)

        def call(_: None, key: jax.Array) -> tuple[None, tuple[jax.Array, jax.Array]]:
            drawn = memory.sample(state, key)
            return None, (drawn.indices, drawn.probabilities)

        return jax.lax.scan(call, None, keys)[1]

    return draw


@dataclasses.dataclass(frozen=True)
class Drawn:
    """What many calls drew.

    Attributes:
      divergence: KL of the exact law of priorities to the drawn one, over bins of equal width.
      divergence_by_part: the same, over parts of equally many items.
      coverage: [windows], part of the items that N successive draws hold.
      candidates: how many items a call drew from, over N; from repeated items in batches, and
        infinite where there are none.
      weight_errors: [BINS] of each part, error of importance-sampling weights.
      unknown: part of the draws whose probability was given as 0, so that no weight is made of it.
      frequency: [BINS] mean over a part's items of how often a draw gives one.
      estimate: [BINS] what `Sample.probabilities` say of it.
      bins: [BINS] part of the draws in each bin.
      highest: how often the 1 % of the items with the highest priorities are drawn, over PER's.
    """

    divergence: float
    divergence_by_part: float
    coverage: np.ndarray
    candidates: float
    weight_errors: np.ndarray
    unknown: float
    frequency: np.ndarray
    estimate: np.ndarray
    bins: np.ndarray
    highest: float


def draw(system: str, setting: Setting, calls: int) -> Drawn:
    """Draw so many batches, and count."""
    known = priorities(setting.law, setting.size)
    hyperparameters: dict[str, Any] = {}
    if system != UNIFORM:
        hyperparameters["alpha"] = np.float32(1)
    if system in AMPER:
        hyperparameters["csp_ratio"] = np.float32(setting.ratio)
    keys = jax.random.split(jax.random.key(11), calls)
    run = _compiled(system, setting.size, setting.groups)
    slots, probabilities = (np.asarray(x) for x in run(known.values, hyperparameters, keys))
    return count(known, slots, probabilities.astype(np.float64))


def count(known: Priorities, slots: np.ndarray, probabilities: np.ndarray) -> Drawn:
    """Compute statistics of draws [calls, BATCH] and of their probabilities."""
    size, flat = known.values.size, slots.ravel()
    bins = np.bincount(known.bin[flat], minlength=BINS)
    parts = np.bincount(known.part[flat], minlength=BINS)
    items = np.bincount(known.part, minlength=BINS)
    # With right probabilities, the sum over draws of 1 / p is the number of items times draws.
    given = probabilities.ravel()
    drawn = given > 0
    inverse = np.bincount(known.part[flat[drawn]], 1 / given[drawn], minlength=BINS)
    share = inverse / inverse.sum() * size / items
    with np.errstate(invalid="ignore"):
        estimate = np.bincount(known.part[flat[drawn]], minlength=BINS) / inverse
    return Drawn(
        divergence(np.bincount(known.bin, known.exact, BINS), bins),
        divergence(np.bincount(known.part, known.exact, BINS), parts),
        coverage(slots, size),
        candidates(slots, size),
        np.abs(share - 1),
        float(1 - drawn.mean()),
        parts / items / flat.size,
        estimate,
        bins / flat.size,
        float(known.highest[flat].mean() / known.exact[known.highest].sum()),
    )


def divergence(exact: np.ndarray, counts: np.ndarray) -> float:
    """KL(exact || counted) in nats; half a draw is added to each bin that can have any."""
    held = exact > 0
    smooth = counts[held] + 0.5
    return float((exact[held] * np.log(exact[held] / (smooth / smooth.sum()))).sum())


def coverage(slots: np.ndarray, size: int) -> np.ndarray:
    """Return the part of the items that is drawn in windows of as many draws as there are items."""
    calls = -(-size // slots.shape[1])
    windows = slots[: slots.shape[0] // calls * calls].reshape(-1, calls * slots.shape[1])
    return np.array([np.unique(window[:size]).size / size for window in windows])


def candidates(slots: np.ndarray, size: int) -> float:
    """One over the chance that two items of a batch are the same, over the number of items."""
    ordered = np.sort(slots, axis=1)
    same = 0
    for apart in range(1, slots.shape[1]):
        equal = np.count_nonzero(ordered[:, apart:] == ordered[:, :-apart])
        if not equal:
            break
        same += equal
    pairs = slots.shape[0] * slots.shape[1] * (slots.shape[1] - 1) / 2
    return pairs / same / size if same else np.inf
