"""The Ape-X training of these tests: 2 updates for each 16 steps, from 100 steps on."""

from accel_rl.remote.apex import load

SETTINGS = {
    "agent.hidden": [16],
    "apex.num_actors": 2,
    "replay.batch_size": 8,
    "replay.capacity": 2_000,
    "schedule.learning_starts": 100,
    "schedule.num_envs": 4,
    "schedule.rollout": 4,
    "schedule.updates": 2,
}


def tiny(**changes):
    """The training; changes are of the section apex."""
    return load("CartPole-v1", SETTINGS | {f"apex.{name}": changes[name] for name in changes})


TINY = tiny()
