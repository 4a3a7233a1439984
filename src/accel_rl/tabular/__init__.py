"""Tabular reinforcement learning: rules, numerics, sampling orders, passes, exact evaluation."""

from accel_rl.tabular.numerics import Numerics, fp32, int32_pow2, int32_scaled, make_numerics
from accel_rl.tabular.orders import Order, make_order
from accel_rl.tabular.passes import PATHS, select_path
from accel_rl.tabular.program import Program
from accel_rl.tabular.rules import (
    RULES,
    Hyperparameters,
    TabularRule,
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
    "Program",
    "TabularRule",
    "double_q_learning",
    "expected_sarsa",
    "fp32",
    "independent_learners",
    "int32_pow2",
    "int32_scaled",
    "make_numerics",
    "make_order",
    "make_rule",
    "q_learning",
    "sarsa",
    "select_path",
]
