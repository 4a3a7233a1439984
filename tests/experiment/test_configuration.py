"""Configurations: layers and their precedence, files, completeness, and what they describe."""

import dataclasses
import json
import pathlib
import re
import tomllib
from typing import get_args

import jax
import numpy as np
import pytest
from optional import require

from accel_rl import agents, replay, tabular
from accel_rl.cli import train_agent
from accel_rl.experiment import catalogue, configuration, layers, sweep
from accel_rl.experiment import words as words_of
from accel_rl.experiment.assembly import assemble
from accel_rl.train import Schedule
from accel_rl.train.program import HYPERPARAMETERS

LAKE = "FrozenLake-v1"


def resolved(agent="dqn", env=LAKE, file=None, options=None, words=()):
    return layers.resolve(agent, env, file, options or {}, words)


def made(*words, agent="dqn", env=LAKE, **more):
    return assemble(configuration.from_mapping(resolved(agent, env, words=words, **more)))


@pytest.fixture
def files(tmp_path):
    """Two files that say the same, in TOML and in JSON."""
    toml = tmp_path / "settings.toml"
    toml.write_text(
        '[agent]\nname = "dqn"\ngamma = 0.9\nhidden = [4]\n[replay]\nsampler = "rank-based"\n'
        '[environment]\nname = "FrozenLake-v1"\n[training]\nsteps = 7_000\n'
    )
    saved = tmp_path / "settings.json"
    saved.write_text(json.dumps(tomllib.loads(toml.read_text())))
    return toml, saved


def test_each_layer_is_over_those_before(files):
    toml, saved = files
    assert resolved(file=toml) == resolved(file=saved) == resolved(env=None, file=toml)
    default, preset = configuration.ScheduleConfig(), layers.preset("dqn", LAKE)[0]
    assert resolved()["schedule"]["num_envs"] == preset["schedule"]["num_envs"] != default.num_envs
    assert resolved(file=toml)["training"]["steps"] == 7000
    assert resolved(file=toml)["replay"]["sampler"] == "rank_based"
    option = resolved(file=toml, options={"training.steps": 8000})
    assert option["training"]["steps"] == 8000
    word = resolved(file=toml, options={"training.steps": 8000}, words=["training.steps=9000"])
    assert word["training"]["steps"] == 9000
    assert word["agent"]["gamma"] == 0.9


def test_another_sampler_drops_what_was_said_of_the_first(tmp_path):
    file = tmp_path / "per.toml"
    file.write_text('[replay]\nsampler = "per"\nalpha = 0.5\nbeta = 0.1\ncapacity = 2_000\n')
    same = resolved(file=file, words=["replay.batch_size=8"])["replay"]
    assert same["sampler"] == "prioritised"
    assert same["alpha"] == 0.5
    other = resolved(file=file, options={"replay.sampler": "amper-k"})["replay"]
    assert other["sampler"] == "amper_k"
    assert "alpha" not in other
    assert (other["beta"], other["capacity"]) == (0.1, 2000)


def test_shares_are_of_the_steps_that_are_trained(files):
    words = ["agent.epsilon_steps=25%", "evaluation.every=0.01 %", "training.steps=1e4"]
    found = resolved(file=files[0], words=words)
    assert found["agent"]["epsilon_steps"] == 2500
    assert found["evaluation"]["every"] == 1
    with pytest.raises(ValueError, match=r'training.steps must be a valid integer, got "50%"'):
        configuration.from_mapping(resolved(words=["training.steps=50%"]))


