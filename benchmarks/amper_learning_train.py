"""One training of `amper_learning.py`: all seeds of a kind of replay."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from learning_curves import curve

from accel_rl import agents, envs, replay, train
from accel_rl.io import atomic_write
from accel_rl.types import Environment

UNIFORM, PER, AMPER_K, AMPER_FR = "uniform", "PER", "AMPER-k", "AMPER-fr"
SAMPLERS = {UNIFORM: "uniform", PER: "prioritised", AMPER_K: "amper_k", AMPER_FR: "amper_fr"}
NUM_ENVS = 4  # and an update after each step of all
HIDDEN = (64, 64)
LEARNING_STARTS = 1_000
EPSILON_END = 0.05  # after a quarter of the steps
PLAYED_TOGETHER = 20  # environments on the host that play the greedy episodes


class Settings(NamedTuple):
    """Tuned settings; the defaults were chosen for uniform replay. Leaves may be [trainings]."""

    batch_size: int = 32
    n_step: int = 1
    learning_rate: Any = 1e-3  # at the first update, and zero after the last
    target_period: Any = 5  # updates between copies to the target network
    alpha: Any = 0.6  # of priorities
    beta: Any = 0.4  # of importance-sampling weights, at first


LEAVES = ("learning_rate", "target_period", "alpha", "beta")


class Task(NamedTuple):
    """An environment, how long it is learned, and what a difference may be."""

    environment: str
    steps: int  # of environments, over all
    max_steps: int  # of a greedy episode
    bound: float  # of the difference of AMPER's return and PER's
    gamma: float = 0.99
    seeds: int = 32
    settings: Settings = Settings()
    on_host: bool = False  # Gymnasium's environment, all seeds of which step together


class Learned(NamedTuple):
    """What the seeds of one kind of replay reached."""

    steps: np.ndarray  # [N]
    curves: np.ndarray  # [seeds, N] returns of episodes while training
    final: np.ndarray  # [seeds] greedy returns

    @property
    def area(self) -> np.ndarray:
        """[seeds] means of the curves."""
        return np.asarray(self.curves.mean(1))


def kept(folder: Path | None, name: str, learn: Callable[[], Learned]) -> Learned:
    """Return what is in a folder under a name; if nothing is, learn, and put it there."""
    if folder is None:
        return learn()
    path = folder / f"{name}.npz"
    if not path.exists():
        found = learn()
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            np.savez(file, **found._asdict())
    with np.load(path) as read:
        return Learned(**read)


def train_seeds(
    task: Task, size: int, sampler: str, keys: jax.Array, settings: Settings | None = None
) -> Learned:
    """Train with each key, and play 100 greedy episodes with each final policy."""
    settings = settings or task.settings
    if task.on_host:
        return on_host(task, size, sampler, keys, settings)
    env = envs.environment(task.environment)
    made = program(env, size, sampler, settings)
    run = train.fused(made, task.steps)
    play = train.evaluator(env, made.agent, max_steps=task.max_steps)

    def learn(key: jax.Array, *leaves: Any) -> Any:
        run_key, play_key = jax.random.split(key)
        own = settings._replace(**dict(zip(LEAVES, leaves, strict=True)))
        state, metrics = run(run_key, **hyper(task, sampler, own))
        return metrics, play(made.agent.policy(state.agent), play_key).mean()

    leaves = (np.broadcast_to(np.float32(getattr(settings, name)), keys.shape) for name in LEAVES)
    metrics, final = jax.jit(train.over_seeds(learn))(keys, *leaves)
    steps, returns = curve(metrics)
    return Learned(steps, returns, np.asarray(final, np.float64))


def on_host(task: Task, size: int, sampler: str, keys: jax.Array, settings: Settings) -> Learned:
    """Train and play likewise in Gymnasium's environments."""
    with (
        envs.host_environment(task.environment, NUM_ENVS * len(keys)) as env,
        envs.host_environment(task.environment, PLAYED_TOGETHER) as scored,
    ):
        outcome = train.run(
            program(env.environment, size, sampler, settings),
            keys,
            task.steps,
            hyper=hyper(task, sampler, settings),
            evaluation=train.Evaluation(every=task.steps, max_steps=task.max_steps),
            env=env,
            scored=scored,
        )
    rows = outcome.rows
    names = ("episode_return", "episodes")
    metrics = {name: np.transpose([row["per_seed"][name] for row in rows]) for name in names}
    metrics["steps"] = np.tile([row["steps"] for row in rows], (len(keys), 1))
    steps, returns = curve(metrics)
    return Learned(steps, returns, np.asarray(rows[-1]["per_seed"]["evaluation"], np.float64))


def program(env: Environment, size: int, sampler: str, settings: Settings) -> train.Program:
    """Make DQN's training program with a kind of replay."""
    agent = agents.dqn(env.observation_space, env.action_space, hidden=HIDDEN)
    memory = replay.make(
        train.example(env, agent),
        size,
        settings.batch_size,
        sampler,
        num_envs=NUM_ENVS,
        n_step=settings.n_step,
    )
    return train.make(env, agent, memory, num_envs=NUM_ENVS, learning_starts=LEARNING_STARTS)


def hyper(task: Task, sampler: str, settings: Settings) -> dict[str, Any]:
    """Return hyper-parameters of a training."""
    return {
        "gamma": task.gamma,
        "beta": settings.beta,
        "beta_steps": task.steps,
        "replay": {} if sampler == "uniform" else {"alpha": settings.alpha},
        "agent": {
            "learning_rate": settings.learning_rate,
            "learning_rate_end": 0.0,
            "learning_rate_updates": (task.steps - LEARNING_STARTS) // NUM_ENVS,
            "target_period": settings.target_period,
            "epsilon_end": EPSILON_END,
            "epsilon_steps": task.steps / 4,
        },
    }
