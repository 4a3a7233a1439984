"""Whether draws follow the law that is stated.

Chi-square tests have fixed seeds; with others, one of them would fail by chance once in a million.
"""

import core_tables
import jax
import numpy as np
import pytest
from core_tables import native
from scipy import stats
from table_model import Config

from accel_rl import replay
from accel_rl.replay import inclusion
from accel_rl.replay.amper import spread

FALSE_ALARM = 1e-6
COLUMN = [("number", "i4", ())]


def filled(sampler, priorities, **settings):
    config = Config(len(priorities), sampler, settings.pop("exponent", 0.6), **settings)
    table = core_tables.make(config, COLUMN)
    table.push([np.arange(len(priorities), dtype=np.int32)], priorities)
    return table


def counts_of(table, capacity, batch, calls, first_seed=0):
    """How often each slot is drawn."""
    arrays, counts = native.Batch(table, batch), np.zeros(capacity, np.int64)
    for seed in range(first_seed, first_seed + calls):
        table.sample(seed, arrays)
        counts += np.bincount(arrays.slots, minlength=capacity)
    return counts


def priorities_of(capacity, seed=5):
    return np.random.default_rng(seed).exponential(size=capacity).astype(np.float32)


def test_single_draws_are_independent_and_in_proportion():
    priorities = priorities_of(300)
    counts = counts_of(filled("prioritised", priorities), 300, 1, 100_000)
    law = priorities.astype(np.float64) ** np.float64(np.float32(0.6))
    p = stats.chisquare(counts, law / law.sum() * counts.sum()).pvalue
    assert FALSE_ALARM / 2 < p < 1 - FALSE_ALARM / 2


@pytest.mark.parametrize("batch", [64, 512])
def test_stratified_draws_are_in_proportion(batch):
    priorities = priorities_of(1000)
    counts = counts_of(filled("prioritised", priorities), 1000, batch, 400_000 // batch)
    law = priorities.astype(np.float64) ** np.float64(np.float32(0.6))
    # Strata make counts vary less than by chance: only too much would be wrong.
    p = stats.chisquare(counts, law / law.sum() * counts.sum()).pvalue
    assert p > FALSE_ALARM


def test_each_stratum_has_its_draw():
    priorities = np.ones(64, np.float32)
    assert (counts_of(filled("prioritised", priorities), 64, 64, 50) == 50).all()


@pytest.mark.parametrize("batch", [1, 512])
def test_uniform_draws_are_uniform(batch):
    priorities = priorities_of(500)
    counts = counts_of(filled("uniform", priorities), 500, batch, 102_400 // batch, 10**6)
    p = stats.chisquare(counts).pvalue
    assert FALSE_ALARM / 2 < p < 1 - FALSE_ALARM / 2


def test_no_weight_is_never_drawn():
    priorities = priorities_of(4096)
    priorities[np.random.default_rng(1).random(4096) < 0.9] = 0
    for sampler in ("prioritised", "amper_fr"):
        counts = counts_of(filled(sampler, priorities), 4096, 512, 400)
        assert counts[priorities == 0].sum() == 0
        assert (counts[priorities > 0.5] > 0).all()


def test_every_item_of_a_large_table_can_be_drawn():
    """One number of 24 bits could not reach all of these."""
    capacity = 2**20
    table = filled("prioritised", np.ones(capacity, np.float32))
    counts = counts_of(table, capacity, 4096, 1024)
    missed = (1 - 1 / capacity) ** (4096 * 1024)  # of independent draws
    assert (counts == 0).mean() < 1.05 * missed


@pytest.mark.parametrize(("groups", "ratio"), [(20, 0.15), (6, 0.5)])
def test_amper_gives_the_probabilities_of_the_jax_version(groups, ratio):
    """But for the size of the candidate set, which both estimate, each by other numbers."""
    priorities = priorities_of(3000)
    table = filled("amper_fr", priorities, exponent=1.0, groups=groups, csp_ratio=ratio)
    arrays = native.Batch(table, 512)
    end = np.float32(1 + 1 / groups)
    reach = min(np.float32(ratio) * end * priorities.max() / (2 * priorities.mean()), 1) / groups
    for seed in range(20):
        table.sample(seed, arrays)
        x = spread(priorities[arrays.slots], arrays.slots, priorities.max(), groups)
        x *= np.float32((1 - reach) / end)
        included = np.asarray(inclusion.ball(x, np.float32(reach), groups), np.float64)
        size = np.median(included / arrays.probabilities)
        assert 0.1 * ratio * 3000 < size < 1.5 * ratio * 3000
        # float32 of the JAX version: 1 - product loses what is near 1.
        np.testing.assert_allclose(arrays.probabilities * size, included, rtol=2e-3, atol=1e-5)


@pytest.mark.long  # compiles samplers
def test_amper_draws_as_the_jax_version_does():
    capacity, calls, parts = 2000, 40_000, 20
    priorities = np.random.default_rng(3).random(capacity).astype(np.float32)
    memory = replay.make(
        {"x": np.float32(0)}, capacity=capacity, batch_size=1, sampler=replay.amper_fr("exact")
    )
    state = memory.init(alpha=1.0, csp_ratio=0.15)
    state = jax.jit(memory.add)(state, {"x": priorities}, priorities)
    draw = jax.jit(jax.vmap(lambda key: memory.sample(state, key).indices))
    theirs = np.asarray(draw(jax.random.split(jax.random.key(0), calls))).ravel()
    ours = counts_of(filled("amper_fr", priorities, exponent=1.0), capacity, 1, calls)
    order = np.argsort(np.argsort(priorities)) * parts // capacity
    table = [
        np.bincount(order, weights=np.bincount(theirs, minlength=capacity), minlength=parts),
        np.bincount(order, weights=ours, minlength=parts),
    ]
    p = stats.chi2_contingency(table).pvalue
    assert FALSE_ALARM / 2 < p < 1 - FALSE_ALARM / 2
