"""Environments: finite MDPs as tables or gymnax environments, and gymnax's own by name.

Importing this package does not import gymnax; `make` and `TabularEnv` do.
"""

from typing import Any

from accel_rl.envs import dynamics, wrappers
from accel_rl.envs.adapter import action_of, environment, from_gymnax, space_of
from accel_rl.envs.atari import atari
from accel_rl.envs.cliff_walking import cliff_walking
from accel_rl.envs.dynamics import MDPSampler, make_sampler
from accel_rl.envs.frozen_lake import frozen_lake
from accel_rl.envs.host import HostEnvironment, HostStep, host_environment, is_host
from accel_rl.envs.registry import layout, list_environments, make, make_mdp, register
from accel_rl.envs.render import render_ansi
from accel_rl.envs.tables import build_mdp
from accel_rl.envs.taxi import taxi

__all__ = [
    "HostEnvironment",
    "HostStep",
    "MDPSampler",
    "TabularEnv",
    "action_of",
    "atari",
    "build_mdp",
    "cliff_walking",
    "dynamics",
    "environment",
    "from_gymnax",
    "frozen_lake",
    "host_environment",
    "is_host",
    "layout",
    "list_environments",
    "make",
    "make_mdp",
    "make_sampler",
    "register",
    "render_ansi",
    "space_of",
    "taxi",
    "wrappers",
]


def __getattr__(name: str) -> Any:
    if name == "TabularEnv":
        from accel_rl.envs.tabular_env import TabularEnv

        return TabularEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
