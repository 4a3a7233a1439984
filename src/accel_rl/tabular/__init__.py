"""Tabular reinforcement learning: rules, numerics, sampling orders, passes and evaluation."""

from accel_rl.tabular.evaluate import (
    episode_return,
    monte_carlo_return,
    optimal_return,
    policy_evaluation,
    value_iteration,
)
from accel_rl.tabular.fit import fit_mdp
from accel_rl.tabular.numerics import Numerics, fp32, int32_pow2, int32_scaled, make_numerics
from accel_rl.tabular.orders import Order, make_order
from accel_rl.tabular.passes import PATHS, select_path
from accel_rl.tabular.policies import epsilon_greedy, greedy_policy, uniform_policy
from accel_rl.tabular.program import PassProgram
from accel_rl.tabular.rule import Hyperparameters, TabularRule, build_rule
from accel_rl.tabular.rules import (
    RULES,
    double_q_learning,
    expected_sarsa,
    independent_learners,
    make_rule,
    q_learning,
    sarsa,
)

__all__ = [
    "PATHS",
    "RULES",
    "Hyperparameters",
    "Numerics",
    "Order",
    "PassProgram",
    "TabularRule",
    "build_rule",
    "double_q_learning",
    "episode_return",
    "epsilon_greedy",
    "expected_sarsa",
    "fit_mdp",
    "fp32",
    "greedy_policy",
    "independent_learners",
    "int32_pow2",
    "int32_scaled",
    "make_numerics",
    "make_order",
    "make_rule",
    "monte_carlo_return",
    "optimal_return",
    "policy_evaluation",
    "q_learning",
    "sarsa",
    "select_path",
    "uniform_policy",
    "value_iteration",
]
