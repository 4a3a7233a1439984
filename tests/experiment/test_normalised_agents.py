"""Observation normalisation of every deep agent, from `agent.normalise` of a configuration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from accel_rl import experiment
from accel_rl.types import Batch, Discrete

ITEMS = 8
SETTINGS = {"agent.normalise": True, "agent.hidden": (4,)}
ENVIRONMENTS = {
    "dqn": "CartPole-v1",
    "rainbow": "CartPole-v1",
    "ddpg": "Pendulum-v1",
    "td3": "Pendulum-v1",
    "sac": "Pendulum-v1",
}


@pytest.mark.long  # compiles five agents
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_update_moves_statistics_and_networks(name):
    made = experiment.load(None, SETTINGS, agent=name, environment=ENVIRONMENTS[name])
    agent = made.program.agent
    rng = np.random.default_rng(0)
    seen = rng.normal(5, 2, (2, ITEMS, *agent.observation_space.shape)).astype(np.float32)
    if isinstance(agent.action_space, Discrete):
        action = np.zeros(ITEMS, np.int32)
    else:
        action = rng.uniform(-1, 1, (ITEMS, *agent.action_space.shape)).astype(np.float32)
    batch = Batch(seen[0], action, jnp.ones(ITEMS), jnp.full(ITEMS, 0.9), seen[1])

    @jax.jit
    def update(key):
        before = agent.init(key, **made.hyper["agent"])
        return before, agent.learn(before, batch, jnp.ones(ITEMS), key)[0]

    before, after = update(made.key)
    assert before.statistics.count == 0
    assert after.statistics.count == ITEMS
    np.testing.assert_allclose(after.statistics.mean, seen[0].mean(0), rtol=1e-5)
    np.testing.assert_allclose(after.statistics.variance, seen[0].var(0), rtol=1e-4)
    part = "params" if name in ("dqn", "rainbow") else "critics"
    old, new = (jax.tree.leaves(getattr(each.inner, part)) for each in (before, after))
    assert any(np.any(a != b) for a, b in zip(old, new, strict=True))
