"""Probe environments: six tiny tasks, each of which asks for one thing that an agent must do.

All have the states 0 and 1 and the same spaces, and a probe's number may be traced: so one compiled
program serves all of them, under `vmap`. After rejax's tests and Jones, "Debugging RL", 2021; the
sixth is for truncation.
"""

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl.types import Box, Discrete, Environment

NAMES = ("constant", "observation", "discounting", "choice", "both", "truncation")
CONSTANT, OBSERVATION, DISCOUNTING, CHOICE, BOTH, TRUNCATION = range(6)
GAMMA = 0.5

DISCRETE_ACTIONS = Discrete(2)
CONTINUOUS_ACTIONS = Box((-1.0,), (3.0,), (1,))  # not around 0, so that scaling matters
STATES = Discrete(2)
FEATURES = Box((-1.0,), (1.0,), (1,))

# What the probes are worth if the best is done, and where they ever are: [6, 2], probe and state.
VALUES = np.array([[1, 0], [-1, 1], [GAMMA, 1], [1, 0], [1, 1], [1 / (1 - GAMMA), 0]])
VISITED = np.array([[1, 0], [1, 1], [1, 1], [1, 0], [1, 1], [1, 1]], bool)
MATTERS = np.array([[0, 0], [0, 0], [0, 0], [1, 0], [1, 1], [0, 0]], bool)  # what is done there


def best_action(state, continuous):
    """The action that the probes "choice" (in state 0) and "both" reward with 1."""
    best = jnp.where(state == 0, 1, 0)
    if continuous:
        return 2 * best[..., None].astype(jnp.float32)  # 2 and 0: not in the middle, which is 1
    return best.astype(jnp.int32)


def observe(state, box):
    """The observation of a state: its number, or a number of [-1, 1] as a Box."""
    return 2 * state[..., None].astype(jnp.float32) - 1 if box else state.astype(jnp.int32)


def probe(number, *, continuous=False, box=True):
    """Probe `number`: an int, or a traced int32.

    constant: reward 1, and the end. observation: reward -1 or 1 by the state, and the end.
    discounting: state 0, reward 0, then state 1, reward 1, and the end. choice: reward 1 for the
    best action, less for others, and the end. both: the same, the best action depends on the state.
    truncation: reward 1 in state 0 and 0 in state 1, the state stays, and the episode is cut.
    """
    number = jnp.asarray(number, jnp.int32)

    def reset(key):
        either = jax.random.bernoulli(key).astype(jnp.int32)
        two = (number == OBSERVATION) | (number == BOTH) | (number == TRUNCATION)
        state = jnp.where(two, either, 0)
        return observe(state, box), state

    def step(key, state, action):
        off = (action - best_action(state, continuous)).astype(jnp.float32)
        fit = 1 - jnp.sum(off**2) / (4 if continuous else 1)  # 1 if best; 0 if the wrong of two
        by_state = state.astype(jnp.float32)
        reward = jnp.stack([1.0, 2 * by_state - 1, by_state, fit, fit, 1 - by_state])[number]
        goes_on = (number == DISCOUNTING) & (state == 0)
        truncated = number == TRUNCATION
        final = jnp.where(goes_on, 1, state)
        observation, start = reset(key)
        final_observation = observe(final, box)
        observation = jnp.where(goes_on, final_observation, observation)
        return (
            observation,
            jnp.where(goes_on, final, start),
            reward,
            ~goes_on & ~truncated,
            truncated,
            {"final_observation": final_observation},
        )

    return Environment(
        name="probe",
        observation_space=FEATURES if box else STATES,
        action_space=CONTINUOUS_ACTIONS if continuous else DISCRETE_ACTIONS,
        reset=reset,
        step=step,
    )
