"""The model of an iteration: closed forms where nothing contends, bounds where steps do."""

import dataclasses

import pytest
import quick
from tables import SMALL_DQN, made_up, mappings

from accel_rl.compose import Mapping, Power, estimate
from accel_rl.compose.costs import Cost
from accel_rl.compose.workload import STEPS
from accel_rl.train import Schedule

TOLD = dict(zip(STEPS, (300e-6, 50e-6, 80e-6, 60e-6, 250e-6, 20e-6), strict=True))
HERE = Mapping("deterministic", "cpu:0", "cpu:0", "cpu:0", ("cpu:0",))


def costs_of(seconds):
    costs = made_up()
    for step in STEPS:
        costs.steps[costs.key(HERE, step)] = Cost(seconds[step], 0.0, "measured")
    return costs


def predicted(executor="deterministic", seconds=TOLD, **schedule):
    mapping = dataclasses.replace(HERE, executor=executor)
    return estimate(mapping, costs_of(seconds), Schedule(**schedule), 64).seconds


def test_without_lags_nothing_overlaps_but_the_actor_and_the_memory():
    # Sample, learn and update follow each other, then the policy goes to the actor.
    t = TOLD
    serial = t["sample"] + t["learn"] + t["sync"] + t["collect"] + t["insert"]
    assert predicted() == pytest.approx(serial)


@pytest.mark.parametrize("executor", ["deterministic", "asynchronous"])
def test_with_lags_the_busiest_worker_sets_the_pace(executor):
    lags = {"policy_lag": 2, "priority_lag": 1}
    assert predicted(executor, **lags) == pytest.approx(TOLD["collect"])
    slow = TOLD | {"learn": 900e-6}
    # PEARL's overlap: all but the learner's own work is hidden.
    assert predicted(executor, slow, **lags) == pytest.approx(slow["learn"] + slow["sync"])


def test_a_memory_that_is_busiest_sets_the_pace():
    slow = TOLD | {"update": 700e-6}
    memory = slow["insert"] + slow["sample"] + slow["update"]
    assert predicted("deterministic", slow, policy_lag=2, priority_lag=2) == pytest.approx(memory)
    # Asynchronous workers take turns at the memory, which is as much work and some waiting.
    found = predicted("asynchronous", slow, policy_lag=2, priority_lag=2)
    assert memory * (1 - 1e-9) <= found <= 1.05 * memory


def test_updates_of_an_iteration_count_as_often():
    lags = {"policy_lag": 2, "priority_lag": 1, "updates": 3}
    assert predicted(**lags) == pytest.approx(3 * TOLD["learn"] + TOLD["sync"])


def busiest(mapping, costs, schedule):
    """Work of the busiest worker, or of the memory, whose calls take turns."""
    if mapping.executor == "fused":
        return costs.fused(mapping).seconds
    t = {step: costs.step(mapping, step).seconds for step in STEPS}
    buffer = t["insert"] + schedule.updates * (t["sample"] + t["update"])
    return max(t["collect"], buffer, schedule.updates * t["learn"] + t["sync"])


@pytest.mark.parametrize("seed", quick.only(range(1), range(4)))
def test_no_mapping_undercuts_its_bound(seed):
    costs = made_up(seed=seed, slowdown=1.8, handoff=1e-5)
    for schedule in (
        Schedule(),
        Schedule(policy_lag=1, priority_lag=1),
        Schedule(policy_lag=3, priority_lag=2, updates=2),
    ):
        for mapping in mappings():
            found = estimate(mapping, costs, schedule, 8)
            assert found.seconds >= busiest(mapping, costs, schedule) * (1 - 1e-9), mapping
            assert all(0 <= busy <= found.seconds * (1 + 1e-9) for busy in found.busy.values())


def test_a_backlog_that_drains_slowly_does_not_hide_the_slowest_worker():
    # The actor is 0.5 % slower than the learner, and far ahead at first.
    slow = dict(zip(STEPS, (882.1e-6, 40.8e-6, 7.1e-6, 269.9e-6, 863.7e-6, 13.5e-6), strict=True))
    found = predicted("asynchronous", slow, policy_lag=8, priority_lag=4)
    assert found >= slow["collect"]


def test_contention_makes_an_iteration_longer():
    free, contended = made_up(slowdown=1.0), made_up(slowdown=3.0)
    schedule = SMALL_DQN.program.schedule
    for mapping in mappings():
        if mapping.executor != "fused":
            one = estimate(mapping, free, schedule, 8).seconds
            busy = dataclasses.replace(contended, steps=free.steps)
            assert estimate(mapping, busy, schedule, 8).seconds > one


def test_joules_are_of_all_devices_and_only_of_known_power():
    costs = costs_of(TOLD)
    schedule = Schedule(policy_lag=2, priority_lag=1)
    power = {
        "cpu:0": Power(10, 50, "declared", "a test"),
        "cpu:1": Power(5, 9, "declared", "a test"),
    }
    found = estimate(HERE, costs, schedule, 64, power)
    busy = found.busy["cpu:0"]
    # The actor alone is busy all the time.
    assert busy == pytest.approx(found.seconds)
    assert found.joules == pytest.approx(50 * busy + 5 * found.seconds)
    assert estimate(HERE, costs, schedule, 64, {}).joules is None


def test_a_step_that_was_not_measured_is_an_error():
    costs = costs_of(TOLD)
    del costs.steps[costs.key(HERE, "update")]
    with pytest.raises(KeyError):
        estimate(HERE, costs, Schedule(), 64)
