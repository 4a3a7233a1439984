"""What every agent must do, beside learning the probes; see docs/agent.md.

Adding an agent is a line in `CASES`: `test_agent_contract.py` puts it through `check_contract`, and
`test_probes.py` trains it on the probes, sound and broken.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probes
import pytest

from accel_rl import agents, tabular
from accel_rl.types import Batch, Box, Discrete


@dataclasses.dataclass(frozen=True)
class Case:
    """An agent under test, and what it needs to learn the probes."""

    make: Callable[..., Any]  # of both spaces
    hyper: dict = dataclasses.field(default_factory=dict)
    continuous: bool = False  # actions
    box: bool = True  # observations
    online: bool = False  # from replay.newest instead of replay.make
    iterations: int = 600  # of 8 environment steps each
    tolerance: float = 0.1  # of values
    random: bool = False  # whether learning is random

    def spaces(self):
        """Spaces of observations and of actions."""
        actions = probes.CONTINUOUS_ACTIONS if self.continuous else probes.DISCRETE_ACTIONS
        return probes.FEATURES if self.box else probes.STATES, actions


EXPLORING = {"epsilon_start": 1.0, "epsilon_end": 0.5, "epsilon_steps": 2000.0}
NET = {"hidden": (24,)}


def _dqn(box=True, **options):
    hyper = {**EXPLORING, "learning_rate": 0.01, "target_period": 5.0}
    return Case(functools.partial(agents.dqn, **NET, **options), hyper, box=box)


def _normalised():
    """Reads observations less their mean, over their standard deviation."""
    plain = _dqn()
    return dataclasses.replace(
        plain, make=lambda *spaces: agents.normalise_observations(plain.make(*spaces))
    )


def _actor_critic(make, **hyper):
    rates = {"actor_learning_rate": 0.001, "critic_learning_rate": 0.01, "tau": 0.05}
    hyper = {**rates, "random_steps": 4000.0, **hyper}
    make = functools.partial(make, **NET)
    return Case(make, hyper, continuous=True, iterations=1000, random=True)


def _tabular(rule):
    hyper = {**EXPLORING, "alpha": 0.1}
    make = functools.partial(agents.tabular, rule)
    return Case(make, hyper, box=False, online=True, iterations=400, random=rule.random)


CASES = {
    "dqn": _dqn(double=False),
    "dqn_of_discrete_observations": _dqn(double=False, box=False),
    "double_dueling_dqn": _dqn(double=True, dueling=True, loss="huber"),
    "c51": _dqn(distributional="c51", num_atoms=25, value_range=(-3.0, 3.0)),
    "quantile": _dqn(distributional="quantile", num_atoms=8),
    "normalised_dqn": _normalised(),
    "ddpg": _actor_critic(agents.ddpg, noise_scale=0.3),
    "td3": _actor_critic(agents.td3, noise_scale=0.3),
    "sac": _actor_critic(agents.sac, initial_temperature=0.01, temperature_learning_rate=0.0),
    "q_learning": _tabular(tabular.q_learning()),
    "sarsa": _tabular(tabular.sarsa()),
    "expected_sarsa": _tabular(tabular.expected_sarsa()),
    "double_q_learning": _tabular(tabular.double_q_learning()),
    "int32_q_learning": _tabular(tabular.q_learning(tabular.int32_pow2())),
}
# One of each kind trains on the probes in every run of the tests, the others in the slow ones.
QUICK = {"double_dueling_dqn", "c51", "td3", "sac", "q_learning", "sarsa"}

ENVS, ITEMS = 5, 6
LEFT_OUT = 2  # the item of weight 0


def check_contract(case):
    """Assert the contract, function by function, for one agent."""
    agent = case.make(*case.spaces())
    assert (agent.observation_space, agent.action_space) == case.spaces()
    check_bad_input(case, agent)
    found = jax.jit(functools.partial(play, case, agent))(jax.random.key(1))
    check_hyperparameters(agent, found["swept"])
    check_actions(agent, found)
    check_learning(case, found)


def play(case, agent, key):
    """What the agent's functions give, all in one compiled program."""
    keys = iter(jax.random.split(key, 10))
    state = agent.init(next(keys), **case.hyper)
    policy, memory = agent.policy(state), agent.memory(ENVS)
    observation = probes.observe(jnp.arange(ENVS) % 2, case.box)
    act = functools.partial(agent.act, policy, memory, observation)
    acting = jax.vmap(lambda key: act(key, 100))(jax.random.split(next(keys), 64))
    greedy = [act(next(keys), step, explore=False)[0] for step in (0, 100_000)]

    batch, weights = batch_of(case, agent, next(keys)), jnp.ones(ITEMS)
    learn_key = next(keys)
    # Three updates at once: as alone, and with an item of weight 0, whatever that says.
    other = jax.tree.map(lambda leaf: leaf.at[LEFT_OUT].set(leaf[LEFT_OUT - 1]), batch)
    other = dataclasses.replace(other, reward=other.reward.at[LEFT_OUT].set(1e3))
    without = weights.at[LEFT_OUT].set(0)
    mapped = jax.vmap(agent.learn, (None, 0, 0, None))(
        state, stacked(batch, batch, other), stacked(weights, without, without), learn_key
    )
    # Single items: any one, and one at the end of its episode, of which nothing follows.
    single = jax.tree.map(lambda leaf: leaf[:1], batch)
    last = dataclasses.replace(single, discount=jnp.zeros(1))
    elsewhere = dataclasses.replace(last, next_observation=batch.next_observation[1:2])
    singles = stacked(single, last, elsewhere)
    critics = agent.critics(state)
    return {
        "swept": jax.vmap(lambda hyper: agent.init(key, **hyper))(swept(agent)),
        "state": state,
        "memory": memory,
        "actions": acting[0],
        "memories": acting[1],
        "greedy": greedy,
        "learned": agent.learn(state, batch, weights, learn_key),
        "mapped": mapped,
        "td_error": agent.td_error(critics, batch, learn_key),
        "singles": jax.vmap(agent.td_error, (None, 0, None))(critics, singles, learn_key)[:, 0],
        "learned_singles": jax.vmap(
            lambda item: agent.learn(state, item, jnp.ones(1), learn_key)[1].td_error[0]
        )(singles),
    }


