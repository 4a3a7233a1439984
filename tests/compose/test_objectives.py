"""Objectives as costs of a sample, and what no other estimate beats in all of them."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_rl.compose.objectives import joules_per_sample, pareto, seconds_per_sample, weighted


@dataclasses.dataclass(frozen=True)
class Estimated:
    seconds: float
    joules: float | None
    samples: int = 1


POSITIVE = st.floats(1e-6, 1e6)
ESTIMATES = st.builds(Estimated, POSITIVE, POSITIVE, st.integers(1, 4096))


def test_objectives_as_worked_out_by_hand():
    estimate = Estimated(seconds=2.0, joules=32.0, samples=4)
    assert seconds_per_sample(estimate) == 0.5
    assert joules_per_sample(estimate) == 8.0
    assert weighted(0.5)(estimate) == pytest.approx(math.sqrt(0.5 * 8.0))
    assert weighted(0.25)(estimate) == pytest.approx(0.5**0.75 * 8.0**0.25)


@given(ESTIMATES)
def test_the_ends_of_the_weight_are_the_other_objectives(estimate):
    assert weighted(0)(estimate) == seconds_per_sample(estimate)
    assert weighted(1)(estimate) == joules_per_sample(estimate)


@given(ESTIMATES, ESTIMATES, st.floats(0, 1), POSITIVE, POSITIVE)
def test_units_change_no_order(one, two, weight, time_unit, energy_unit):
    def scaled(estimate):
        return Estimated(
            estimate.seconds * time_unit, estimate.joules * energy_unit, estimate.samples
        )

    objective = weighted(weight)
    before = objective(one) / objective(two)
    assert objective(scaled(one)) / objective(scaled(two)) == pytest.approx(before, rel=1e-9)


def test_throughput_asks_for_no_joules_and_the_others_do():
    unknown = Estimated(1.0, None)
    assert weighted(0)(unknown) == seconds_per_sample(unknown) == 1.0
    for objective in (joules_per_sample, weighted(0.5), lambda e: pareto([e])):
        with pytest.raises(ValueError, match="joules must be known"):
            objective(unknown)
    with pytest.raises(ValueError, match=r"weight must be from 0 to 1, got 1\.5"):
        weighted(1.5)


def test_pareto_as_worked_out_by_hand():
    a, b, c, d = Estimated(3, 1), Estimated(1, 3), Estimated(2, 2), Estimated(2, 3)
    assert pareto([a, b, c, d]) == [a, b, c]
    assert pareto([d, c, b, a]) == [c, b, a]
    assert pareto([]) == []
    again = Estimated(2, 2)
    (kept,) = pareto([c, again])
    assert kept is c
    # What counts is the cost of a sample.
    assert pareto([Estimated(2, 2, 1), Estimated(3, 3, 2)]) == [Estimated(3, 3, 2)]
    assert pareto([Estimated(1, math.inf)]) == [Estimated(1, math.inf)]


@given(st.lists(st.builds(Estimated, st.integers(1, 5), st.integers(1, 5)), max_size=20))
def test_pareto_against_its_definition(estimates):
    def beats(one, two):
        no_worse = one.seconds <= two.seconds and one.joules <= two.joules
        return no_worse and (one.seconds, one.joules) != (two.seconds, two.joules)

    expected = [
        e
        for i, e in enumerate(estimates)
        if not any(beats(other, e) for other in estimates) and e not in estimates[:i]
    ]
    found = pareto(estimates)
    assert [id(e) for e in found] == [id(e) for e in expected]


@given(st.lists(ESTIMATES, min_size=1, max_size=10), st.floats(0.01, 0.99))
def test_the_best_by_any_weight_is_on_the_front(estimates, weight):
    best = min(map(weighted(weight), estimates))
    assert min(map(weighted(weight), pareto(estimates))) == pytest.approx(best, rel=1e-12)
