"""Environments of a configuration that step on the host."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from accel_rl import envs
from accel_rl.envs import HostEnvironment, families, registry
from accel_rl.experiment.configuration import EnvironmentConfig
from accel_rl.types import Environment

MOST_SCORED = 16  # environments that play evaluation episodes at the same time


def is_hosted(config: EnvironmentConfig) -> bool:
    """Return whether a configuration's environments step on the host."""
    if config.host is not None:
        return config.host
    name = config.name
    if families.is_family(name) or name in registry.list_environments(gymnax=True):
        return False
    return not (":" in name and registry.registers(name)) and envs.is_host(name)


@dataclasses.dataclass(frozen=True)
class HostSource:
    """Opens the host environments of a configuration; one that does not step is `environment`."""

    config: EnvironmentConfig
    environment: Environment

    def open(self, num_envs: int) -> HostEnvironment:
        """Open environments for training."""
        return open_environments(self.config, num_envs)

    def open_scored(self, episodes: int) -> HostEnvironment:
        """Open environments for evaluation."""
        return open_environments(self.config, min(episodes, MOST_SCORED))


def host_source(config: EnvironmentConfig) -> HostSource:
    """Make the source of a configuration's environments, of which it opens and closes one."""
    if ":" in config.name and families.is_family(config.name):
        raise ValueError(f"environment.host must be false for {config.name}, which is compiled")
    alone = dataclasses.replace(config, backend="sync", workers=None)
    with open_environments(alone, 1) as env:
        return HostSource(config, env.environment)


def open_environments(config: EnvironmentConfig, num_envs: int) -> HostEnvironment:
    """Open environments with the wrappers that a configuration asks for."""
    from gymnasium import wrappers

    chosen: list[Callable[[Any], Any]] = []
    if config.time_limit is not None:
        limit = functools.partial(wrappers.TimeLimit, max_episode_steps=config.time_limit)
        chosen.append(limit)
    if config.dtype is not None:
        chosen.append(
            functools.partial(wrappers.DtypeObservation, dtype=np.dtype(config.dtype).type)
        )
    if config.flatten:
        chosen.append(wrappers.FlattenObservation)
    workers = config.workers if config.workers is None else min(config.workers, num_envs)
    return envs.host_environment(
        config.name,
        num_envs,
        config.backend,
        workers=workers,
        wrappers=chosen,
        **config.arguments,
    )
