"""The library's training in a setting of `training.py`."""

from collections.abc import Callable
from typing import Any

import jax
from training_settings import (
    ENVIRONMENT,
    EPSILON_END,
    EPSILON_START,
    GAMMA,
    LEARNING_RATE,
    LEARNING_STARTS,
    Setting,
)

from accel_rl import agents, envs, replay, train


def hyperparameters(setting: Setting, total: int) -> dict[str, Any]:
    """Return the arguments of `Program.init`."""
    agent = {
        "learning_rate": LEARNING_RATE,
        "epsilon_start": EPSILON_START,
        "epsilon_end": EPSILON_END,
        "epsilon_steps": total / 2,
        "target_period": setting.target_updates,
    }
    return {"agent": agent, "gamma": GAMMA}


def make_agent(setting: Setting) -> agents.Agent:
    """Return the agent that learns as the plain loop does: neither double nor dueling."""
    env = envs.environment(ENVIRONMENT)
    return agents.dqn(env.observation_space, env.action_space, hidden=setting.hidden, double=False)


def make_program(setting: Setting, sampler: str = "uniform") -> train.Program:
    """Return the setting as a training program."""
    env, agent = envs.environment(ENVIRONMENT), make_agent(setting)
    memory = replay.make(
        train.example(env, agent),
        setting.capacity,
        setting.batch_size,
        sampler,
        num_envs=setting.num_envs,
    )
    return train.make(
        env, agent, memory, num_envs=setting.num_envs, learning_starts=LEARNING_STARTS
    )


def make_train(
    setting: Setting, total: int, sampler: str = "uniform"
) -> Callable[[jax.Array], train.FusedResult]:
    """Return a function from a key to what `total` environment steps end with."""
    run = train.fused(make_program(setting, sampler), total)
    hyper = hyperparameters(setting, total)

    def from_key(key: jax.Array) -> train.FusedResult:
        return run(key, **hyper)

    return from_key
