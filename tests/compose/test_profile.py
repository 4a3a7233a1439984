"""Profiling and running a small training for real, and keeping what was measured."""

import dataclasses
import json

import jax
import numpy as np
import pytest
import quick
from tables import loaded

from accel_rl import compose
from accel_rl.compose import Mapping, cache, timing
from accel_rl.compose.candidates import alike
from accel_rl.compose.devices import find
from accel_rl.compose.run import iteration_seconds
from accel_rl.compose.workload import STEPS
from accel_rl.train import Schedule

DEVICES = ["cpu:0", "cpu:1"]
UNIFORM = {"sampler": "uniform"}
HERE = loaded(compose={"devices": DEVICES}, replay=UNIFORM)
SPLIT = Mapping("deterministic", "cpu:0", "cpu:0", "cpu:1", ("cpu:1",))
MAPPINGS = [
    Mapping("fused", *["cpu:0"] * 3, ("cpu:0",)),
    SPLIT,
    dataclasses.replace(SPLIT, executor="asynchronous"),
]


@pytest.fixture(scope="module")
def costs():
    told = []
    found = compose.profile(
        HERE, find(DEVICES), MAPPINGS, seconds=0.01, progress=lambda *each: told.append(each)
    )
    assert [done for _, done, _ in told] == [0, 1, 2, 2, 2, 2, 3]  # three of them trials
    assert {total for _, _, total in told} == {3}
    return found


def test_every_step_and_every_pair_is_measured(costs):
    for step in STEPS:
        assert costs.step(SPLIT, step).source == "measured"
        assert 0 < costs.step(SPLIT, step).seconds < 1
    assert costs.group == 1
    for step in STEPS:
        for other in STEPS:
            met = step != other and {step, other} != {"learn", "sync"}
            if met and "update" not in (step, other):  # which nobody takes, in uniform replay
                assert costs.key(SPLIT, step, other) in costs.slowdowns
    assert min(costs.slowdowns.values()) >= 1
    assert 0 < costs.fused(MAPPINGS[0]).seconds < 1
    assert 0 < costs.handoff < 0.1
    assert set(costs.stretch) == set(compose.EXECUTORS)
    assert all(0.01 < each < 1000 for each in costs.stretch.values())
    assert set(costs.links) == set(DEVICES)
    for link in costs.links.values():
        assert link.status == "measured"
        assert 0 < link.latency < 0.1
        assert link.bandwidth > 1e6


def test_like_devices_are_measured_once(costs):
    other = Mapping("deterministic", "cpu:1", "cpu:1", "cpu:0", ("cpu:0",))
    assert costs.step(other, "learn") is costs.step(SPLIT, "learn")
    assert costs.step(other, "insert") is costs.step(SPLIT, "insert")
    assert costs.alike.renamed(["cpu:1", "cpu:0", "cpu:1"]) == ("cpu:0", "cpu:1", "cpu:0")


def test_what_is_known_is_not_measured_again(costs, monkeypatch):
    def refuse(*_):
        raise AssertionError("measured again")

    monkeypatch.setattr(timing, "alone", refuse)
    monkeypatch.setattr(timing, "together", refuse)
    again = compose.profile(HERE, find(DEVICES), MAPPINGS, known=costs)
    assert again.steps == costs.steps
    with pytest.raises(AssertionError, match="measured again"):
        compose.profile(HERE, find(DEVICES), MAPPINGS)


@pytest.mark.long  # measures more
def test_costs_of_fewer_devices_serve_a_plan_of_more(costs):
    one = dataclasses.replace(costs, alike=alike(find(("cpu:0",))))
    plan = compose.plan(HERE, costs=one, executors=("deterministic",), seconds=0.01)
    assert len(plan.estimates) == 8  # two like devices in four roles, up to their names
    assert plan.costs.alike == costs.alike
    assert plan.costs.step(SPLIT, "learn") is costs.step(SPLIT, "learn")


def test_costs_are_kept_for_the_same_training_and_machine_only(costs, tmp_path, monkeypatch):
    path = cache.save(costs, HERE, tmp_path)
    assert cache.load(HERE, tmp_path) == costs
    other = loaded(compose={"devices": DEVICES, "objective": "weighted"}, replay=UNIFORM)
    # What is chosen and what for does not change what things cost; sizes and versions do.
    assert cache.load(other, tmp_path) == costs
    larger = loaded(compose={"devices": DEVICES}, replay=UNIFORM | {"batch_size": 16})
    assert cache.load(larger, tmp_path) is None
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX")
    assert cache.load(HERE, tmp_path) is None
    monkeypatch.undo()
    path.write_text(path.read_text()[:-20])
    assert cache.load(HERE, tmp_path) is None
    held = json.dumps({"fingerprint": cache.fingerprint(HERE), "costs": {"alike": {}}})
    path.write_text(held)
    assert cache.load(HERE, tmp_path) is None


