"""Costs made up for tests: of every mapping of a spec, without measuring anything."""

import random

from accel_rl.compose import EXECUTORS, Cost, Costs, Spec
from accel_rl.compose.candidates import alike, distinct, mappings_of, options
from accel_rl.compose.costs import fused_key, trial_key
from accel_rl.compose.devices import find
from accel_rl.compose.workload import STEPS

SPEC = Spec(
    "dqn",
    "CartPole-v1",
    replay="prioritised",
    devices=("cpu:0", "cpu:1", "native"),
    batch_size=8,
    capacity=64,
    learning_starts=16,
    agent={"hidden": (8,)},
)


def made_up(spec=SPEC, seed=0, slowdown=1.0, handoff=0.0):
    """Costs of every step of every mapping, drawn between 10 and 500 us."""
    draw = random.Random(seed)
    devices = find(spec.devices)
    costs = Costs(alike(devices), {}, {}, {}, handoff, 0.0, stretch=dict.fromkeys(EXECUTORS, 1.0))
    for mapping in mappings(spec):
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
    costs.trials.update(
        {trial_key(each, costs.alike): 1.0 for each in mappings(spec) if each.executor != "fused"}
    )
    return costs


def mappings(spec=SPEC):
    """All mappings of a spec that differ in more than names of like devices."""
    devices = find(spec.devices)
    return distinct(mappings_of(options(spec, devices)[0], devices), alike(devices))
