"""Mappings and specs as files: round trips, and what is refused."""

import math

import pytest

from accel_rl.compose import Mapping, Spec
from accel_rl.compose import mapping as mappings
from accel_rl.compose import spec as specs

SPLIT = Mapping("asynchronous", "cpu:0", "native", "cpu:1", ("gpu:0", "gpu:1"))


def test_a_mapping_survives_its_file(tmp_path):
    path = tmp_path / "mapping.toml"
    path.write_text(mappings.toml_text(mappings.to_table(SPLIT)))
    assert 'learner = "gpu:0+gpu:1"' in path.read_text()
    assert mappings.from_table(mappings.read_toml(path)) == SPLIT


def test_a_spec_survives_its_file(tmp_path):
    spec = Spec(
        "ddpg",
        "Pendulum-v1",
        devices=("cpu:0", "native"),
        agent={"hidden": (8, 8), "noise": 'a "quoted" \\ name'},
        power={"cpu:0": (1.5, 20.0)},
        num_envs=2,
    )
    path = tmp_path / "spec.toml"
    path.write_text(mappings.toml_text(spec.to_table()))
    assert specs.from_table(mappings.read_toml(path)).to_table() == {
        **spec.to_table(),
        "agent": {"hidden": [8, 8], "noise": 'a "quoted" \\ name'},
        "power": {"cpu:0": (1.5, 20.0)},
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "mapping.executor must be an executor's name, got None"),
        ({"executor": "fused", "actor": 3}, "mapping.actor must be a device's name, got 3"),
        ({"gpu": "x"}, "must hold only executor, actor, .* got 'gpu'"),
        (["cpu:0"], "mapping must be a table of roles"),
        (mappings.to_table(SPLIT) | {"executor": "magic"}, "executor must be one of"),
        (mappings.to_table(SPLIT) | {"learner": "gpu:0+gpu:0"}, "learner must be devices, each"),
    ],
)
def test_bad_mappings_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        mappings.from_table(table)


def test_what_is_no_toml_is_named(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("executor = ")
    with pytest.raises(ValueError, match=r"broken\.toml is no TOML file"):
        mappings.read_toml(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"broken\.toml is no TOML file"):
        mappings.read_toml(path)


NAMES = {"algorithm": "dqn", "environment": "CartPole-v1"}


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ({"algorithm": "dqn"}, ValueError, "environment is missing"),
        (NAMES | {"algorithm": "ppo"}, ValueError, "algorithm must be one of .* got 'ppo'"),
        (NAMES | {"replay": "per"}, ValueError, "replay must be one of .* got 'per'"),
        (NAMES | {"objective": "beauty"}, ValueError, "objective must be 'throughput', 'eff"),
        (NAMES | {"weight": 1.5}, ValueError, "weight must be from 0 to 1, got 1.5"),
        (NAMES | {"batch": 3}, ValueError, "batch is no setting of a spec"),
        (NAMES | {"batch_size": "64"}, ValueError, "batch_size must be a valid integer"),
        (NAMES | {"batch_size": True}, ValueError, "batch_size must be a valid integer, got true"),
        (NAMES | {"agent": 3}, ValueError, "agent must be an object, got 3"),
        (NAMES | {"devices": "cpu:0"}, ValueError, "devices must be a valid array"),
        (NAMES | {"num_envs": 0}, ValueError, "num_envs must be at least 1, got 0"),
        (NAMES | {"power": {"cpu:0": [9, 5]}}, ValueError, "power.cpu:0 must be watts idle and"),
        (NAMES | {"power": {"cpu:0": [9]}}, ValueError, "power.cpu:0.1 is missing"),
        (NAMES | {"power": {"cpu:0": 9}}, ValueError, "power.cpu:0 must be a valid array, got 9"),
        (
            NAMES | {"power": {"cpu:0": [1, math.inf]}},
            ValueError,
            "power.cpu:0.1 must be a finite number",
        ),
    ],
)
def test_bad_specs_are_refused(table, error, message):
    with pytest.raises(error, match=message):
        specs.from_table(table)


def test_a_workload_counts_what_the_training_holds():
    spec = Spec("dqn", "CartPole-v1", agent={"hidden": (8,)}, batch_size=16, updates=2, num_envs=2)
    found = specs.workload(spec)
    assert (found.observation_size, found.action_size, found.outputs) == (4, 1, 2)
    assert found.widths == (4, 8, 2)
    assert found.layers == ((4, 8), (8, 2))
    assert (found.items("insert"), found.items("sample"), found.items("update")) == (2, 16, 16)
    assert found.parameters == 4 * 8 + 8 + 8 * 2 + 2
    assert found.trained_samples == 32
    # Two observations, action, reward and discount of 4 bytes a number, truncation of 1.
    assert found.transition_bytes == 4 * (4 + 4 + 1 + 1 + 1) + 1
    assert found.bytes_of("insert") == 2 * found.transition_bytes
    assert found.policy_bytes >= 4 * found.parameters
