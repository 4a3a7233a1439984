"""Profiling: costs of a training's steps on devices, alone and concurrent."""

import dataclasses
import functools
import itertools
import statistics
from collections.abc import Callable
from collections.abc import Mapping as Table

import jax
import numpy as np

from accel_rl.arguments import within
from accel_rl.compose import timing
from accel_rl.compose.candidates import alike
from accel_rl.compose.costs import Cost, Costs, fused_key, trial_key
from accel_rl.compose.devices import Device, DeviceLink
from accel_rl.compose.mapping import EXECUTORS, Mapping
from accel_rl.compose.modelled import STORE, modelled_cost, modelled_slowdowns
from accel_rl.compose.placing import executable, placement, program_for, stand_ins
from accel_rl.compose.trials import trial
from accel_rl.compose.workload import STEPS, workload_of
from accel_rl.experiment import Experiment
from accel_rl.train import Program
from accel_rl.train.compiled import initial_state
from accel_rl.train.pipeline.learner import group_size, prioritised
from accel_rl.train.pipeline.profiling import StepHarness

Progress = Callable[[str, int, int], None]
"""progress(present measurement, number done, total number)."""

TRIED = 12  # mappings of each executor, at most, that are run to measure what the model omits
SIZES = 4, 2**24  # bytes of the transfers that measure a link's latency and bandwidth


