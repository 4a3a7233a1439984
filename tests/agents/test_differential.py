"""A hundred updates of each agent against its paper in float64, with the same weights and batches.

In float32 the difference stays below 1e-5 of the largest parameter: rounding, not method.
"""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference_agents import DQN, SAC, Deterministic

from accel_rl import agents
from accel_rl.types import Batch, Box, Discrete

pytestmark = pytest.mark.long  # each compiles an agent twice

UPDATES, BATCH, WIDTH, NUM = 100, 16, 3, 2
SPACE = Box((-np.inf,) * WIDTH, (np.inf,) * WIDTH, (WIDTH,))
ACTIONS = Box((-1.0,) * NUM, (1.0,) * NUM, (NUM,))
RATE, TAU = 1e-3, 0.01
DQNS = {
    "plain": {"double": False},
    "double": {"double": True},
    "dueling": {"double": True, "dueling": True},
    "huber": {"double": False, "loss": "huber"},
    "c51": {"double": True, "distributional": "c51", "num_atoms": 11, "value_range": (-3.0, 3.0)},
    "quantile": {"double": True, "distributional": "quantile", "num_atoms": 5},
    "rainbow without noise": {
        "double": True,
        "dueling": True,
        "distributional": "c51",
        "num_atoms": 11,
        "value_range": (-3.0, 3.0),
    },
    "noisy": {"double": False, "noisy": True},
    "rainbow": {
        "double": True,
        "dueling": True,
        "noisy": True,
        "distributional": "c51",
        "num_atoms": 11,
        "value_range": (-3.0, 3.0),
    },
}


class Draws(nn.Module):
    """Noise of layers, which flax derives from a key and the path of the layer."""

    sizes: Any  # by the names of the path

    @nn.compact
    def __call__(self):
        if isinstance(self.sizes, int):
            return jax.random.normal(self.make_rng("noise"), (self.sizes,), jnp.float32)
        return {name: Draws(each, name=name)() for name, each in self.sizes.items()}


def noise_of(params):
    """Make `draw(key)`: the noise of an update of the online and of the target network."""

    def size(layer):
        if "kernel" in layer:
            return sum(layer["kernel"].shape)
        return {name: size(each) for name, each in layer.items()}

    draws = Draws(size(params["params"]))

    def draw(key):
        return [draws.apply({}, rngs={"noise": each}) for each in jax.random.split(key)]

    return jax.jit(draw)


def batches(discrete):
    """Transitions that are not of any environment, with importance-sampling weights."""
    rng = np.random.default_rng(0)
    for _ in range(UPDATES):
        action = rng.integers(0, 3, BATCH) if discrete else rng.uniform(-1, 1, (BATCH, NUM))
        yield (
            {
                "observation": rng.standard_normal((BATCH, WIDTH)).astype(np.float32),
                "action": action.astype(np.int32 if discrete else np.float32),
                "reward": rng.standard_normal(BATCH).astype(np.float32),
                "discount": np.float32(0.97 * (rng.random(BATCH) < 0.8)),
                "next": rng.standard_normal((BATCH, WIDTH)).astype(np.float32),
            },
            rng.uniform(0.1, 1, BATCH).astype(np.float32),
        )


def train(agent, state, reference, discrete, draw):
    """Both take the same updates; `draw(key)`: the noise that the library derives from a key."""
    learn = jax.jit(agent.learn)
    for number, (batch, weights) in enumerate(batches(discrete)):
        key = jax.random.fold_in(jax.random.key(7), number)
        given = Batch(*(batch[name] for name in ("observation", "action", "reward", "discount",
                                                 "next")))  # fmt: skip
        state, _ = learn(state, given, weights, key)
        noise = None if draw is None else jax.tree.map(np.float64, draw(key))
        with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
            wide = {
                name: np.asarray(each, np.float64) if each.dtype == np.float32 else each
                for name, each in batch.items()
            }
            reference.learn(wide, np.asarray(weights, np.float64), noise)
    return state


def assert_near(ours, theirs):
    """Compare to 1e-5 of the largest parameter of the same array, or of 1."""

    def one(a, b):
        a, b = np.asarray(a, np.float64), np.asarray(b)
        assert np.abs(a - b).max() <= 1e-5 * max(1, np.abs(b).max())

    jax.tree.map(one, ours, theirs)


@pytest.mark.parametrize("name", DQNS)
def test_dqn(name):
    options = DQNS[name]
    agent = agents.dqn(SPACE, Discrete(3), hidden=(8, 6), **options)
    state = agent.init(jax.random.key(1), learning_rate=RATE, target_period=7)
    low, high = options.get("value_range", (0, 0))
    with jax.enable_x64(True):
        reference = DQN(
            state.params,
            double=options["double"],
            dueling=options.get("dueling", False),
            loss=options.get("loss", "squared"),
            distributional=options.get("distributional"),
            atoms=options.get("num_atoms", 1),
            low=low,
            high=high,
            rate=float(np.float32(RATE)),
            period=7,
        )
    draw = noise_of(state.params) if options.get("noisy") else None
    after = train(agent, state, reference, True, draw)
    assert_near(after.params, reference.params)
    assert_near(after.target, reference.target)
    moved = jax.tree.map(lambda a, b: float(jnp.abs(a - b).max()), after.params, state.params)
    assert min(jax.tree.leaves(moved)) > 100 * 1e-5


def rates():
    exact = float(np.float32(RATE))
    return {"rate": exact, "tau": float(np.float32(TAU))}


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("name", ["ddpg", "td3"])
def test_deterministic_policies(name, loss):
    agent = getattr(agents, name)(SPACE, ACTIONS, hidden=(8, 6), loss=loss)
    state = agent.init(
        jax.random.key(1), actor_learning_rate=RATE, critic_learning_rate=RATE, tau=TAU
    )
    own = {"smoothing": (float(np.float32(0.2)), 0.5), "delay": 2} if name == "td3" else {}
    with jax.enable_x64(True):
        reference = Deterministic(state.actor, state.critics, loss=loss, **rates(), **own)
    draw = functools.partial(jax.random.normal, shape=(BATCH, NUM), dtype=jnp.float32)
    after = train(agent, state, reference, False, draw if own else None)
    for part in ("actor", "critics", "actor_target", "critics_target"):
        assert_near(getattr(after, part), getattr(reference, part))


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_sac(loss):
    agent = agents.sac(SPACE, ACTIONS, hidden=(8, 6), loss=loss)
    given = ("actor_learning_rate", "critic_learning_rate", "temperature_learning_rate")
    state = agent.init(jax.random.key(1), tau=TAU, **dict.fromkeys(given, RATE))
    with jax.enable_x64(True):
        reference = SAC(state.actor, state.critics, entropy=-NUM, loss=loss, **rates())
    draw = functools.partial(jax.random.normal, shape=(2, BATCH, NUM), dtype=jnp.float32)
    after = train(agent, state, reference, False, draw)
    for part in ("actor", "critics", "critics_target", "log_temperature"):
        assert_near(getattr(after, part), getattr(reference, part))
