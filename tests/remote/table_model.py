"""A table of the replay server in plain Python and NumPy: the definition that the C++ must match.

Slots, generations and probabilities agree bit for bit; nothing here is meant to be fast.
"""

import dataclasses
import math

import numpy as np

LEAST_WEIGHT, MOST_WEIGHT = np.float32(1e-28), np.float32(1e28)
PROPOSALS, ROUNDS = 10, 50  # of AMPER: tries for each draw in a round, and most rounds
LEAST_INCLUDED = 1e-6


class Refused(Exception):
    """What was asked for is refused whole; the name of the status is its message."""


@dataclasses.dataclass(frozen=True)
class Config:
    """What a table is, but for its columns."""

    capacity: int
    sampler: str = "prioritised"
    exponent: float = 0.6
    min_size: int = 1
    ratio: tuple[float, float, float] | None = None  # samples per insert, least, most difference
    groups: int = 20
    csp_ratio: float = 0.15
    max_priority: float = math.inf


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A sample."""

    slots: np.ndarray  # uint32 [batch]
    generations: np.ndarray  # uint32 [batch]
    probabilities: np.ndarray  # float64 [batch]
    items: np.ndarray  # int64 [batch]
    size: int
    total: float


def uniforms(seed, first, count):
    """Draws `first` to `first + count - 1` of a seed: multiples of 2^-53 in [0, 1)."""
    with np.errstate(over="ignore"):
        k = np.arange(first + 1, first + count + 1, dtype=np.uint64)
        z = np.uint64(seed) + k * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def slots_of(numbers, size):
    """Uniform numbers as slots below `size`."""
    return np.minimum((numbers * size).astype(np.int64), size - 1)


def weight_of(priority, exponent):
    """priority^exponent as float32, within limits; 0 where the priority is 0."""
    if not priority > 0:
        return np.float32(0)
    try:
        power = math.pow(float(priority), float(np.float32(exponent)))
    except OverflowError:
        power = math.inf
    return np.clip(np.float32(min(power, 1e30)), LEAST_WEIGHT, MOST_WEIGHT)


def running_sums(weights):
    """Levels of the tree from the leaves up: running sums [nodes, 8] over each node's children."""
    sums, levels = weights.astype(np.float64), []
    while not levels or len(sums) > 1:
        padded = np.zeros(-(-len(sums) // 8) * 8)
        padded[: len(sums)] = sums
        levels.append(np.cumsum(padded.reshape(-1, 8), axis=1))
        sums = levels[-1][:, 7]
    return levels


def find(levels, positions):
    """The slots in which positions lie: in each node the first child whose sum is above."""
    at, nodes = positions.copy(), np.zeros(len(positions), np.int64)
    for running in reversed(levels):
        lines = running[nodes]
        at = np.where(at < lines[:, 7], at, np.nextafter(lines[:, 7], 0))
        child = (lines <= at[:, None]).sum(axis=1)
        start = np.take_along_axis(lines, np.maximum(child - 1, 0)[:, None], axis=1)[:, 0]
        at -= np.where(child > 0, start, 0)
        nodes = nodes * 8 + child
    return nodes


def mixed(words):
    """The finaliser of MurmurHash3, of uint32."""
    words = (words ^ (words >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    words = (words ^ (words >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return words ^ (words >> np.uint32(16))


def offsets_of(weights, slots):
    """Offsets that move weights apart, from -1 to 1: a hash of weight and slot."""
    words = mixed(weights.view(np.uint32) ^ (slots.astype(np.uint32) * np.uint32(0x9E3779B1)))
    return (words >> np.uint32(8)) * 2.0**-23 - 1


class AmperSearch:
    """A call's queries: group g finds weights whose place x is near its value."""

    def __init__(self, config, weights, size, total, seed):
        self.groups = config.groups
        self.highest = float(weights.max())
        end = 1 + 1 / self.groups
        ratio = float(np.float32(config.csp_ratio)) * self.highest * end / (2 * (total / size))
        self.reach = min(ratio, 1.0) / self.groups
        self.scale = (1 - self.reach) / end
        values = (np.arange(self.groups) + uniforms(seed, 0, self.groups)) / self.groups
        radius = self.reach * values
        self.low, self.high = values - radius, values + radius

    def places(self, weights, slots):
        """Weights in the range of the groups, [0, 1], moved apart by up to a group."""
        x = weights.astype(np.float64) / self.highest
        return (x + offsets_of(weights, slots) * np.minimum(x, 1 / self.groups)) * self.scale

    def matches(self, weights, slots):
        x = self.places(weights, slots)[:, None]
        return ((self.low <= x) & (x <= self.high)).any(axis=1) & (weights > 0)

    def included(self, weights, slots):
        """Probabilities that a call includes items: 1 - the product over groups of missing them."""
        x = self.places(weights, slots)
        low, high = x / (1 + self.reach), x / max(1 - self.reach, 1e-6)
        missed = np.ones(len(x))
        for g in range(self.groups):
            inside = np.minimum(high, (g + 1) / self.groups) - np.maximum(low, g / self.groups)
            missed *= 1 - np.minimum(np.maximum(inside, 0) * self.groups, 1)
        return np.maximum(1 - missed, LEAST_INCLUDED)


class TableModel:
    """A table whose items are integers."""

    def __init__(self, config: Config):
        self.config = config
        self.items = np.zeros(config.capacity, np.int64)
        self.weights = np.zeros(config.capacity, np.float32)
        self.generations = np.zeros(config.capacity, np.uint32)
        self.cursor = self.size = 0
        self.highest = np.float32(0)
        names = ("inserts", "samples", "updates", "stale", "refused", "capped")
        self.stats = dict.fromkeys(names, 0)

    @property
    def total(self):
        if self.config.sampler == "uniform":
            return float(self.size)
        return float(running_sums(self.weights)[-1][0, 7])

    def can_push(self, count):
        if self.config.ratio is None or self.size + count <= self.config.min_size:
            return True
        per_insert, _, most = self.config.ratio
        return (self.stats["inserts"] + count) * per_insert - self.stats["samples"] <= most

    def can_sample(self, batch):
        if self.size < self.config.min_size or not self.total > 0:
            return False
        if self.config.ratio is None:
            return True
        per_insert, least, _ = self.config.ratio
        return self.stats["inserts"] * per_insert - (self.stats["samples"] + batch) >= least

    def push(self, items, priorities=None):
        count = len(items)
        if not 1 <= count <= self.config.capacity:
            self._refuse("bad_count")
        self._check(priorities)
        if not self.can_push(count):
            raise Refused("retry")
        cap = np.float32(self.config.max_priority)
        fresh = self.highest if self.highest > 0 else min(np.float32(1), cap)
        if priorities is not None:
            self.stats["capped"] += sum(priority > cap for priority in priorities)
            priorities = [min(priority, cap) for priority in priorities]
        for k in range(count):
            given = fresh if priorities is None else priorities[k]
            self.items[self.cursor] = items[k]
            self.weights[self.cursor] = weight_of(given, self.config.exponent)
            again = int(self.generations[self.cursor]) + 1
            self.generations[self.cursor] = again if again < 2**32 else 1
            self.cursor = (self.cursor + 1) % self.config.capacity
        if priorities is not None:
            self.highest = max(self.highest, *priorities)
        self.size = min(self.size + count, self.config.capacity)
        self.stats["inserts"] += count

    def update(self, slots, generations, priorities):
        if len(slots) < 1:
            self._refuse("bad_count")
        self._check(priorities)
        if max(slots) >= self.config.capacity:
            self._refuse("bad_slot")
        applied, cap = 0, np.float32(self.config.max_priority)
        for slot, generation, given in zip(slots, generations, priorities, strict=True):
            if slot < self.size and generation == self.generations[slot]:
                priority = min(given, cap)
                self.stats["capped"] += given > cap
                self.weights[slot] = weight_of(priority, self.config.exponent)
                self.highest = max(self.highest, priority)
                applied += 1
        self.stats["updates"] += applied
        self.stats["stale"] += len(slots) - applied
        return applied, len(slots) - applied

    def sample(self, seed, batch):
        if batch < 1:
            self._refuse("bad_count")
        if not self.can_sample(batch):
            raise Refused("retry")
        draw = {
            "uniform": self._draw_uniform,
            "prioritised": self._draw_prioritised,
            "amper_fr": self._draw_amper,
        }
        slots, probabilities = draw[self.config.sampler](seed, batch)
        self.stats["samples"] += batch
        return Drawn(
            slots.astype(np.uint32),
            self.generations[slots],
            probabilities,
            self.items[slots],
            self.size,
            self.total,
        )

    def _draw_uniform(self, seed, batch):
        return slots_of(uniforms(seed, 0, batch), self.size), np.full(batch, 1 / self.size)

    def _draw_prioritised(self, seed, batch):
        levels = running_sums(self.weights)
        total = levels[-1][0, 7]
        positions = (np.arange(batch) + uniforms(seed, 0, batch)) / batch * total
        slots = find(levels, positions)
        return slots, self.weights[slots].astype(np.float64) / total

    def _draw_amper(self, seed, batch):
        weights = self.weights[: self.size]
        search = AmperSearch(self.config, weights, self.size, self.total, seed)
        pool, accepted, tried = PROPOSALS * batch, [], 0
        while len(accepted) < batch and tried < ROUNDS * pool:
            slots = slots_of(uniforms(seed, self.config.groups + tried, pool), self.size)
            accepted.extend(slots[search.matches(weights[slots], slots)])
            tried += pool
        drawn, found, empty = np.array(accepted[:batch]), len(accepted) / tried * self.size, False
        if len(accepted) < batch:
            members = np.flatnonzero(search.matches(weights, np.arange(len(weights))))
            found, empty = len(members), len(members) == 0
            if empty:
                members = np.flatnonzero(weights > 0)
            numbers = uniforms(seed, self.config.groups + ROUNDS * pool, batch)
            drawn = members[slots_of(numbers, len(members))]
        if empty:
            return drawn, np.full(batch, 1 / self.size)
        return drawn, search.included(weights[drawn], drawn) / max(found, 1.0)

    def _check(self, priorities):
        if priorities is not None and not all(math.isfinite(x) and x >= 0 for x in priorities):
            self._refuse("bad_priority")

    def _refuse(self, status):
        self.stats["refused"] += 1
        raise Refused(status)