def profile(
    experiment: Experiment,
    devices: Table[str, Device],
    mappings: list[Mapping],
    *,
    known: Costs | None = None,
    seconds: float = 0.15,
    progress: Progress | None = None,
) -> Costs:
    """Measure the costs that mappings need, and model those that cannot be measured.

    Each step is warmed up and timed in repeats. Steps of different workers are also timed while the
    other repeats in a second thread, because threads of one host contend.

    Args:
      experiment: what to train.
      devices: by name.
      mappings: those to estimate; each measurement is made once for all.
      known: earlier costs; only what is missing is measured.
      seconds: of each measurement.
      progress: called before each mapping.
    """
    within("seconds", seconds, "(0, inf)")
    tell = progress or (lambda *_: None)
    if known is None:
        handoff, bookkeeping = timing.handing_off(), timing.around_a_step()
        known = Costs(
            alike(devices), {}, {}, {}, handoff, bookkeeping, group=_group(experiment.program)
        )
    costs = dataclasses.replace(
        known,
        alike=known.alike.including(alike(devices)),
        steps=dict(known.steps),
        slowdowns=dict(known.slowdowns),
        fused_iterations=dict(known.fused_iterations),
        stretch={},
        trials=dict(known.trials),
        links=dict(known.links),
    )
    for name, device in devices.items():
        if device.status == "executable" and name not in costs.links:
            costs.links[name] = _measured_link(executable(devices, name).jax_device, seconds)
    sizes = workload_of(experiment)
    for number, mapping in enumerate(mappings):
        tell(str(mapping), number, len(mappings))
        if mapping.executor == "fused":
            _measure_fused(experiment, devices, mapping, costs, seconds)
            continue
        real = stand_ins(mapping, devices)
        _measure(experiment, devices, real, costs, seconds, store=real != mapping)
        if real != mapping:
            for step in STEPS:
                found = modelled_cost(step, mapping, devices, sizes, costs)
                costs.steps[costs.key(mapping, step)] = found
            costs.slowdowns.update(modelled_slowdowns(mapping, devices, costs))
    for executor in EXECUTORS:
        able = [each for each in mappings if each.executor == executor]
        able = [each for each in able if stand_ins(each, devices) == each]
        # Spread over the list, because its neighbours differ in one role only.
        able = able[:: max(1, len(able) // TRIED)][:TRIED]
        for mapping in able:
            key = trial_key(mapping, costs.alike)
            if key not in costs.trials:
                tell(f"trial of {mapping}", len(mappings) - 1, len(mappings))
                costs.trials[key] = trial(experiment, devices, mapping, costs, seconds).ratio
        if able:
            ratios = [costs.trials[trial_key(each, costs.alike)] for each in able]
            costs.stretch[executor] = statistics.median(ratios)
    tell("done", len(mappings), len(mappings))
    return costs


def _group(program: Program) -> int | None:
    """Return the updates per call of the pipelined executors; None if replay is prioritised."""
    return None if prioritised(program) else group_size(program)


def _measure_fused(
    experiment: Experiment,
    devices: Table[str, Device],
    mapping: Mapping,
    costs: Costs,
    seconds: float,
) -> None:
    """Measure an iteration of the fused program in its steady state."""
    key = fused_key(mapping, costs.alike)
    if key in costs.fused_iterations:
        return
    program = program_for(experiment, mapping, devices)
    device = executable(devices, mapping.learner[0]).jax_device
    state = initial_state(program, jax.random.key(0), experiment.hyper)
    state = jax.device_put(state, device, may_alias=False)  # copied because `segment` donates it
    segment = jax.jit(program.segment, static_argnums=2, donate_argnums=0)
    state, _ = segment(state, program.schedule.warmup, False)
    held = [state]

    def iterate(iterations: int) -> None:
        held[0], metrics = segment(held[0], iterations, True)
        jax.block_until_ready(metrics)

    iterate(1)
    iterations, taken = 1, timing.once(lambda: iterate(1))
    while taken < seconds / 4:  # the overhead of a call dominates short ones
        iterations *= 4
        taken = timing.once(functools.partial(iterate, iterations))
    iterations = max(1, round(iterations * seconds / taken))
    timed = timing.alone(lambda: iterate(iterations), timing.REPEATS * seconds)
    costs.fused_iterations[key] = Cost(
        timed.median / iterations, timed.spread / iterations, "measured"
    )


def _measure(
    experiment: Experiment,
    devices: Table[str, Device],
    mapping: Mapping,
    costs: Costs,
    seconds: float,
    store: bool,
) -> None:
    """Measure steps of an executable mapping and pairs of them; if `store`, also its own part."""
    steps = [
        step
        for step in (*STEPS, *(STORE.values() if store else ()))
        if costs.key(mapping, step) not in costs.steps
    ]
    taken = [step for step in STEPS if step != "update" or costs.group is None]
    pairs = [
        pair
        for pair in itertools.combinations(taken, 2)
        if pair != ("learn", "sync")  # one worker runs both, so they never overlap
        and costs.key(mapping, *pair) not in costs.slowdowns
    ]
    if not steps and not pairs:
        return
    program = program_for(experiment, mapping, devices)
    calls = StepHarness(program, placement(mapping, devices), experiment.hyper).steps
    for step in steps:
        timed = timing.alone(calls[step], seconds)
        costs.steps[costs.key(mapping, step)] = Cost(timed.median, timed.spread, "measured")
    for first, second in pairs:
        found = timing.together(calls[first], calls[second], seconds)
        for one, other, each in ((first, second, found[0]), (second, first, found[1])):
            factor = each / costs.step(mapping, one).seconds
            costs.slowdowns[costs.key(mapping, one, other)] = max(1.0, factor)


def _measured_link(device: jax.Device, seconds: float) -> DeviceLink:
    """Measure a device's link: a transfer takes half the time of a round trip from the host."""
    small, large = (_round_trip(device, size, seconds) / 2 for size in SIZES)
    bandwidth = (SIZES[1] - SIZES[0]) / max(large - small, 1e-9)
    return DeviceLink(small, bandwidth, "measured")


def _round_trip(device: jax.Device, size: int, seconds: float) -> float:
    sent = np.zeros(size, np.uint8)

    def go() -> None:
        # Force copies both ways: a CPU device might otherwise alias the host array.
        there = jax.device_put(sent, device, may_alias=False)
        np.array(jax.block_until_ready(there))

    return timing.alone(go, seconds).median