def stacked(*trees):
    """Trees as one, with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def batch_of(case, agent, key):
    """Six transitions between both states, of which one ends its episode."""
    first, second, third = jax.random.split(key, 3)
    states = jax.random.bernoulli(first, shape=(2, ITEMS)).astype(jnp.int32)
    space = agent.action_space
    if isinstance(space, Discrete):
        action = jax.random.randint(second, (2, ITEMS), 0, space.n, jnp.int32)
    else:
        low, high = np.float32(space.low), np.float32(space.high)
        action = jax.random.uniform(second, (2, ITEMS, 1), minval=low, maxval=high)
    return Batch(
        observation=probes.observe(states[0], case.box),
        action=action[0],
        reward=jax.random.normal(third, (ITEMS,)),
        discount=jnp.full(ITEMS, 0.5).at[-1].set(0),
        next_observation=probes.observe(states[1], case.box),
        extras=action[1] if agent.needs_next_action else None,
    )


def swept(agent):
    """Values of each hyper-parameter [1 + N]: defaults, then one after the other changed."""
    names = list(agent.hyperparameters)
    values = {}
    for row, name in enumerate(names, start=1):
        limits = agent.hyperparameters[name]
        changed = (limits.low + limits.default) / 2
        if changed == limits.default:
            changed = min(limits.high, limits.default + 0.5)
        column = np.full(1 + len(names), limits.default, np.float32)
        column[row] = changed
        values[name] = jnp.asarray(column)
    return values


def check_hyperparameters(agent, states):
    """Each is a leaf of the state, so that `vmap` sweeps it."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(states)]
    for row, name in enumerate(agent.hyperparameters, start=1):
        assert any((leaf[row] != leaf[0]).any() for leaf in leaves), f"{name} is not in the state"


def check_actions(agent, found):
    """Actions are of the space; without exploring they are the policy's, whatever the key."""
    space = agent.action_space
    dtype = jax.dtypes.canonicalize_dtype(space.dtype)
    actions = np.asarray(found["actions"])
    assert (actions.shape, actions.dtype) == ((64, ENVS, *space.shape), dtype)
    low, high = (0, space.n - 1) if isinstance(space, Discrete) else (space.low, space.high)
    assert (actions >= low).all()
    assert (actions <= high).all()
    assert (actions != actions[0]).any(), "exploring tries nothing"
    np.testing.assert_array_equal(*found["greedy"])
    assert found["greedy"][0].shape == actions.shape[1:]
    for old, new in zip(
        jax.tree.leaves(found["memory"]), jax.tree.leaves(found["memories"]), strict=True
    ):
        assert old.shape[0] == ENVS
        assert (new.shape[1:], new.dtype) == (old.shape, old.dtype)


def check_learning(case, found):
    """A step of learning keeps shapes, heeds weights and ends, and is the same under `vmap`."""
    state, learned = found["learned"]
    same_types(state, found["state"])
    assert any(
        (np.asarray(a) != np.asarray(b)).any()
        for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(found["state"]), strict=True)
    ), "learning changes nothing"
    for error in (learned.td_error, found["td_error"]):
        assert (error.shape, error.dtype) == ((ITEMS,), np.float32)
        assert np.isfinite(error).all()
    assert learned.metrics
    for metric in learned.metrics.values():
        assert (metric.shape, metric.dtype) == ((), np.float32)
        assert np.isfinite(metric)
    alone, weighed, weighed_otherwise = (
        jax.tree.map(lambda leaf, n=n: leaf[n], found["mapped"]) for n in range(3)
    )
    close(alone, found["learned"], "vmap")
    close(weighed[0], weighed_otherwise[0], "an item of weight 0 counts")
    kept = np.arange(ITEMS) != LEFT_OUT
    close(weighed[1].td_error[kept], weighed_otherwise[1].td_error[kept], "it changes others")
    single, last, elsewhere = found["singles"]
    close(last, elsewhere, "what follows the end of an episode counts")
    close(last, found["learned_singles"][1], "td_error is not what learning finds")
    if not case.random:
        close(single, found["learned_singles"][0], "td_error is not what learning finds")


def check_bad_input(case, agent):
    """What does not fit is refused by name."""
    observations, actions = case.spaces()
    unbounded = Box((-np.inf,), (np.inf,), (1,))
    other_kind = probes.DISCRETE_ACTIONS if case.continuous else probes.CONTINUOUS_ACTIONS
    for wrong in (None, unbounded, other_kind):
        with pytest.raises(TypeError, match="action space"):
            case.make(observations, wrong)
    with pytest.raises(TypeError, match="observation"):
        case.make(None, actions)
    with pytest.raises(TypeError, match="no hyper-parameter 'nonsense'"):
        agent.init(jax.random.key(0), nonsense=1.0)
    for name, limits in agent.hyperparameters.items():
        with pytest.raises(ValueError, match=f"{name} must be from"):
            agent.init(jax.random.key(0), **{name: limits.high * 2 + 1})


def same_types(tree, other):
    """Both have the structure, shapes and dtypes of a carry."""
    assert jax.tree.structure(tree) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)


def close(tree, other, message):
    """Both are the same but for rounding."""
    for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5, err_msg=message)
