"""gymnax's environments and ours as `types.Environment`: the contract, spaces, bad input."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quick
from flax import struct
from gymnax.environments import environment as gymnax_environment
from gymnax.environments import spaces

from accel_rl import envs
from accel_rl.testing.environment import check_environment, random_actions
from accel_rl.types import Box, Discrete

CONTROL = (
    *("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1"),
    *("FrozenLake-v1", "Taxi-v3", "CliffWalking-v1"),
)
MINATAR = (
    "Breakout",
    # These take long to compile.
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("Asterix", "Freeway")),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("SpaceInvaders", "Seaquest")),
)
OTHERS = ("Catch-bsuite", "UmbrellaChain-bsuite", "FourRooms-misc", "Reacher-misc")


QUICK = ("CartPole-v1", "Pendulum-v1", "FrozenLake-v1")  # with MinAtar's, of each kind one


@pytest.mark.parametrize("name", quick.only(QUICK, [*CONTROL, *OTHERS]))
def test_contract(name):
    check_environment(envs.environment(name))


@pytest.mark.parametrize("name", MINATAR)
def test_contract_of_minatar(name):
    env = envs.environment(f"{name}-MinAtar")
    _, (observation, reward, *_) = check_environment(env, steps=100)
    assert set(np.unique(observation)) == {0, 1}
    assert np.isin(reward, (-1, 0, 1)).all() or name == "Seaquest"


@pytest.mark.parametrize(
    "name",
    ["CartPole-v1", "FrozenLake-v1", pytest.param("Breakout-MinAtar", marks=pytest.mark.slow)],
)
def test_an_episode_that_ends_is_followed_by_a_first_observation(name):
    env = envs.environment(name)
    _, played = check_environment(env, steps=100)
    observation, _, terminated, truncated, info = played
    stopped = terminated | truncated
    assert stopped.sum() >= 3
    firsts = np.asarray(jax.vmap(env.reset)(jax.random.split(jax.random.key(9), 64))[0])
    low, high = firsts.min(0) - 1e-2, firsts.max(0) + 1e-2
    # A first observation is uniform in a range, or one of a few: none lies outside of what is seen.
    for each in observation[stopped]:
        assert (low <= each).all()
        assert (each <= high).all()
    assert (info["final_observation"][stopped] != observation[stopped]).any()


def test_parameters_may_be_given_and_traced():
    car, params = envs.make("MountainCar-v0")

    @jax.jit
    @jax.vmap
    def velocity(force):
        env = envs.from_gymnax(car, params.replace(force=force, gravity=0.0))
        _, state = env.reset(jax.random.key(0))
        return env.step(jax.random.key(1), state, 2)[0][1]

    np.testing.assert_allclose(velocity(jnp.asarray([0.001, 0.004])), [0.001, 0.004], rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["CartPole-v1", "Pendulum-v1", pytest.param("Breakout-MinAtar", marks=pytest.mark.slow)]
)
def test_a_scan_is_compiled_once_from_reset_and_from_steps(name):
    env = envs.environment(name)
    actions = random_actions(env.action_space, (5,))
    traces = []

    @jax.jit
    def play(state, key):
        traces.append(None)
        keys = jax.random.split(key, 5)
        return jax.lax.scan(
            lambda state, inputs: (env.step(inputs[0], state, inputs[1])[1], None),
            state,
            (keys, actions),
        )[0]

    _, state = env.reset(jax.random.key(0))
    for number in range(3):
        state = play(state, jax.random.key(number))
    assert len(traces) == 1


@struct.dataclass
class UntidyState(gymnax_environment.EnvState):
    constant: float = 0.5  # weakly typed after every step


class Untidy(gymnax_environment.Environment):
    """What environments get away with: weak types, [1] rewards, other dtypes than declared."""

    def step_env(self, key, state, action, params):
        time = state.time + 1
        over = (time >= 3).reshape(1)[0]
        return time[None] * 1.0, UntidyState(time), jnp.ones((1,), int), over, {"odd": 1.0}

    def reset_env(self, key, params):
        return jnp.zeros((1,)), UntidyState(jnp.asarray(0))

    def observation_space(self, params):
        return spaces.Box(0, 9, (), jnp.int32)

    def action_space(self, params):
        return spaces.Box(-1, 1, (1,))


def test_untidy_environments_are_put_right():
    params = gymnax_environment.EnvParams(max_steps_in_episode=100)
    env = envs.from_gymnax(Untidy(), params)
    _, (observation, reward, terminated, truncated, info) = check_environment(env, steps=7)
    assert observation[:, 0].tolist() == [1, 2, 0, 1, 2, 0, 1]
    assert info["final_observation"][:, 0].tolist() == [1, 2, 3, 1, 2, 3, 1]
    assert (reward == 1).all()
    assert terminated[:, 0].tolist() == [False, False, True] * 2 + [False]
    assert not truncated.any()
    assert set(info) == {"odd", "final_observation"}


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (jnp.zeros(()), ValueError, r"action of Pendulum-v1 must have the shape \(1,\)"),
        (jnp.zeros((1, 1)), ValueError, "must have the shape"),
        (jnp.zeros(3), ValueError, "must have the shape"),
    ],
)
def test_actions_of_a_box_must_have_its_shape(action, error, message):
    env = envs.environment("Pendulum-v1")
    _, state = env.reset(jax.random.key(0))
    with pytest.raises(error, match=message):
        env.step(jax.random.key(0), state, action)


@pytest.mark.parametrize("action", [1.0, True, np.float32(1), np.bool_(True)])
def test_actions_of_a_discrete_space_must_be_integers(action):
    env = envs.environment("CartPole-v1")
    _, state = env.reset(jax.random.key(0))
    with pytest.raises(TypeError, match="action of CartPole-v1 must be an integer"):
        env.step(jax.random.key(0), state, action)


def test_an_environment_that_broadcasts_actions_is_told_what_refuses_them():
    lake = envs.environment("FrozenLake-v1")
    broadcasts = lake._replace(step=lambda key, s, action: lake.step(key, s, jnp.ravel(action)[0]))
    with pytest.raises(AssertionError, match=r"'must have the shape' \(envs.action_of does\)"):
        check_environment(broadcasts, steps=2)


@pytest.mark.parametrize("action", [1, np.int64(1), np.uint8(1), jnp.int32(1)])
def test_integers_of_any_kind_are_actions(action):
    env = envs.environment("CartPole-v1")
    _, state = env.reset(jax.random.key(0))
    expected = env.step(jax.random.key(0), state, jnp.int32(1))[0]
    np.testing.assert_array_equal(env.step(jax.random.key(0), state, action)[0], expected)


def test_names_and_environments_are_checked():
    with pytest.raises(ValueError, match="did you mean CartPole-v1"):
        envs.environment("CartPole-v7")
    assert envs.from_gymnax(envs.make("Pendulum-v1")[0], name="mine").name == "mine"
    assert envs.environment("FrozenLake-v1", is_slippery=False).name == "FrozenLake-v1"


def test_spaces_of_either_library():
    assert envs.space_of(gymnasium.spaces.Discrete(3)) == Discrete(3)
    assert envs.space_of(spaces.Discrete(3)) == envs.space_of(Discrete(3)) == Discrete(3)
    low, high = np.array([[0, -np.inf], [1, np.inf]], np.float32)
    box = gymnasium.spaces.Box(low, high, dtype=np.float32)
    expected = Box((0.0, -np.inf), (1.0, np.inf), (2,))
    assert envs.space_of(box) == expected
    largest = jnp.asarray([1, jnp.finfo(jnp.float32).max])
    assert envs.space_of(spaces.Box(jnp.array([0, -largest[1]]), largest, (2,))) == expected
    assert not envs.space_of(box).bounded
    pixels = envs.space_of(gymnasium.spaces.Box(0, 255, (2, 1), np.uint8))
    assert pixels == Box((0.0, 0.0), (255.0, 255.0), (2, 1), np.dtype(np.uint8))
    for space in (gymnasium.spaces.Discrete(3, start=1), gymnasium.spaces.MultiBinary(2), None):
        with pytest.raises(ValueError, match="it must be Discrete"):
            envs.space_of(space, "it")
