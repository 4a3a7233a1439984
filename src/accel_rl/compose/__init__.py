"""Composer after PEARL: plan which device takes which part of a training, and run it.

    wanted = experiment.load("cartpole.toml", command="compose")
    plan, surprises = compose.confirm(compose.plan(wanted))
    ran = compose.run(wanted, plan.best.mapping, jax.random.key(0), 10_000)

Reference: Meng, Kinsner, Singh, Iyer, Prasanna, "PEARL: Enabling Portable, Productive, and
High-Performance Deep Reinforcement Learning using Heterogeneous Platforms", CF 2024.
"""

from accel_rl.compose.candidates import Infeasible
from accel_rl.compose.confirmation import Surprise, confirm
from accel_rl.compose.costs import Alike, Cost, Costs
from accel_rl.compose.devices import Device, DeviceLink, Executable, Modelled, available, find
from accel_rl.compose.mapping import EXECUTORS, Mapping
from accel_rl.compose.model import Estimate, estimate
from accel_rl.compose.objectives import pareto
from accel_rl.compose.plan import Plan, plan
from accel_rl.compose.profile import profile
from accel_rl.compose.run import Ran, run
from accel_rl.compose.tabular import LogPlan, plan_log
from accel_rl.compose.workload import ROLES, STEPS, Workload, workload_of
from accel_rl.hardware_models.energy import Meter, Power

__all__ = [
    "EXECUTORS",
    "ROLES",
    "STEPS",
    "Alike",
    "Cost",
    "Costs",
    "Device",
    "DeviceLink",
    "Estimate",
    "Executable",
    "Infeasible",
    "LogPlan",
    "Mapping",
    "Meter",
    "Modelled",
    "Plan",
    "Power",
    "Ran",
    "Surprise",
    "Workload",
    "available",
    "confirm",
    "estimate",
    "find",
    "pareto",
    "plan",
    "plan_log",
    "profile",
    "run",
    "workload_of",
]
