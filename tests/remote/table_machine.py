"""Random histories of a table beside those of its model; for any way to reach a table."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from table_model import Config, Refused, TableModel

COLUMNS = (("number", "i4", ()), ("odd", "u1", (3,)))
WILD_PRIORITIES = st.one_of(
    st.sampled_from([0.0, 1.0, 1e-30, 3e38]),
    st.floats(0, 2.0**100, width=32, allow_subnormal=True),
)
BAD_PRIORITIES = st.sampled_from([np.nan, np.inf, -np.inf, -1.0, -1e-30])
SEEDS = st.integers(0, 2**64 - 1)


def columns_of(numbers):
    """Columns whose items tell their number."""
    number = np.asarray(numbers, np.int32)
    return [number, np.repeat((number % 256).astype(np.uint8)[:, None], 3, axis=1)]


@st.composite
def priorities_of(draw, count):
    """A list of priorities: of like size, as errors are, or of any."""
    if draw(st.integers(0, 3)) < 3:
        return list(np.random.default_rng(draw(st.integers(0, 99))).random(count, np.float32))
    return draw(st.lists(WILD_PRIORITIES, min_size=count, max_size=count))


@st.composite
def configs(draw):
    capacity = draw(st.one_of(st.integers(1, 20), st.sampled_from([64, 65, 200])))
    ratio = None
    if draw(st.integers(0, 2)) == 2:
        least = draw(st.integers(-40, 0))
        ratio = (draw(st.sampled_from([0.5, 1.0, 3.0])), float(least), least + 80.0)
    return Config(
        capacity=capacity,
        sampler=draw(st.sampled_from(["uniform", "prioritised", "amper_fr"])),
        exponent=draw(st.sampled_from([0.0, 0.5, 0.6, 1.0, 2.5])),
        min_size=draw(st.integers(1, min(capacity, 5))),
        ratio=ratio,
        groups=draw(st.sampled_from([4, 20])),
        csp_ratio=draw(st.sampled_from([0.01, 0.15, 1.0])),
        max_priority=draw(st.sampled_from([0.5, 10.0, float("inf")])),
    )


class TableMachine(RuleBasedStateMachine):
    """Subclasses say how a table is made and called.

    `open(config)` makes it, with COLUMNS. `push(columns, priorities)`, `sample(seed, batch)`, which
    returns a `Drawn` with columns for items, `update(slots, generations, priorities)`, which
    returns counts of applied and stale ones, and `stats()` call it; they raise `Refused` with a
    status's name.
    """

    def open(self, config):
        raise NotImplementedError

    @initialize(config=configs())
    def begin(self, config):
        self.model = TableModel(config)
        self.pushed = 0
        self.drawn = []
        self.open(config)

    def both(self, name, model_arguments, arguments):
        """What the table and the model answer, which refuse alike."""
        try:
            expected = getattr(self.model, name)(*model_arguments)
        except Refused as refusal:
            with pytest.raises(Refused, match=f"^{refusal}$"):
                getattr(self, name)(*arguments)
            return None
        return getattr(self, name)(*arguments), expected

    @rule(data=st.data(), with_priorities=st.booleans(), is_bad=st.integers(0, 9))
    def push_some(self, data, with_priorities, is_bad):
        capacity = self.model.config.capacity
        count = data.draw(st.integers(1, capacity + 1), label="count")
        numbers = np.arange(self.pushed, self.pushed + count)
        priorities = None
        if with_priorities:
            priorities = data.draw(priorities_of(count))
            if is_bad == 0:
                priorities[data.draw(st.integers(0, count - 1))] = data.draw(BAD_PRIORITIES)
            priorities = np.asarray(priorities, np.float32)
        if self.both("push", (numbers, priorities), (columns_of(numbers), priorities)):
            self.pushed += count

    @rule(seed=SEEDS, batch=st.one_of(st.integers(1, 9), st.sampled_from([63, 64, 65, 200])))
    def sample_some(self, seed, batch):
        answers = self.both("sample", (seed, batch), (seed, batch))
        if answers is None:
            return
        found, expected = answers
        np.testing.assert_array_equal(found.slots, expected.slots)
        np.testing.assert_array_equal(found.generations, expected.generations)
        np.testing.assert_array_equal(found.probabilities, expected.probabilities)
        for column, wanted in zip(found.items, columns_of(expected.items), strict=True):
            np.testing.assert_array_equal(column, wanted)
        assert (found.size, found.total) == (expected.size, expected.total)
        self.drawn = [*self.drawn[-1:], (expected.slots, expected.generations)]

    @precondition(lambda self: self.drawn)
    @rule(data=st.data(), mistake=st.integers(0, 19), older=st.booleans())
    def update_some(self, data, mistake, older):
        slots, generations = (x.copy() for x in self.drawn[0 if older else -1])
        count = data.draw(st.integers(1, len(slots)))
        priorities = data.draw(priorities_of(count))
        slots, generations = slots[:count], generations[:count]
        place = data.draw(st.integers(0, len(slots) - 1))
        if mistake == 0:
            priorities[place] = data.draw(BAD_PRIORITIES)
        elif mistake == 1:
            slots[place] = data.draw(st.integers(self.model.config.capacity, 2**32 - 1))
        elif mistake == 2:
            slots[place] = data.draw(st.integers(0, self.model.config.capacity - 1))
            generations[place] = data.draw(st.sampled_from([0, 1, 2**32 - 1]))
        arguments = slots, generations, np.asarray(priorities, np.float32)
        answers = self.both("update", arguments, arguments)
        assert answers is None or tuple(answers[0]) == answers[1]

    @invariant()
    def statistics_agree(self):
        if hasattr(self, "model"):
            found = self.stats()
            for name, value in self.model.stats.items():
                assert found[name] == value, name
            assert found["size"] == self.model.size
