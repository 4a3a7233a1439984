"""Composer after PEARL: plan which device takes which part of a training, and run it.

    spec = compose.Spec("dqn", "CartPole-v1", replay="prioritised", devices=("cpu:0", "native"))
    plan = compose.plan(spec)
    ran = compose.run(spec, plan.best.mapping, jax.random.key(0), 10_000)

Reference: Meng, Kinsner, Singh, Iyer, Prasanna, "PEARL: Enabling Portable, Productive, and
High-Performance Deep Reinforcement Learning using Heterogeneous Platforms", CF 2024.
"""

from accel_rl.compose.candidates import Infeasible
from accel_rl.compose.costs import Alike, Cost, Costs
from accel_rl.compose.devices import Device, Executable, Link, Modelled, available, find
from accel_rl.compose.energy import Meter, Power
from accel_rl.compose.mapping import EXECUTORS, Mapping
from accel_rl.compose.model import Estimate, estimate
from accel_rl.compose.objectives import pareto
from accel_rl.compose.pearl import pearl_mapping
from accel_rl.compose.plan import Plan, plan
from accel_rl.compose.portability import performance_portability
from accel_rl.compose.profile import profile
from accel_rl.compose.run import Ran, run
from accel_rl.compose.spec import ALGORITHMS, OBJECTIVES, Spec
from accel_rl.compose.tabular import LogPlan, plan_log
from accel_rl.compose.workload import ROLES, STEPS, Workload

__all__ = [
    "ALGORITHMS",
    "EXECUTORS",
    "OBJECTIVES",
    "ROLES",
    "STEPS",
    "Alike",
    "Cost",
    "Costs",
    "Device",
    "Estimate",
    "Executable",
    "Infeasible",
    "Link",
    "LogPlan",
    "Mapping",
    "Meter",
    "Modelled",
    "Plan",
    "Power",
    "Ran",
    "Spec",
    "Workload",
    "available",
    "estimate",
    "find",
    "pareto",
    "pearl_mapping",
    "performance_portability",
    "plan",
    "plan_log",
    "profile",
    "run",
]
