"""The best mapping runs before it is believed."""

import dataclasses

import pytest
from tables import SMALL_DQN, loaded, made_up

from accel_rl import compose
from accel_rl.compose import Cost, confirm
from accel_rl.compose.costs import trial_key
from accel_rl.compose.trials import Trial, agree


@pytest.fixture
def running(monkeypatch):
    """Have trials take the seconds of a table, else what is predicted; return what ran."""
    ran, taken = [], {}

    def trial(experiment, devices, mapping, costs, seconds):
        ran.append(str(mapping))
        bare = dataclasses.replace(costs, stretch={}, trials={})
        predicted = compose.estimate(mapping, bare, experiment.program.schedule, 1).seconds
        found = taken.get(str(mapping), predicted)
        return Trial(found, 0.0, found / predicted)

    monkeypatch.setattr("accel_rl.compose.confirmation.trial", trial)
    return ran, taken


def test_a_prediction_that_holds_costs_one_run(running):
    found = compose.plan(SMALL_DQN, costs=made_up())
    confirmed, surprises = confirm(found)
    assert running[0] == [str(found.best.mapping)]
    assert not surprises
    assert confirmed.estimates == found.estimates


def test_what_is_too_good_to_be_true_loses_its_place(running):
    costs = made_up()
    fused = next(iter(costs.fused_iterations))
    costs.fused_iterations[fused] = Cost(82e-6, 1e-6, "measured")
    before = dict(costs.trials)
    found = compose.plan(SMALL_DQN, costs=costs)
    assert found.best.mapping.executor == "fused"
    running[1][str(found.best.mapping)] = 626e-6
    confirmed, (surprise,) = confirm(found)
    assert (surprise.mapping, surprise.measured) == (found.best.mapping, 626e-6)
    assert str(surprise).endswith("takes 626 us an iteration where 82 us were predicted")
    moved = {each.mapping: each.seconds for each in confirmed.estimates}
    assert moved[found.best.mapping] == pytest.approx(626e-6)
    assert confirmed.best.seconds == min(moved.values())
    assert str(confirmed.best.mapping) == running[0][-1]  # the best is one that has run
    assert costs.trials == before  # of the plan that was given


def test_a_trial_of_another_time_is_replaced(running):
    costs = made_up()
    found = compose.plan(SMALL_DQN, costs=costs)
    key = trial_key(found.best.mapping, costs.alike)
    costs.trials[key] = 0.1
    found = compose.plan(SMALL_DQN, costs=costs)
    confirmed, surprises = confirm(found)
    assert surprises[0].measured == pytest.approx(10 * surprises[0].predicted)
    assert confirmed.costs.trials[key] == pytest.approx(1.0)


def test_agreement_is_within_a_quarter_or_twice_the_spread():
    assert agree(100.0, 124.0, 0.0)
    assert not agree(100.0, 126.0, 0.0)
    assert not agree(100.0, 74.0, 0.0)
    assert agree(100.0, 150.0, 25.0)


def mostly_learning(fused):
    """Costs where the learner takes all the time: who acts and stores beside it changes none."""
    costs = made_up(slowdown=1.0)
    for key, cost in costs.steps.items():
        seconds = 5e-3 if key.steps == ("learn",) else 1e-5
        costs.steps[key] = dataclasses.replace(cost, seconds=seconds)
    for key in costs.fused_iterations:
        costs.fused_iterations[key] = Cost(fused, 0.0, "measured")
    return costs


def test_equal_throughput_of_unknown_watts_goes_to_the_fewest_parts():
    best = min(each.seconds for each in compose.plan(SMALL_DQN, costs=mostly_learning(1)).estimates)
    near, far = (compose.plan(SMALL_DQN, costs=mostly_learning(f * best)) for f in (1.04, 1.06))
    assert str(near.best.mapping) == "fused on cpu:0"
    assert near.best.seconds > min(each.seconds for each in near.estimates)
    assert str(far.best.mapping) == "deterministic cpu:0 > cpu:0 > cpu:0"


def test_equal_throughput_goes_to_fewer_joules():
    costs = mostly_learning(1.0)
    watts = {"cpu:0": (0.0, 50.0), "cpu:1": (0.0, 5.0), "native": (0.0, 5.0)}
    found = compose.plan(loaded(compose={"power": watts}), costs=costs)
    assert found.best.mapping in [each.mapping for each in compose.pareto(found.estimates)]
    level = [
        e for e in found.estimates if e.seconds <= 1.01 * min(x.seconds for x in found.estimates)
    ]
    assert len(level) > 1
    assert found.best.joules == min(each.joules for each in level)
