"""Steps below a roofline: those of the device that is drawn, as they were measured there."""

import dataclasses

import pytest
from tables import made_up

from accel_rl.compose import Alike, Cost, Costs, Mapping
from accel_rl.compose.roofline import Counted, reached

COUNTS = {"sample": Counted(50.0, 100.0), "learn": Counted(4e6, 1e6)}
SLOW, FAST = Cost(1e-3, 0.0, "measured"), Cost(1e-4, 0.0, "measured")


def alone(device):
    return Mapping("deterministic", device, device, device, (device,))


def test_points_are_of_the_device_whichever_was_measured_first():
    costs = Costs(Alike({"cpu:0": "cpu", "gpu:0": "gpu"}), {}, {}, {}, 0.0, 0.0)
    across = Mapping("deterministic", "cpu:0", "cpu:0", "cpu:0", ("gpu:0",))
    for mapping, cost in ((alone("cpu:0"), SLOW), (across, SLOW), (alone("gpu:0"), FAST)):
        for step in COUNTS:
            costs.steps.setdefault(costs.key(mapping, step), cost)
    costs.steps[costs.key(alone("gpu:0"), "learn")] = FAST
    found = reached("gpu:0", COUNTS, costs)
    assert found["learn"] == pytest.approx((4.0, 4e6 / 1e-4))
    assert found["sample"] == pytest.approx((0.5, 50 / 1e-4))
    assert reached("cpu:0", COUNTS, costs)["learn"] == pytest.approx((4.0, 4e6 / 1e-3))


def test_measured_steps_of_a_group_do_the_work_of_as_many():
    costs = dataclasses.replace(made_up(), group=4)
    counts = {**COUNTS, "update": Counted(1.0, 1.0), "collect": Counted(10.0, 10.0)}
    found, single = (reached("cpu:0", counts, each) for each in (costs, made_up()))
    assert "update" not in found
    assert found["learn"][1] == pytest.approx(4 * single["learn"][1])
    assert found["sample"][1] == pytest.approx(4 * single["sample"][1])
    assert found["collect"] == single["collect"]


def test_what_was_not_measured_there_is_left_out():
    costs = made_up()
    for step in ("sample", "learn"):
        key = costs.key(alone("cpu:1"), step)
        assert key == costs.key(alone("cpu:0"), step)  # of like devices one was measured
    costs.steps[costs.key(alone("cpu:0"), "sample")] = Cost(1e-9, 0.0, "modelled")
    assert set(reached("cpu:1", COUNTS, costs)) == {"learn"}
    assert reached("cpu:1", {"learn": Counted(0.0, 0.0)}, costs) == {}
    assert reached("native", COUNTS, costs) == {}
