"""Mappings as files, sizes of trainings, and what is refused of both."""

import json

import jax
import pytest
from tables import loaded

from accel_rl import compose, experiment
from accel_rl.compose import Mapping, workload_of
from accel_rl.compose import mapping as mappings
from accel_rl.compose.devices import find
from accel_rl.experiment import configuration

SPLIT = Mapping("asynchronous", "cpu:0", "native", "cpu:1", ("gpu:0", "gpu:1"))


def test_a_mapping_survives_its_file(tmp_path):
    path = tmp_path / "mapping.toml"
    path.write_text(mappings.toml_text(mappings.to_table(SPLIT)))
    assert 'learner = "gpu:0+gpu:1"' in path.read_text()
    assert mappings.from_table(mappings.read_toml(path)) == SPLIT


def test_devices_and_watts_survive_the_configurations_file():
    wanted = loaded(compose={"devices": ["cpu:0", "native"], "power": {"cpu:0": [1.5, 20]}})
    tables = configuration.to_mapping(wanted.configuration)
    assert tables["compose"]["power"] == {"cpu:0": [1.5, 20.0]}
    again = configuration.from_mapping(json.loads(json.dumps(tables)))
    assert again.compose == wanted.configuration.compose


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "mapping.executor is missing"),
        ({"executor": "fused", "actor": 3}, "mapping.actor must be a valid string, got 3"),
        (mappings.to_table(SPLIT) | {"gpu": "x"}, "mapping.gpu Unexpected keyword argument"),
        (["cpu:0"], "mapping must be an object"),
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compose.objective=beauty"], "compose.objective must be 'throughput', 'efficiency' or"),
        (["compose.weight=1.5"], "compose.weight must be less than or equal to 1, got 1.5"),
        (["compose.weight=nan"], "compose"),
        (["compose.device=3"], "did you mean compose.devices?"),
        (["compose.devices=cpu:0"], "compose.devices must be a valid array"),
        (
            ["compose.power.native=[9, 5]"],
            r"must give idle watts, .*native: \[9.0, 5.0",
        ),
        (["compose.power.native=[9]"], "compose.power.native.1 is missing"),
        (["compose.power.native=9"], "compose.power.native must be a valid array, got 9"),
        (["compose.power.native=[1, inf]"], "compose"),
    ],
)
def test_bad_sections_are_refused(words, message):
    with pytest.raises(ValueError, match=message):
        experiment.load(agent="dqn", environment="CartPole-v1", words=words, command="compose")


@pytest.mark.parametrize(
    ("agent", "environment", "words", "message"),
    [
        ("q_learning", "FrozenLake-v1", [], "agent must be one of dqn, ddpg, .* got q_learning"),
        ("dqn", "Breakout-MinAtar", [], "with agent.torso=mlp .* got dqn convolution"),
        (*("dqn", "CartPole-v1"), ["training.seeds=2"], "training.seeds must be 1 .* got 2"),
    ],
)
def test_trainings_that_have_no_costs_are_refused(agent, environment, words, message):
    wanted = experiment.load(agent=agent, environment=environment, words=words)
    with pytest.raises(ValueError, match=message):
        workload_of(wanted)


@pytest.mark.parametrize(
    ("word", "default"),
    [
        ("evaluation.stop_at=100", "none"),
        ("evaluation.stop_excess=2", "none"),
        ("checkpoints.every=1_000", "none"),
        ("training.executor=asynchronous", "fused"),
    ],
)
def test_settings_that_a_composed_run_would_ignore_are_refused(word, default):
    wanted = experiment.load(
        agent="dqn", environment="CartPole-v1", words=[word], command="compose"
    )
    message = rf"{word.split('=')[0]} must be {default} for compose, got"
    with pytest.raises(ValueError, match=message):
        compose.plan(wanted)
    mapping = Mapping("fused", "cpu:0", "cpu:0", "cpu:0", ("cpu:0",))
    with pytest.raises(ValueError, match=message):
        compose.run(wanted, mapping, jax.random.key(0), 2_000)


@pytest.mark.parametrize(
    ("environment", "settings", "plain"),
    [
        ("Taxi-v3", {}, True),
        ("CartPole-v1", {"agent.distributional": "c51", "agent.num_atoms": 11}, True),
        ("CartPole-v1", {"agent.distributional": "quantile", "agent.num_atoms": 7}, True),
        ("CartPole-v1", {"agent.noisy": True}, False),
        ("CartPole-v1", {"agent.dueling": True}, False),
    ],
)
def test_a_workload_has_the_agent_s_parameters(environment, settings, plain):
    wanted = experiment.load(
        None, {"agent.hidden": (8,), **settings}, agent="dqn", environment=environment
    )
    params = wanted.program.agent.init(jax.random.key(0)).params
    found = workload_of(wanted)
    assert found.plain == plain
    assert (found.parameters == sum(leaf.size for leaf in jax.tree.leaves(params))) == plain
    refused = find(("fpga",))["fpga"].refuses("learner", found)
    assert refused is None if plain else "plain perceptrons" in refused


def test_a_workload_counts_what_the_training_holds():
    found = workload_of(loaded(replay={"batch_size": 16}, schedule={"updates": 2, "num_envs": 2}))
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
