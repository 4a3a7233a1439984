"""Longer histories of larger tables than Hypothesis makes, against the model, bit for bit."""

import core_tables
import numpy as np
import pytest
from table_machine import COLUMNS, columns_of
from table_model import Config, TableModel

# Groups and ratios of AMPER with which tries are enough, are not, and mostly find nothing.
AMPER = [(20, 0.15), (256, 1.0), (4, 0.003), (20, 1e-5)]
CASES = [
    *(Config(n, "prioritised", a) for n, a in [(1000, 0.6), (513, 1.0), (4097, 2.5)]),
    *(Config(1500, "amper_fr", 1.0, groups=m, csp_ratio=r) for m, r in AMPER),
    Config(700, "uniform"),
]


@pytest.mark.parametrize("config", CASES, ids=str)
def test_tables_answer_as_the_model(config):
    table, model = core_tables.make(config, COLUMNS), TableModel(config)
    rng, pushed = np.random.default_rng(config.capacity), 0
    for step in range(25):
        count = int(rng.integers(1, config.capacity // 2))
        numbers = np.arange(pushed, pushed + count)
        priorities = rng.exponential(size=count).astype(np.float32) if step % 3 else None
        model.push(numbers, priorities)
        table.push(columns_of(numbers), priorities)
        pushed += count
        seed, batch = int(rng.integers(2**63)) * 2 + 1, int(rng.choice([1, 64, 65, 300]))
        expected = model.sample(seed, batch)
        found = core_tables.sample(table, seed, batch)
        np.testing.assert_array_equal(found.slots, expected.slots)
        np.testing.assert_array_equal(found.generations, expected.generations)
        np.testing.assert_array_equal(found.probabilities, expected.probabilities)
        for column, wanted in zip(found.items, columns_of(expected.items), strict=True):
            np.testing.assert_array_equal(column, wanted)
        assert (found.size, found.total) == (expected.size, expected.total)
        errors = (rng.random(batch) < 0.9) * rng.exponential(size=batch)
        update = expected.slots, expected.generations, errors.astype(np.float32)
        assert table.update(*update) == model.update(*update)
