"""Costs made up for tests: of every mapping of an experiment, without measuring anything."""

import random

from accel_rl.compose import EXECUTORS, Cost, Costs
from accel_rl.compose.candidates import alike, distinct, mappings_of, options
from accel_rl.compose.costs import fused_key, trial_key
from accel_rl.compose.devices import find
from accel_rl.compose.workload import STEPS
from accel_rl.experiment import assemble, configuration, layers

SMALL = {
    "replay.sampler": "prioritised",
    "replay.batch_size": 8,
    "replay.capacity": 64,
    "schedule.num_envs": 1,
    "schedule.learning_starts": 16,
    "agent.hidden": [8],
    "compose.devices": ["cpu:0", "cpu:1", "native"],
}


def loaded(**sections):
    """An experiment: SMALL, and other settings by section."""
    given = {
        f"{section}.{name}": value
        for section in sections
        for name, value in sections[section].items()
    }
    tables = layers.resolve("dqn", "CartPole-v1", None, SMALL | given, [], "compose")
    return assemble(configuration.from_mapping(tables))


SMALL_DQN = loaded()


def devices_of(wanted):
    """Devices of an experiment, by name."""
    return find(wanted.configuration.compose.devices)


def made_up(wanted=SMALL_DQN, seed=0, slowdown=1.0, handoff=0.0):
    """Costs of every step of every mapping, drawn between 10 and 500 us."""
    draw = random.Random(seed)
    devices = devices_of(wanted)
    costs = Costs(alike(devices), {}, {}, {}, handoff, 0.0, stretch=dict.fromkeys(EXECUTORS, 1.0))
    for mapping in mappings(wanted):
        if mapping.executor == "fused":
            cost = Cost(draw.uniform(1e-4, 2e-3), 0.0, "measured")
            costs.fused_iterations.setdefault(fused_key(mapping, costs.alike), cost)
            continue
        for step in STEPS:
            cost = Cost(draw.uniform(1e-5, 5e-4), 0.0, "measured")
            costs.steps.setdefault(costs.key(mapping, step), cost)
            for other in STEPS:
                factor = draw.uniform(1.0, slowdown)
                costs.slowdowns.setdefault(costs.key(mapping, step, other), factor)
    costs.trials.update({trial_key(each, costs.alike): 1.0 for each in mappings(wanted)})
    return costs


def mappings(wanted=SMALL_DQN):
    """All mappings of an experiment that differ in more than names of like devices."""
    devices = devices_of(wanted)
    return distinct(mappings_of(options(wanted, devices)[0], devices), alike(devices))
