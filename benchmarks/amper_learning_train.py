"""One training of `amper_learning.py`: all seeds of a kind of replay."""

from typing import Any, NamedTuple

import jax
import numpy as np
from learning_curves import curve

from accel_rl import agents, envs, replay, train

UNIFORM, PER, AMPER_K, AMPER_FR = "uniform", "PER", "AMPER-k", "AMPER-fr"
SAMPLERS = {UNIFORM: "uniform", PER: "prioritised", AMPER_K: "amper_k", AMPER_FR: "amper_fr"}
NUM_ENVS = 4  # and an update after each step of all
HIDDEN = (64, 64)
LEARNING_STARTS = 1_000
EPSILON_END = 0.05  # after a quarter of the steps


class Task(NamedTuple):
    """An environment, how long it is learned, and what a difference may be."""

    environment: str
    steps: int  # of environments, over all
    max_steps: int  # of a greedy episode
    bound: float  # of the difference of AMPER's return and PER's
    gamma: float = 0.99


class Settings(NamedTuple):
    """Tuned settings; the defaults were chosen for uniform replay. Leaves may be [trainings]."""

    batch_size: int = 32
    n_step: int = 1
    learning_rate: Any = 1e-3  # at the first update, and zero after the last
    target_period: Any = 5  # updates between copies to the target network
    alpha: Any = 0.6  # of priorities
    beta: Any = 0.4  # of importance-sampling weights, at first


class Learned(NamedTuple):
    """What the seeds of one kind of replay reached."""

    steps: np.ndarray  # [N]
    curves: np.ndarray  # [seeds, N] returns of episodes while training
    final: np.ndarray  # [seeds] greedy returns

    @property
    def area(self) -> np.ndarray:
        """[seeds] means of the curves."""
        return np.asarray(self.curves.mean(1))


def train_seeds(
    task: Task, size: int, sampler: str, keys: jax.Array, settings: Settings | None = None
) -> Learned:
    """Train with each key, and play 100 greedy episodes with each final policy."""
    settings = settings or Settings()
    env = envs.environment(task.environment)
    agent = agents.dqn(env.observation_space, env.action_space, hidden=HIDDEN)
    memory = replay.make(
        train.example(env, agent),
        size,
        settings.batch_size,
        sampler,
        num_envs=NUM_ENVS,
        n_step=settings.n_step,
    )
    program = train.make(
        env,
        agent,
        memory,
        num_envs=NUM_ENVS,
        learning_starts=LEARNING_STARTS,
    )
    run = train.fused(program, task.steps)
    play = train.evaluator(env, agent, max_steps=task.max_steps)

    def learn(key: jax.Array, rate: Any, period: Any, alpha: Any, beta: Any) -> Any:
        run_key, play_key = jax.random.split(key)
        state, metrics = run(
            run_key,
            gamma=task.gamma,
            beta=beta,
            beta_steps=task.steps,
            replay={} if sampler == "uniform" else {"alpha": alpha},
            agent={
                "learning_rate": rate,
                "learning_rate_end": 0.0,
                "learning_rate_updates": (task.steps - LEARNING_STARTS) // NUM_ENVS,
                "target_period": period,
                "epsilon_end": EPSILON_END,
                "epsilon_steps": task.steps / 4,
            },
        )
        return metrics, play(agent.policy(state.agent), play_key).mean()

    leaves = (np.broadcast_to(np.float32(each), keys.shape) for each in settings[2:])
    metrics, final = jax.jit(train.over_seeds(learn))(keys, *leaves)
    steps, returns = curve(metrics)
    return Learned(steps, returns, np.asarray(final, np.float64))