def test_shares_are_swept():
    def make(words, swept):
        return train_agent.assemble("dqn", LAKE, words, None, {}, swept)

    words = ["training.steps=4_000", "agent.epsilon_steps=10%,50%"]
    ((_, assembly),) = sweep.plan(words, make)
    assert assembly.configuration.sweep == {"agent.epsilon_steps": (400, 2000)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": ["training.stepps=1"]}, "did you mean training.steps"),
        ({"words": ["steps=1"]}, "did you mean training.steps"),
        ({"words": ["learning_rate=1"]}, "did you mean agent.learning_rate"),
        ({"words": ["csp_ratio=1"]}, "did you mean replay.csp_ratio"),
        ({"words": ["schedule.num_envs=x"]}, 'schedule.num_envs must be a valid integer, got "x"'),
        ({"words": ["environment.arguments=1"]}, "environment.arguments must be an object, got 1"),
        ({"words": ["environment.arguments.x=inf"]}, "arguments must hold finite numbers, got"),
        ({"words": ["training=1"]}, "no setting is named 'training'"),
        ({"words": ["agent.name=td3"]}, "named by the command"),
        ({"words": ["x"]}, "section.name=value"),
        ({"env": None}, "no environment is named"),
        ({"text": "[agent]\nname = 'td3'"}, "is of agent td3, not of dqn"),
        ({"text": "[trainin]"}, "no section of .* is named 'trainin'; did you mean training"),
        ({"text": "training = 3"}, "bad.toml.training must be an object, got 3"),
        ({"text": "["}, "is not a TOML file"),
        ({"text": "[]", "suffix": "json"}, r"bad.json must be an object, got \[\]"),
        ({"text": "{", "suffix": "json"}, "is not a JSON file"),
    ],
)
def test_refuses(tmp_path, change, message):
    change = dict(change)
    if "text" in change:
        file = tmp_path / f"bad.{change.pop('suffix', 'toml')}"
        file.write_text(change.pop("text"))
        change["file"] = file
    with pytest.raises(ValueError, match=message):
        configuration.from_mapping(resolved(**change))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["agent.learning_rte=1"], "'agent.learning_rte'; did you mean agent.learning_rate?"),
        (["agent.alpha=1"], "no setting of dqn is named 'agent.alpha'"),
        (["agent.epsilon_end=2"], "epsilon_end must be from 0.0 to 1.0|from 0 to 1, got 2"),
        (["agent.gamma=-1"], "gamma must be from 0 to 1, got -1.0"),
        (["agent.hidden=64"], "agent.hidden must be a valid array, got 64"),
        (["agent.double=1"], "agent.double must be a valid boolean, got 1"),
        (["replay.alpha=1"], "no setting of uniform is named 'replay.alpha'"),
        (["replay.sampler=per", "replay.alpha=-1"], "alpha must"),
        (["replay.sampler=amper_fr", "replay.groups=2"], "groups must be from 4 to 256, got 2"),
        (["replay.sampler=newest", "replay.capacity=99"], "must be schedule.num_envs, 10"),
        (["replay.sampler=best"], "no sampler is named 'best'"),
        (["replay.capacity=15"], "multiple|15"),
        (["schedule.num_envs=0"], "num_envs must be at least 1, got 0"),
        (["schedule.learning_starts=0"], "learning_starts must be at least"),
        (["training.seeds=0"], "training.seeds must be at least 1, got 0"),
        (["training.seed=-1"], "training.seed must be from 0"),
        (["environment.name=FrozenLke-v1"], "did you mean FrozenLake"),
        (["environment.arguments.nme=1"], "nme"),
        (["environment.time_limit=0"], "steps must be from 1"),
        (["environment.reward_scale=-1"], "reward_scale must be finite and above 0, got -1.0"),
        (["environment.flatten=true"], "needs Box observations"),
    ],
)
def test_what_is_described_must_be_possible(words, message):
    with pytest.raises(ValueError, match=message):
        made(*words)


def test_agents_refuse_what_they_cannot_act_in():
    with pytest.raises(ValueError, match="td3 needs a Box action space"):
        made(agent="td3")


def test_a_complete_configuration_describes_itself():
    """What is saved leaves nothing to defaults, survives JSON, and says the same again."""
    found = made(
        "replay.sampler=amper_fr", "agent.hidden=[8]", "environment.arguments.map_name=8x8"
    )
    complete = found.configuration
    tables = configuration.to_mapping(complete)
    again = assemble(configuration.from_mapping(json.loads(json.dumps(tables))))
    assert again.configuration == complete
    assert again.hyper == found.hyper
    assert tables["agent"]["hidden"] == [8]
    assert set(agents.dqn(found.env.observation_space, found.env.action_space).hyperparameters) <= (
        tables["agent"].keys()
    )
    assert tables["replay"]["csp_ratio"] == 0.15
    assert found.env.observation_space.n == 64


