"""Optimisation that all agents share, against NumPy's Adam."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from accel_rl import agents
from accel_rl.agents.updates import OPTIMISATION, make_optimiser
from accel_rl.types import Batch, Box, Discrete

HYPER = {name: jnp.float32(limits.default) for name, limits in OPTIMISATION.items()}
SPACE = Box((-np.inf,) * 3, (np.inf,) * 3, (3,))
ACTIONS = Box((-1.0,) * 2, (1.0,) * 2, (2,))
AGENTS = {
    "dqn": lambda **options: agents.dqn(SPACE, Discrete(2), hidden=(4,), **options),
    "ddpg": lambda **options: agents.ddpg(SPACE, ACTIONS, hidden=(4,), **options),
    "td3": lambda **options: agents.td3(SPACE, ACTIONS, hidden=(4,), **options),
    "sac": lambda **options: agents.sac(SPACE, ACTIONS, hidden=(4,), **options),
}


def adam(gradients, rates, decay):
    """Values after steps of AdamW from 1, float64."""
    value, mean, square = 1.0, 0.0, 0.0
    for number, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), 1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        direction = (mean / (1 - 0.9**number)) / (np.sqrt(square / (1 - 0.999**number)) + 1e-8)
        value -= rate * (direction + decay * value)
    return value


def descend(gradients, hyper, **options):
    optimiser = make_optimiser(None, **options)
    params = {"weights": jnp.ones((1, 1)), "temperature": jnp.float32(1)}
    state = optimiser.init(params)
    for gradient in gradients:
        slopes = jax.tree.map(lambda leaf, g=gradient: jnp.full_like(leaf, g), params)
        params, state = optimiser.descend(slopes, state, params, jnp.float32(0.1), hyper)
    return params


def test_rates_fall_and_weights_decay():
    gradients = np.random.default_rng(0).standard_normal(9)
    hyper = {
        "learning_rate_end": jnp.float32(0.25),
        "learning_rate_updates": jnp.float32(6),
        "weight_decay": jnp.float32(0.3),
    }
    found = descend(gradients, hyper)
    rates = 0.1 * (1 - 0.75 * np.minimum(np.arange(9) / 6, 1))
    np.testing.assert_allclose(found["weights"][0, 0], adam(gradients, rates, 0.3), rtol=1e-5)
    np.testing.assert_allclose(found["temperature"], adam(gradients, rates, 0.0), rtol=1e-5)


def test_by_default_a_rate_is_constant_to_the_bit():
    gradients = np.random.default_rng(1).standard_normal(5)
    found = descend(gradients, HYPER)
    params, state = jnp.float32(1), optax.scale_by_adam().init(jnp.float32(1))
    for gradient in gradients:
        with jax.numpy_dtype_promotion("standard"):
            direction, state = optax.scale_by_adam().update(jnp.float32(gradient), state)
        params = params - jnp.float32(0.1) * direction
    assert found["weights"][0, 0] == params


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_clips_decays_and_initialises(name):
    agent = AGENTS[name](
        max_gradient_norm=1e-3, initialisation="orthogonal", optimiser=optax.identity()
    )
    assert agent.hyperparameters.keys() >= OPTIMISATION.keys()
    rates = {each: 1.0 for each in agent.hyperparameters if each.endswith("learning_rate")}
    init = jax.jit(lambda **hyper: agent.init(jax.random.key(0), **hyper))
    learn = jax.jit(agent.learn)
    x = jnp.asarray(np.random.default_rng(0).standard_normal((6, 3)), jnp.float32)
    action = jnp.zeros((6, *agent.action_space.shape), jnp.dtype(agent.action_space.dtype))
    batch = Batch(x, action, jnp.arange(6.0), jnp.zeros(6), x)

    def moved(**hyper):
        """Norms of one update, by network."""
        before = init(**rates, **hyper)
        after, _ = learn(before, batch, jnp.ones(6), jax.random.key(1))
        names = [each for each in ("params", "actor", "critics") if hasattr(before, each)]
        return [
            float(optax.tree.norm(optax.tree.sub(getattr(after, each), getattr(before, each))))
            for each in names
        ]

    # TD3's policy moves at every second update alone.
    assert all(each == 0 or abs(each - 1e-3) < 1e-6 for each in moved())
    assert max(moved(weight_decay=0.1)) > 0.1
    assert max(moved(learning_rate_end=0.0, learning_rate_updates=1.0)) > 0
    with pytest.raises(ValueError, match="max_gradient_norm must be above 0, got -1"):
        AGENTS[name](max_gradient_norm=-1)
    with pytest.raises(ValueError, match="initialisation must be one of lecun, orthogonal"):
        AGENTS[name](initialisation="normal")
