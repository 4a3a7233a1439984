"""One training of `amper_learning.py`: all seeds of a kind of replay."""

from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from learning_curves import curve

from accel_rl import agents, envs, replay, train

UNIFORM, PER, AMPER_K, AMPER_FR = "uniform", "PER", "AMPER-k", "AMPER-fr"
SAMPLERS = {UNIFORM: "uniform", PER: "prioritised", AMPER_K: "amper_k", AMPER_FR: "amper_fr"}
NUM_ENVS = 4  # and an update after each step of all
BATCH_SIZE, HIDDEN = 32, (64, 64)
LEARNING_STARTS = 1_000
TARGET_UPDATES = 5  # between copies to the target network
EPSILON_END = 0.05  # after a quarter of the steps


class Task(NamedTuple):
    """An environment, how long it is learned, and what a difference may be."""

    environment: str
    steps: int  # of environments, over all
    max_steps: int  # of a greedy episode
    bound: float  # of the difference of AMPER's return and PER's
    gamma: float = 0.99
    learning_rate: float = 1e-3  # at the first update, and zero after the last


class Learned(NamedTuple):
    """What the seeds of one kind of replay reached."""

    steps: np.ndarray  # [N]
    curves: np.ndarray  # [seeds, N] returns of episodes while training
    final: np.ndarray  # [seeds] greedy returns

    @property
    def area(self) -> np.ndarray:
        """[seeds] means of the curves."""
        return np.asarray(self.curves.mean(1))


def train_seeds(task: Task, size: int, sampler: str, seeds: int) -> Learned:
    """Train, and play 100 greedy episodes with each final policy."""
    env = envs.environment(task.environment)
    updates = (task.steps - LEARNING_STARTS) // NUM_ENVS
    optimiser = optax.chain(
        optax.scale_by_adam(), optax.scale_by_schedule(optax.linear_schedule(1.0, 0.0, updates))
    )
    agent = agents.dqn(env.observation_space, env.action_space, hidden=HIDDEN, optimiser=optimiser)
    memory = replay.make(train.example(env, agent), size, BATCH_SIZE, sampler, num_envs=NUM_ENVS)
    program = train.make(
        env,
        agent,
        memory,
        num_envs=NUM_ENVS,
        learning_starts=LEARNING_STARTS,
    )
    run = train.fused(program, task.steps)
    play = train.evaluator(env, agent, max_steps=task.max_steps)
    hyper: dict[str, Any] = {
        "gamma": task.gamma,
        "beta_steps": task.steps,
        "agent": {
            "learning_rate": task.learning_rate,
            "target_period": TARGET_UPDATES,
            "epsilon_end": EPSILON_END,
            "epsilon_steps": task.steps / 4,
        },
    }

    def learn(key: jax.Array) -> Any:
        run_key, play_key = jax.random.split(key)
        state, metrics = run(run_key, **hyper)
        return metrics, play(agent.policy(state.agent), play_key).mean()

    keys = jax.random.split(jax.random.key(0), seeds)
    metrics, final = jax.jit(train.over_seeds(learn))(keys)
    steps, returns = curve(metrics)
    return Learned(steps, returns, np.asarray(final, np.float64))