def test_settings_reach_the_parts():
    found = made(
        "agent.learning_rate=0.01", "agent.gamma=0.5", "replay.sampler=per", "replay.alpha=0.3",
        "replay.beta=0.2", "schedule.updates=2", "environment.time_limit=7", "replay.n_step=3",
        "environment.reward_scale=4",
    )  # fmt: skip
    state = jax.jit(lambda key: found.program.init(key, **found.hyper))(found.key)
    np.testing.assert_allclose(state.agent.hyper["learning_rate"], 0.01)
    np.testing.assert_allclose(state.hyper["gamma"], 0.5)
    np.testing.assert_allclose(state.hyper["beta"], 0.2)
    np.testing.assert_allclose(state.replay.index.sampler.alpha, 0.3)
    assert found.program.schedule.updates == 2
    assert found.program.buffer.parts[1].ring.window == 3
    key, inner = jax.random.key(0), found.env.reset(jax.random.key(0))[1]
    truncated = []
    for _ in range(7):
        *_, ended, cut, _ = found.env.step(key, inner, 0)
        inner = found.env.step(key, inner, 0)[1]
        truncated.append(bool(cut | ended))
    assert truncated[-1]


def test_rewards_are_scaled_for_learning_only():
    found = made("environment.reward_scale=4", env="CartPole-v1")
    program, state = found.program, found.program.init(found.key, **found.hyper)
    keys = program.keys(state.key, 0).collect
    actor, transitions, _ = program.collect(state.actor, program.agent.policy(state.agent), keys, 0)
    np.testing.assert_array_equal(transitions.reward, 4)
    np.testing.assert_array_equal(actor.episode_return, 1)


