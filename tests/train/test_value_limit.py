"""Values that no return can have: the limit, the metric, the warning and the stop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import walk

from accel_rl import agents, replay, train
from accel_rl.train.value_limit import value_limit
from accel_rl.types import Batch, Box, Discrete

KEY = jax.random.key(2)
SPACES = Box((-1.0,) * 2, (1.0,) * 2, (2,)), Discrete(2)


def limit(reward, discount, metrics=(), agent=None):
    agent = agent or agents.dqn(*SPACES)
    blank = jnp.zeros((len(reward), 2))
    batch = Batch(blank, jnp.zeros(len(reward), int), *map(jnp.asarray, (reward, discount)), blank)
    return float(value_limit(agent, batch, dict(metrics)))


def test_a_limit_is_the_value_of_the_best_reward_for_ever():
    rewards, discounts = np.float32([1, -3, 2]), np.float32([0.9, 0.0, 0.9])
    assert limit(rewards, discounts) == pytest.approx(20)
    value = 0.0
    for _ in range(400):
        value = 2 + 0.9 * value
    assert limit(rewards, discounts) == pytest.approx(value)
    assert limit(np.float32([0, 0]), np.float32([0.9, 0])) == 0
    assert limit(np.float32([1, 1]), np.float32([0.9, 1])) == np.inf
    assert limit(np.float32([5, 1]), np.float32([0, 0])) == 5


def test_entropy_is_rewarded_too():
    actions = Box((-1.0,) * 3, (1.0,) * 3, (3,))
    agent = agents.sac(SPACES[0], actions)
    found = limit(np.float32([1]), np.float32([0.5]), {"temperature": jnp.float32(0.2)}, agent)
    # The uniform law over [-1, 1]^3 has the most entropy, log(8).
    assert found == pytest.approx((1 + 0.2 * np.log(8)) / 0.5)


def diverging():
    """The walk with a target that follows at once, batches of two and far too long steps."""
    env = walk.environment()
    agent = agents.dqn(env.observation_space, env.action_space, hidden=(64, 64), double=False)
    memory = replay.make(train.example(env, agent), 256, 2, num_envs=4)
    program = train.make(env, agent, memory, num_envs=4, learning_starts=64, updates=4)
    # At 0.3, an asynchronous training, whose batches depend on timing, diverges in some runs only.
    rates = {"learning_rate": 1.0, "target_period": 1}
    return program, {**walk.HYPER, "agent": {**walk.HYPER["agent"], **rates}}


@pytest.mark.parametrize("executor", ["fused", "deterministic", "asynchronous"])
def test_a_training_warns_once_and_stops(executor):
    program, hyper = diverging()
    with pytest.warns(RuntimeWarning, match=r"values are .* times the most that rewards") as found:
        result = train.run(
            program, KEY, 4_000, period=40, hyper=hyper, executor=executor,
            stop=train.stop_excess(3), stop_diverged=False,
        )  # fmt: skip
    assert result.reason.startswith("stopped: value_excess is")
    assert result.reason.endswith("above 3")
    told = [row for row in result.rows if row["value_excess"] > 1.5]
    assert told
    assert len(found) == 1
    # The only reward, 1, ends the episode: no value is above it.
    assert float(result.state.value_limit) == 1
    last = result.rows[-1]
    assert last["value_excess"] == pytest.approx(abs(last["value"]), rel=1e-5)


def test_a_sound_training_does_not(recwarn):
    program = walk.program()
    result = train.run(program, jax.random.split(KEY), 2_000, hyper=walk.HYPER)
    excess = np.array([row["per_seed"]["value_excess"] for row in result.rows])
    assert np.nanmax(excess) <= 1
    assert np.isfinite(excess[-1]).all()
    assert not recwarn.list
    rule = train.stop_excess()
    assert rule(result.rows) is None


def test_a_limit_that_tolerates_less_than_all_is_refused():
    with pytest.raises(ValueError, match=r"most must be .* at least 1, got 0\.5"):
        train.stop_excess(0.5)
