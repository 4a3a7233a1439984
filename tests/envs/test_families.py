"""Environments of other libraries, against the libraries' own steps."""

import importlib.metadata
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optional import require

from accel_rl import envs
from accel_rl.envs import families, registry
from accel_rl.envs.families import FAMILIES
from accel_rl.testing import check_environment

KEY = jax.random.key(0)


def relaxed():
    return jax.numpy_dtype_promotion("standard")


@pytest.mark.parametrize("name", ["brax:ant", "craftax:Craftax-Symbolic-v1", "jumanji:Snake-v1"])
def test_a_library_that_is_absent_is_named(name, monkeypatch):
    family = name.partition(":")[0]
    monkeypatch.setitem(sys.modules, family, None)
    monkeypatch.delitem(sys.modules, f"accel_rl.envs.families.{family}", False)
    with pytest.raises(ValueError, match=rf"pip install 'accel-rl\[{family}\]'"):
        envs.environment(name)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_library_that_this_jax_cannot_run_is_named(family, monkeypatch, tmp_path):
    for module in [each for each in sys.modules if each.partition(".")[0] == family]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, f"accel_rl.envs.families.{family}", False)
    package = tmp_path / family
    package.mkdir()
    (package / "__init__.py").write_text("import jax; jax.no_such_name_of_a_test\n")
    (tmp_path / f"{family}-0.0.7.dist-info").mkdir()
    (tmp_path / f"{family}-0.0.7.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {family}\nVersion: 0.0.7\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ValueError,
        match=rf"version 0.0.7 cannot be imported beside jax {jax.__version__}: "
        rf".*no_such_name_of_a_test.*pip install 'accel-rl\[{family}\]'",
    ):
        envs.environment(f"{family}:any")


@pytest.mark.parametrize("found", [None, "0.2.0"])
def test_a_family_without_an_adapter_says_why(found, monkeypatch):
    def version(package):
        assert package == "jaxtari"
        if found is None:
            raise importlib.metadata.PackageNotFoundError(package)
        return found

    monkeypatch.setattr(importlib.metadata, "version", version)
    wanted = "not installed" if found is None else "version 0.2.0"
    with pytest.raises(ValueError, match=rf"jaxtari \({wanted}\): its games start only with"):
        envs.environment("jaxatari:pong")


def test_prefixes_of_families_are_reserved(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "jaxatari.py").write_text("raise SystemExit('imported')\n")
    for name in ("brax:ant", "jaxatari:pong"):
        for call in (envs.make, envs.make_mdp, envs.layout):
            with pytest.raises(ValueError, match=f"{name} has neither tables nor a gymnax class"):
                call(name)
        assert not registry.has_tables(name)
    assert not families.is_family("my.brax:ant")
    assert not families.is_family("brax")


@pytest.mark.filterwarnings("ignore")  # of brax and of MuJoCo
@pytest.mark.long  # compiles a physics simulator
def test_brax_is_brax_s_own():
    require("brax")
    import brax.envs as library

    env = envs.environment("brax:inverted_pendulum", backend="spring", episode_length=40)
    assert (env.observation_space.shape, env.action_space.shape) == ((4,), (1,))
    check_environment(env)
    with relaxed():
        own = library.get_environment("inverted_pendulum", backend="spring")
        theirs = jax.jit(own.reset)(KEY)
    observation, state = jax.jit(env.reset)(KEY)
    np.testing.assert_array_equal(observation, theirs.obs)
    step, own_step = jax.jit(env.step), jax.jit(own.step)
    action, first, ends = jnp.array([0.01]), observation, []
    for time in range(45):
        with relaxed():
            theirs = own_step(theirs, action)
        observation, state, reward, terminated, truncated, info = step(KEY, state, action)
        np.testing.assert_allclose(info["final_observation"], theirs.obs, rtol=1e-5, atol=1e-6)
        assert reward == theirs.reward
        assert terminated == bool(theirs.done)
        if terminated or truncated:
            np.testing.assert_array_equal(observation, first)
            ends.append((time + 1, bool(terminated)))
            break
    assert ends == [(time + 1, bool(terminated))]
    with pytest.raises(ValueError, match=r"brax has no environment 'aunt'; there are ant"):
        envs.environment("brax:aunt")


@pytest.mark.long  # compiles
def test_brax_truncates_where_its_training_does():
    require("brax")
    env = envs.environment("brax:fast", episode_length=3)
    _, state = env.reset(KEY)
    seen = []
    for _ in range(6):
        *_, state, _, terminated, truncated, _ = env.step(KEY, state, jnp.zeros(1))
        seen.append((bool(terminated), bool(truncated)))
    assert seen == [(False, False), (False, False), (False, True)] * 2


@pytest.mark.long  # compiles
def test_jumanji_is_jumanji_s_own():
    require("Jumanji")
    import jumanji as library

    env = envs.environment("jumanji:Snake-v1", time_limit=25)
    assert env.action_space.n == 4
    check_environment(env)
    with relaxed():
        own = library.make("Snake-v1", time_limit=25)
        state, timestep = jax.jit(own.reset)(KEY)
    observation, ours = jax.jit(env.reset)(KEY)
    step, own_step, rng, ends = jax.jit(env.step), jax.jit(own.step), np.random.default_rng(0), []
    for time in range(200):
        seen = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(timestep.observation)])
        np.testing.assert_array_equal(observation, seen.astype(np.float32))
        action, key = rng.integers(4), jax.random.fold_in(KEY, time)
        with relaxed():
            state, timestep = own_step(state, jnp.int32(action))
        observation, ours, reward, terminated, truncated, info = step(key, ours, action)
        assert reward == timestep.reward
        assert (terminated | truncated) == timestep.last()
        if timestep.last():
            assert truncated == (timestep.discount > 0)
            ends.append(bool(truncated))
            final = np.concatenate(
                [np.ravel(leaf) for leaf in jax.tree.leaves(timestep.observation)]
            )
            np.testing.assert_array_equal(info["final_observation"], final.astype(np.float32))
            with relaxed():
                state, timestep = jax.jit(own.reset)(key)
    assert len(ends) > 3
    with pytest.raises(ValueError, match="jumanji has no environment 'Snack-v1'"):
        envs.environment("jumanji:Snack-v1")
    with pytest.raises(ValueError, match="not integers below n"):
        envs.environment("jumanji:BinPack-v2")
