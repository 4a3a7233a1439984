"""Environments by name, and the pictures of them in text."""

import dataclasses
import subprocess
import sys

import jax
import numpy as np
import pytest

from accel_rl import envs
from accel_rl.envs import registry


def test_names():
    names = envs.list_environments()
    assert set(names) >= {"FrozenLake-v1", "FrozenLake8x8-v1", "Taxi-v3", "Taxi-v4"}
    assert set(names) >= {"CliffWalking-v1", "CliffWalkingSlippery-v1"}
    assert "CartPole-v1" not in names
    assert set(envs.list_environments(gymnax=True)) > {*names, "CartPole-v1"}


def test_other_names_go_to_gymnax():
    env, params = envs.make("CartPole-v1")
    with jax.numpy_dtype_promotion("standard"):  # gymnax mixes bool and float
        observation, state = env.reset(jax.random.key(0), params)
        step = env.step(jax.random.key(1), state, 0, params)
    assert observation.shape == step[0].shape == (4,)
    assert len(step) == 6


@pytest.mark.parametrize(
    ("call", "name", "message"),
    [
        (envs.make, "frozenlake-v1", "'frozenlake-v1'; did you mean FrozenLake-v1"),
        (envs.make, "CartPole-v7", "did you mean CartPole-v1"),
        (
            envs.make,
            "Zzz",
            "known: FrozenLake-v1, .*-misc; one of your own is MODULE:NAME",
        ),
        (envs.make_mdp, "CartPole-v1", "no environment with tables is named 'CartPole-v1'"),
        (envs.layout, "Taxi", "did you mean Taxi-v"),
    ],
)
def test_unknown_names(call, name, message):
    with pytest.raises(ValueError, match=message):
        call(name)


def test_unknown_arguments():
    with pytest.raises(TypeError, match="slippery"):
        envs.make_mdp("FrozenLake-v1", slippery=True)


def test_environments_of_ones_own_have_names(monkeypatch):
    monkeypatch.setattr(registry, "_TABULAR", dict(registry._TABULAR))
    lake = envs.environment("FrozenLake-v1")
    envs.register("Own-v0", lake)
    envs.register("OwnMade-v0", lambda is_slippery=True: envs.environment("FrozenLake-v1"))
    car, _ = envs.make("MountainCarContinuous-v0")
    envs.register("OwnGymnax-v0", car)
    for name in ("Own-v0", "OwnMade-v0"):
        made = envs.environment(name)
        assert made == lake._replace(name=name, reset=made.reset, step=made.step)
        observation, _ = made.reset(jax.random.key(0))
        assert observation == lake.reset(jax.random.key(0))[0]
    wheels = envs.environment("OwnGymnax-v0")
    assert (wheels.name, wheels.action_space.shape) == ("OwnGymnax-v0", (1,))
    assert not registry.has_tables("Own-v0")
    with pytest.raises(ValueError, match="Own-v0 has no tables: it was registered as an env"):
        envs.make_mdp("Own-v0")
    with pytest.raises(TypeError, match="slippery"):
        envs.environment("OwnMade-v0", slippery=True)


