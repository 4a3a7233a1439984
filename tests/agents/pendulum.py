"""Pendulum, learned in 6,000 steps: greedy returns are about -150, random ones about -1,200."""

import jax
import numpy as np

from accel_rl import envs, replay, train


def returns(make, seeds=2):
    """Means of 20 greedy episodes after training, one for each seed."""
    env = envs.environment("Pendulum-v1")
    agent = make(env.observation_space, env.action_space)
    memory = replay.make(train.example(env, agent), 6_000, 128, num_envs=1)
    run = train.fused(train.make(env, agent, memory, learning_starts=1_000), 6_000)
    evaluate = train.evaluator(env, agent, 20, 200)

    def train_and_evaluate(key):
        hyper = {"actor_learning_rate": 2e-3, "critic_learning_rate": 2e-3, "tau": 0.02}
        state = run(key, agent=hyper).state
        return evaluate(agent.policy(state.agent), jax.random.key(1)).mean()

    keys = jax.random.split(jax.random.key(0), seeds)
    return np.asarray(jax.jit(train.over_seeds(train_and_evaluate))(keys))
