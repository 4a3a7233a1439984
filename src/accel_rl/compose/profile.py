"""Profiling: costs of a training's steps on devices, alone and concurrent."""

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Callable
from collections.abc import Mapping as Table

import jax

from accel_rl.arguments import instance, one_of, real
from accel_rl.compose import spec as specs
from accel_rl.compose import timing
from accel_rl.compose.candidates import alike
from accel_rl.compose.costs import Cost, Costs, fused_key, trial_key
from accel_rl.compose.devices import Device
from accel_rl.compose.devices.links import measured_link
from accel_rl.compose.mapping import Mapping
from accel_rl.compose.modelled import STORE, modelled_cost, modelled_slowdowns
from accel_rl.compose.placing import executable, placement, program_for, stand_ins
from accel_rl.compose.spec import Spec
from accel_rl.compose.trial import trial
from accel_rl.compose.workload import STEPS
from accel_rl.train.pipeline.arguments import initial_state
from accel_rl.train.pipeline.profiling import StepHarness


def check_seconds(seconds: float) -> None:
    """Raise TypeError or ValueError unless `seconds` is a valid measurement time."""
    if not 0 < real("seconds", seconds) < math.inf:
        raise ValueError(f"seconds must be above 0 and finite, got {seconds}")


Progress = Callable[[str, int, int], None]
"""progress(present measurement, number done, total number)."""

TRIED = 12  # mappings of each executor, at most, that are run to measure what the model omits


def profile(
    spec: Spec,
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
      spec: the training.
      devices: by name.
      mappings: those to estimate; each measurement is made once for all.
      known: earlier costs; only what is missing is measured.
      seconds: of each measurement.
      progress: called before each mapping.

    Raises:
      TypeError: if an argument is of another type.
      ValueError: if `seconds` is not above 0 and finite, or a mapping names an unknown device.
    """
    instance("spec", spec, Spec)
    check_seconds(seconds)
    for mapping in mappings:
        instance("each of mappings", mapping, Mapping)
        for name in mapping.devices:
            one_of("each device of a mapping", name, devices)
    if known is None:
        known = Costs(
            alike(devices),
            {},
            {},
            {},
            timing.handing_off(),
            timing.around_a_step(),
            group=specs.group(spec),
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
            costs.links[name] = measured_link(executable(devices, name).jax_device, seconds)
    workload = specs.workload(spec)
    for number, mapping in enumerate(mappings):
        if progress is not None:
            progress(str(mapping), number, len(mappings))
        if mapping.executor == "fused":
            _measure_fused(spec, devices, mapping, costs, seconds)
            continue
        real = stand_ins(mapping, devices)
        _measure(spec, devices, real, costs, seconds, store=real != mapping)
        if real != mapping:
            for step in STEPS:
                found = modelled_cost(step, mapping, devices, workload, costs)
                costs.steps[costs.key(mapping, step)] = found
            costs.slowdowns.update(modelled_slowdowns(mapping, devices, costs))
    for executor in ("deterministic", "asynchronous"):
        able = [each for each in mappings if each.executor == executor]
        able = [each for each in able if stand_ins(each, devices) == each]
        # Spread over the list, because its neighbours differ in one role only.
        able = able[:: max(1, len(able) // TRIED)][:TRIED]
        for mapping in able:
            key = trial_key(mapping, costs.alike)
            if key not in costs.trials:
                if progress is not None:
                    progress(f"trial of {mapping}", len(mappings) - 1, len(mappings))
                costs.trials[key] = trial(spec, devices, mapping, costs, seconds)
        if able:
            ratios = [costs.trials[trial_key(each, costs.alike)] for each in able]
            costs.stretch[executor] = statistics.median(ratios)
    if progress is not None:
        progress("done", len(mappings), len(mappings))
    return costs


def _measure_fused(
    spec: Spec, devices: Table[str, Device], mapping: Mapping, costs: Costs, seconds: float
) -> None:
    """Measure an iteration of the fused program in its steady state."""
    key = fused_key(mapping, costs.alike)
    if key in costs.fused_iterations:
        return
    program = program_for(spec, mapping, devices)
    device = executable(devices, mapping.learner[0]).jax_device
    state = initial_state(program, jax.random.key(0), specs.hyper(spec))
    state = jax.device_put(state, device, may_alias=False)  # copied because `segment` donates it
    segment = jax.jit(program.segment, static_argnums=2, donate_argnums=0)
    state, _ = segment(state, program.schedule.warmup, False)
    held = [state]

    def run(iterations: int) -> None:
        held[0], metrics = segment(held[0], iterations, True)
        jax.block_until_ready(metrics)

    run(1)
    iterations, taken = 1, timing.once(lambda: run(1))
    while taken < seconds / 4:  # the overhead of a call dominates short ones
        iterations *= 4
        taken = timing.once(functools.partial(run, iterations))
    iterations = max(1, round(iterations * seconds / taken))
    timed = timing.alone(lambda: run(iterations), timing.REPEATS * seconds)
    costs.fused_iterations[key] = Cost(
        timed.median / iterations, timed.spread / iterations, "measured"
    )


def _measure(
    spec: Spec,
    devices: Table[str, Device],
    mapping: Mapping,
    costs: Costs,
    seconds: float,
    store: bool,
) -> None:
    """Measure steps of an executable mapping and pairs of them; if `store`, also its own part."""
    taken_steps = [step for step in STEPS if step != "update" or costs.group is None]
    pairs = [pair for pair in itertools.combinations(taken_steps, 2) if _meet(*pair)]
    wanted = [costs.key(mapping, step) for step in STEPS]
    both = [costs.key(mapping, *pair) for pair in pairs]
    apart = [costs.key(mapping, step) for step in STORE.values()] if store else []
    if all(key in costs.steps for key in wanted + apart) and all(
        k in costs.slowdowns for k in both
    ):
        return
    program = program_for(spec, mapping, devices)
    calls = StepHarness(program, placement(mapping, devices), specs.hyper(spec)).steps
    for step in (*STEPS, *(STORE.values() if store else ())):
        key = costs.key(mapping, step)
        if key not in costs.steps:
            timed = timing.alone(calls[step], seconds)
            costs.steps[key] = Cost(timed.median, timed.spread, "measured")
    for first, second in pairs:
        key = costs.key(mapping, first, second)
        if key not in costs.slowdowns:
            taken = timing.together(calls[first], calls[second], seconds)
            for one, other, found in ((first, second, taken[0]), (second, first, taken[1])):
                factor = found / costs.step(mapping, one).seconds
                costs.slowdowns[costs.key(mapping, one, other)] = max(1.0, factor)


def _meet(first: str, second: str) -> bool:
    """Return True if two steps may overlap; one worker runs both `learn` and `sync`."""
    return {first, second} != {"learn", "sync"}
