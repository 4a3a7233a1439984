"""Bad input to `tabular` and `networks`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from refusals import INF, NAN, check_refused, rows_of

from accel_rl import envs, networks, tabular

VALUES = np.zeros((16, 4), np.float32)
POLICY = np.zeros(16, np.int32)
lake = functools.cache(lambda: envs.make_mdp("FrozenLake-v1"))
key = functools.cache(lambda: jax.random.key(0))


def reset(bits):
    return jnp.zeros_like(bits), bits


def step(state, action, bits):
    return state, state, state, bits


def simulated(policy=POLICY, episodes=2, horizon=3, **functions):
    functions = {"reset": reset, "step": step, **functions}
    return tabular.monte_carlo_return(**functions, policy=policy, key=key(), num_episodes=episodes, horizon=horizon)  # fmt: skip  # noqa: E501


def body():
    return networks.MLP((2,))


NUMERICS = "numerics must be a Numerics (tabular.make_numerics), got 'fp32'"
TABLE = {
    "tabular.make_rule": [
        (lambda: tabular.make_rule("best"), ValueError, "rule must be one of q_learning, sarsa"),
        (lambda: tabular.make_rule(None), ValueError, "got None"),
    ],
    "tabular.sarsa": [
        (lambda: tabular.sarsa(next_action="best"), ValueError, "next_action must be one of"),
    ],
    "tabular.build_rule": [
        (lambda: tabular.build_rule("x", "fp32", max), TypeError, NUMERICS),
        (lambda: tabular.build_rule("x", None, max, tables=3), ValueError, "from 1 to 2, got 3"),
        (lambda: tabular.build_rule("x", None, max, tables=1.0), TypeError, "tables must be an in"),
    ],
    "tabular.TabularRule": [
        (lambda: tabular.q_learning().init(0, 2), ValueError, "num_states must be at least 1"),
        (lambda: tabular.q_learning().init(2, 2.5), TypeError, "num_actions must be an int"),
    ],
    "tabular.make_numerics": [
        (lambda: tabular.make_numerics("fp64"), ValueError, "numerics must be one of fp32, int32"),
        (lambda: tabular.make_numerics(["fp32"]), ValueError, "got ['fp32']"),
    ],
    "tabular.make_order": [
        (lambda: tabular.make_order("X"), ValueError, "order must be one of SEQ, STR, RAN"),
        (lambda: tabular.make_order("STR", 0), ValueError, "stride must be at least 1, got 0"),
    ],
    "tabular.int32_pow2": [
        (lambda: tabular.int32_pow2(40), ValueError, "fraction_bits must be from 0 to 24, got 40"),
        (lambda: tabular.int32_pow2(16, NAN), ValueError, "gamma_max must be at least 0"),
        (lambda: tabular.int32_pow2(16, 0.9, (NAN, 1)), ValueError, "low <= high, got (nan, 1)"),
    ],
    "tabular.int32_scaled": [
        (lambda: tabular.int32_scaled(0), ValueError, "scale must be from 1 to 46340, got 0"),
        (lambda: tabular.int32_scaled(10, 0.9, (0, INF)), ValueError, "lower the scale"),
    ],
    "tabular.independent_learners": [
        (
            lambda: tabular.independent_learners(tabular.q_learning(), 0),
            *(ValueError, "num_agents must be at least 1, got 0"),
        ),
    ],
    "tabular.select_path": [
        (lambda: tabular.select_path("fast"), ValueError, "path must be one of auto, reference"),
    ],
    "tabular.uniform_policy": [
        (lambda: tabular.uniform_policy(0, 4), ValueError, "num_states must be at least 1, got 0"),
        (lambda: tabular.uniform_policy(4, 0), ValueError, "num_actions must be at least 1, got 0"),
    ],
    "tabular.epsilon_greedy": [
        (lambda: tabular.epsilon_greedy(VALUES, 2.0), ValueError, "epsilon must be from 0 to 1"),
        (lambda: tabular.epsilon_greedy(VALUES, NAN), ValueError, "from 0 to 1, got nan"),
        (lambda: tabular.epsilon_greedy(VALUES, [0.1]), ValueError, "must be a scalar, got shape"),
    ],
    "tabular.episode_return": [
        (lambda: tabular.episode_return(lake(), "x"), ValueError, "policy must be integer [S] or"),
        (lambda: tabular.episode_return(lake(), POLICY[:3]), ValueError, "shape (16,), got (3,)"),
        (lambda: tabular.episode_return(lake(), POLICY + 4), ValueError, "policy[0] is 4, not an"),
        (lambda: tabular.episode_return(lake(), VALUES), ValueError, "not probabilities that sum"),
    ],
    "tabular.optimal_return": [
        (lambda: tabular.optimal_return(lake(), -1), ValueError, "horizon must be at least 1"),
    ],
    "tabular.policy_evaluation": [
        (lambda: tabular.policy_evaluation(lake(), POLICY, NAN), ValueError, "gamma must be from"),
        (lambda: tabular.policy_evaluation(lake(), POLICY, [1, 1]), ValueError, "must be a scalar"),
    ],
    "tabular.value_iteration": [
        (lambda: tabular.value_iteration(lake(), -0.1), ValueError, "gamma must be from 0 to 1"),
    ],
    "tabular.monte_carlo_return": [
        (lambda: simulated("x"), ValueError, "policy must be integer [S] or float [S, A]"),
        (lambda: simulated(episodes=1), ValueError, "num_episodes must be at least 2, got 1"),
        (lambda: simulated(horizon=0), ValueError, "horizon must be at least 1, got 0"),
    ],
    "networks.MLP": [
        (lambda: networks.MLP((0,)), ValueError, "hidden must be at least 1, got 0"),
        (lambda: networks.MLP("ab"), TypeError, "hidden must be an int, got 'a'"),
        (lambda: networks.MLP((True,)), TypeError, "hidden must be an int, got True"),
    ],
    "networks.Dense": [
        (lambda: networks.Dense(0), ValueError, "features must be at least 1, got 0"),
        (lambda: networks.Dense(2.5), TypeError, "features must be an int, got 2.5"),
    ],
    "networks.GaussianActor": [
        (
            lambda: networks.GaussianActor(body(), 1, log_std_range=(2.0, 1.0)),
            *(ValueError, "log_std_range must rise, got (2.0, 1.0)"),
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), rows_of(TABLE))
def test_refuses(call, error, says):
    check_refused(call, error, says)