def test_sweeps_cover_all_combinations_with_the_same_seeds():
    tables = resolved(words=["training.seeds=3"])
    tables["sweep"] = {"agent.learning_rate": [1e-3, 1e-4], "agent.gamma": [0.9, 0.8]}
    found = assemble(configuration.from_mapping(tables))
    assert found.trainings == 12
    rates, gammas = found.hyper["agent"]["learning_rate"], found.hyper["gamma"]
    np.testing.assert_allclose(rates, np.repeat([1e-3, 1e-4], 6))
    np.testing.assert_allclose(gammas, np.tile(np.repeat([0.9, 0.8], 3), 2))
    keys = jax.random.key_data(found.key).reshape(4, 3, 2)
    np.testing.assert_array_equal(keys, np.broadcast_to(keys[:1], keys.shape))
    combinations = found.configuration.combinations()
    assert combinations[1] == {"agent.learning_rate": 1e-3, "agent.gamma": 0.8}
    for values, message in (
        ({"agent.hidden": [1.0]}, "no hyper-parameter that is an array is named 'agent.hidden'"),
        ({"agent.gamma": []}, "sweep.agent.gamma must have at least one value"),
        ({"agent.gamma": ["x"]}, 'sweep.agent.gamma.0 must be a valid number, got "x"'),
        ({"agent.gamma": [0.5, 2.0]}, "gamma must be from 0 to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            assemble(configuration.from_mapping({**tables, "sweep": values}))


def test_a_seed_has_the_same_key_however_many_there_are():
    few, many = made("training.seeds=2"), made("training.seeds=5")
    one = made("training.seeds=1")
    data = [jax.random.key_data(each.key) for each in (one, few, many)]
    np.testing.assert_array_equal(data[0], data[2][0])
    np.testing.assert_array_equal(data[1], data[2][:2])
    other = jax.random.key_data(made("training.seeds=5", "training.seed=1").key)
    assert not np.any(np.all(other == data[2], axis=1))


PRESETS = [
    (agent, name)
    for agent, found in layers.presets().items()
    if agent in catalogue.AGENTS
    for name in (None, *found.get("environments", {}))
]


@pytest.mark.parametrize(("agent", "name"), PRESETS)
def test_presets_are_configurations(agent, name):
    """Each can be assembled, in its environment or in one that its agent takes."""
    default = "Pendulum-v1" if agent in ("ddpg", "td3", "sac") else LAKE
    env = {None: default, "MinAtar": "Breakout-MinAtar", "v5": "HalfCheetah-v5"}.get(name, name)
    if name == "v5":
        require("Atari" if agent == "dqn" else "MuJoCo")
        env = "ALE/Breakout-v5" if agent == "dqn" else env
    found = made(agent=agent, env=env)
    assert found.configuration.agent.name == agent
    known = {*configuration.SECTIONS, "like", "environments"}
    assert layers.presets()[agent].keys() <= known


def test_every_agent_has_a_preset():
    names = {*catalogue.AGENTS, *get_args(layers.Command)}
    assert layers.presets().keys() == {*names, "continuous"}


def test_names_are_the_library_s():
    assert tuple(train_agent.AGENTS) == tuple(each.replace("_", "-") for each in catalogue.AGENTS)
    assert set(train_agent.SAMPLERS) == {each.replace("_", "-") for each in catalogue.SAMPLERS}
    assert catalogue.SAMPLERS.keys() == {*replay.SAMPLERS, "newest"}
    assert set(catalogue.TABULAR) < set(tabular.RULES)


def test_schedule_is_the_library_s():
    ours = dataclasses.fields(configuration.ScheduleConfig)
    theirs = dataclasses.fields(Schedule)
    assert [(each.name, each.default) for each in ours] == [
        (each.name, each.default) for each in theirs
    ]


def test_defaults_of_the_program_are_the_library_s():
    for section, names in (("agent", ["gamma"]), ("replay", ["beta", "beta_end", "beta_steps"])):
        defaults = {each.name: each.default for each in _fields(section)}
        for name in names:
            assert defaults[name] == HYPERPARAMETERS[name].default


def _fields(section):
    return dataclasses.fields(configuration.SECTIONS[section])


def test_every_setting_of_an_agent_is_documented():
    for name in catalogue.AGENTS:
        for setting, about in catalogue.describe_agent(name).items():
            assert about.meaning, f"{name}: {setting}"


def test_page_tells_every_setting_and_its_default():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    lines = re.findall(r"^\| `(\w+\.\w+)` \|(.*?)\| (.*) \|$", page, re.MULTILINE)
    assert [name for name, _, _ in lines] == list(configuration.settings())
    sections = configuration.ADAPTER.json_schema()["$defs"]
    for name, told, meaning in lines:
        section, field = name.split(".")
        default = {each.name: each.default for each in _fields(section)}[field]
        properties = sections[configuration.SECTIONS[section].__name__]["properties"]
        assert properties[field]["description"] == meaning
        if told.strip():
            assert _said(default) == told.strip(), name


def test_page_tells_every_preset():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    lines = re.findall(r"^\| `(\w+)` \| (all|`\S+`) \| (.*) \|$", page, re.MULTILINE)
    told = {agent: {"environments": {}} for agent, _, _ in lines}
    for agent, environment, words in lines:
        if like := re.match(r"as `(\w+)`(, with )?", words):
            told[agent]["like"], words = like[1], words[like.end() :]
        pairs = [words_of.assignment(word) for word in re.findall(r"`(.+?)`", words)]
        tables = layers.tables({name: words_of.parse(text) for name, text in pairs})
        if environment == "all":
            told[agent].update(tables)
        else:
            told[agent]["environments"][environment.strip("`")] = tables
    held = {agent: {"environments": {}, **found} for agent, found in layers.presets().items()}
    assert told == held


def test_settings_as_the_presets_have_them():
    """Shares of the steps that are configured, and not what was given otherwise."""
    words = ("training.steps=4_000", "replay.capacity=800", "schedule.learning_starts=200")
    tables = configuration.to_mapping(made(*words, env="CartPole-v1").configuration)
    assert layers.presets_in(tables) == {
        "training.period": 40,
        "evaluation.every": 400,
        "schedule.num_envs": 10,
        "replay.batch_size": 128,
        "replay.beta_steps": 4_000,
        "agent.epsilon_steps": 2_000,
    }


def _said(default):
    if isinstance(default, tuple):
        return ", ".join(default)
    if isinstance(default, (int, float)) and not isinstance(default, bool):
        return f"{default:,g}" if default < 1000 else f"{default:,.0f}"
    return {None: "none", True: "true", False: "false"}.get(default, default)