def test_modelled_costs_are_not_kept(costs, tmp_path):
    key = next(iter(costs.steps))
    modelled = dataclasses.replace(costs.steps[key], source="modelled")
    mixed = dataclasses.replace(costs, steps={**costs.steps, key: modelled})
    cache.save(mixed, HERE, tmp_path)
    assert key not in cache.load(HERE, tmp_path).steps


@pytest.mark.parametrize(
    "mapping",
    quick.only(MAPPINGS[1:], MAPPINGS, others="long"),
    ids=[each.executor for each in MAPPINGS],
)
def test_a_mapping_trains(mapping):
    seen = []
    ran = compose.run(HERE, mapping, jax.random.key(0), 120, period=20, on_row=seen.append)
    assert [row["steps"] for row in ran.rows][-1] == 120
    assert len(seen) == len(ran.rows)
    assert int(ran.state.iteration) == 120
    assert not ran.simulated
    assert 0 < ran.seconds < 1
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(ran.state.agent))
    assert bool(ran.timeline) == (mapping.executor != "fused")
    assert all(span.start >= 0 for span in ran.timeline)


@pytest.mark.long  # compiles a training
def test_rows_of_the_fused_program_are_long_unless_told_otherwise():
    whole = next(each for each in MAPPINGS if each.executor == "fused")
    rows = compose.run(HERE, whole, jax.random.key(0), 120).rows
    assert rows[-1]["steps"] == 120
    assert max(np.diff([row["steps"] for row in rows])) == 6  # some are cut where learning starts


@pytest.mark.long  # trains twice
def test_devices_that_cannot_run_are_stood_in_for_when_asked():
    wanted = loaded(compose={"devices": ["cpu:0", "fpga"]})
    mapping = Mapping("deterministic", "cpu:0", "fpga", "cpu:0", ("fpga",))
    with pytest.raises(ValueError, match="cannot run here: fpga is modelled"):
        compose.run(wanted, mapping, jax.random.key(0), 60)
    ran = compose.run(wanted, mapping, jax.random.key(0), 60, simulate=True)
    real = Mapping("deterministic", "cpu:0", "cpu:0", "cpu:0", ("cpu:0",))
    same = compose.run(wanted, real, jax.random.key(0), 60)
    assert ran.simulated
    assert not same.simulated
    # What is computed is what the stand-in computes.
    jax.tree.map(np.testing.assert_array_equal, ran.state.agent, same.state.agent)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (
            Mapping("deterministic", "gpu:9", "cpu:0", "cpu:0", ("cpu:0",)),
            "actor must be one of cpu:0",
        ),
        (Mapping("deterministic", *["native"] * 3, ("cpu:0",)), "actor cannot be native: it has"),
        (Mapping("fused", "cpu:0", "cpu:0", "cpu:1", ("cpu:1",)), "must have one device of JAX"),
        (
            Mapping("deterministic", *["cpu:0"] * 3, ("cpu:0", "cpu:1", "cpu:2")),
            "kind whose number divides batch_size, ",
        ),
    ],
)
def test_mappings_that_do_not_fit_are_refused(mapping, message):
    devices = find(("cpu:0", "cpu:1", "cpu:2", "native"))
    with pytest.raises(ValueError, match=message):
        compose.run(HERE, mapping, jax.random.key(0), 60, devices=devices)


def test_iteration_time_leaves_out_what_was_compiled():
    rows = [
        {"steps": steps, "seconds": seconds, "updates": updates}
        for steps, seconds, updates in (
            (100, 1.0, 0),
            (200, 9.0, 50),  # compiled here
            (300, 9.5, 50),
            (400, 10.1, 50),
            (500, 10.5, 50),
        )
    ]
    median, spread = iteration_seconds(rows, Schedule(num_envs=2))
    assert median == pytest.approx(0.5 * 2 / 100)
    assert spread > 0
    assert np.isnan(iteration_seconds(rows[:3], Schedule())[0])