def test_importing_envs_does_not_import_gymnax():
    code = (
        "import sys, accel_rl.envs as e; e.make_sampler(e.make_mdp('FrozenLake-v1'));"
        "sys.exit(any(m in sys.modules for m in ('gymnax', 'gymnasium', 'flax')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_tabular_env_is_found_lazily():
    from accel_rl.envs.tabular_env import TabularEnv

    assert envs.TabularEnv is TabularEnv
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = envs.Nothing


@pytest.mark.parametrize("name", envs.list_environments())
def test_layouts_fit_their_tables(name):
    layout, mdp = envs.layout(name), envs.make_mdp(name)
    assert len(layout.actions) == len(layout.moves) == mdp.num_actions
    assert layout.states.shape == (len(layout.cells), len(layout.cells[0]))
    assert {cell for row in layout.cells for cell in row} <= set(layout.meaning)
    # In an open cell, and where nothing goes astray, a move leads to the neighbour it names.
    probability, following = np.asarray(mdp.probability), np.asarray(mdp.next_state)
    checked = 0
    for (row, column), state in np.ndenumerate(layout.states):
        for action, move in enumerate(layout.moves):
            if move is None or layout.cells[row][column] in layout.no_action:
                continue
            target = row + move[0], column + move[1]
            inside = all(0 <= t < n for t, n in zip(target, layout.states.shape, strict=True))
            wall = move[0] == 0 and (row, min(column, target[1])) in layout.walls
            if inside and not wall and layout.cells[target[0]][target[1]] != "C":
                reached = following[state, action][probability[state, action] > 0]
                assert layout.states[target] in reached
                checked += 1
    assert checked > 20


def test_text_of_frozen_lake():
    text = envs.render_ansi(envs.layout("FrozenLake-v1"), 6, 2, color=False)
    assert text.splitlines() == [
        "(right)",
        "+---------------+",
        "| S   F   F   F |",
        "| F   H  [F]  H |",
        "| F   F   F   H |",
        "| H   F   F   G |",
        "+---------------+",
    ]


def test_text_of_taxi_shows_walls_and_places():
    layout = envs.layout("Taxi-v3", passenger="taxi", destination="B")
    text = envs.render_ansi(layout, int(layout.states[0, 1]), color=False)
    assert text.splitlines()[0] == "passenger in the taxi, destination B"
    assert text.splitlines()[2] == "| R  [.]| .   .   G |"
    assert text.splitlines()[6] == "| Y | .   . | B   . |"


def test_colors_only_add_escapes():
    layout = envs.layout("CliffWalking-v1")
    plain = envs.render_ansi(layout, 36, color=False)
    colored = envs.render_ansi(layout, 36)
    assert "\x1b[" not in plain
    assert "\x1b[7m[S]\x1b[0m" in colored
    escapes = ("\x1b[31m", "\x1b[32m", "\x1b[7m", "\x1b[0m")
    for escape in escapes:
        colored = colored.replace(escape, "")
    assert colored == plain


def test_text_refuses():
    with pytest.raises(ValueError, match="state 16 is not in this layout"):
        envs.render_ansi(envs.layout("FrozenLake-v1"), 16)
    with pytest.raises(ValueError, match="action must be from 0 to 3, got 4"):
        envs.render_ansi(envs.layout("FrozenLake-v1"), 0, 4)
    with pytest.raises(ValueError, match="destination must be one of R, G, Y, B"):
        envs.layout("Taxi-v3", destination="taxi")
    with pytest.raises(ValueError, match=r"passenger must be .* got 5"):
        envs.layout("Taxi-v3", passenger=5)


def test_an_environment_of_one_s_own_has_a_name(monkeypatch):
    monkeypatch.setattr(registry, "_TABULAR", dict(registry._TABULAR))
    envs.register(
        "Two-v0",
        lambda reward=1.0: envs.build_mdp(
            lambda state, action: [(1.0, 0, reward * action, True)], 2, np.ones(1), None
        ),
    )
    assert "Two-v0" in envs.list_environments()
    assert envs.make_mdp("Two-v0", reward=3.0).reward[0, 1, 0] == 3
    assert envs.environment("Two-v0").action_space.n == 2
    with pytest.raises(ValueError, match="without a layout"):
        envs.layout("Two-v0")


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CartPole-v1", "MountainCarContinuous-v0"])
def test_no_environment_is_replaced(monkeypatch, name):
    monkeypatch.setattr(registry, "_TABULAR", dict(registry._TABULAR))
    with pytest.raises(ValueError, match=f"name must be a new one, '{name}' is registered already"):
        envs.register(name, envs.taxi)
    envs.register("Mine-v0", envs.taxi)
    with pytest.raises(ValueError, match="'Mine-v0' is registered already"):
        envs.register("Mine-v0", envs.taxi)


@pytest.mark.parametrize(
    ("outcome", "initial", "message"),
    [
        ((0.5, 0, 0.0, False), np.ones(3), r"sum of probability\[0, 0\] must be 1, got 0.5"),
        ((1.0, 3, 0.0, False), np.ones(3), r"next_state\[0, 0, 0\] must be in \[0, 3\), got 3"),
        ((1.0, 0, np.nan, False), np.ones(3), r"reward\[0, 0, 0\] must be finite"),
        (
            (1.0, 0, 0.0, False),
            np.array([2.0, -1.0, 0.0]),
            r"initial\[1\] must be a probab",
        ),
    ],
)
def test_tables_that_are_no_mdp_are_refused_where_they_are_made(
    monkeypatch, outcome, initial, message
):
    with pytest.raises(ValueError, match=message):
        envs.build_mdp(lambda state, action: [outcome], 2, initial, None)

    def by_hand():
        lake = envs.make_mdp("FrozenLake-v1")
        column = np.full((3, 2, 1), outcome[0], np.float32)
        fields = {"next_state": np.full_like(column, outcome[1], np.int32)}
        fields["reward"] = np.full_like(column, outcome[2])
        fields["terminated"] = np.zeros_like(column, bool)
        return dataclasses.replace(
            lake, probability=column, initial=initial / sum(initial), **fields
        )

    monkeypatch.setattr(registry, "_TABULAR", dict(registry._TABULAR))
    envs.register("ByHand-v0", by_hand)
    with pytest.raises(ValueError, match=message):
        envs.make_mdp("ByHand-v0")


OWN = """
import numpy as np

from accel_rl import envs


def chain(length=6):
    def outcomes(state, action):
        after = min(max(state + (1 if action == 1 else -1), 0), length - 1)
        return [(1.0, after, -1.0, after == length - 1)]

    return envs.build_mdp(outcomes, 2, np.arange(length) == 0, 30)


envs.register("Chain", chain)
"""


def test_a_name_may_say_which_module_registers_it(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_TABULAR", dict(registry._TABULAR))
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "chains_of_a_test"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "short.py").write_text(OWN)
    (package / "broken.py").write_text("import no_such_module_of_a_test\n")
    name = "chains_of_a_test.short:Chain"
    assert envs.make_mdp(name, length=4).num_states == 4
    assert envs.environment(name).name == name
    assert envs.make(name)[0].num_actions == envs.make_mdp("Chain").num_actions == 2
    assert registry.has_tables(name)
    assert not registry.has_tables(name, drawn=True)
    assert not registry.has_tables("chains_of_a_test.none:Chain")
    for wrong, message in (
        ("chains_of_a_test.none:Chain", "chains_of_a_test.none of .* it is neither installed"),
        ("no_such_package_of_a_test.a:B", "it is neither installed nor on Python's path"),
        ("chains_of_a_test.broken:Chain", "No module named 'no_such_module_of_a_test'"),
        ("chains_of_a_test.short:Chian", "registers no 'Chian'; did you mean Chain"),
        ("chains/short.py:Chain", "must be MODULE:NAME, got 'chains/short.py:Chain'"),
        (":Chain", "must be MODULE:NAME"),
    ):
        for call in (envs.make, envs.make_mdp, envs.environment, envs.layout):
            with pytest.raises(ValueError, match=message):
                call(wrong)
    with pytest.raises(ValueError, match="name must have no colon"):
        envs.register("short:Chain", envs.taxi)
