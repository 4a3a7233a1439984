"""Profiling: what steps of a training cost on devices, alone and beside one another."""

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
    """Raises TypeError or ValueError unless a measurement can take as long."""
    if not 0 < real("seconds", seconds) < math.inf:
        raise ValueError(f"seconds must be above 0 and finite, got {seconds}")


Progress = Callable[[str, int, int], None]
"""progress(what is measured, how many are done, how many there are)."""

TRIED = 12  # mappings of each executor, at most, that are run to see what the model leaves out


def profile(
    spec: Spec,
    devices: Table[str, Device],
    mappings: list[Mapping],
    *,
    known: Costs | None = None,
    seconds: float = 0.15,
    progress: Progress | None = None,
) -> Costs:
    """Measures what the model needs of mappings, and models what cannot be measured.

    Each step is warmed and timed in repeats; steps of different workers also while the other
    repeats in a second thread, since threads of one host contend.

    Args:
      spec: the training.
      devices: by name.
      mappings: those that are to be estimated; each measurement is made once for all.
      known: costs that were measured before; only what is missing is measured.
      seconds: of a measurement.
      progress: called before each mapping.

    Raises:
      TypeError: if an argument is of another type.
      ValueError: if `seconds` is not above 0 and finite, or a mapping names no device of these.
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
        # Spread over the list, whose neighbours differ in one role.
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
    """An iteration of the fused program, in its steady state."""
    key = fused_key(mapping, costs.alike)
    if key in costs.fused_iterations:
        return
    program = program_for(spec, mapping, devices)
    device = executable(devices, mapping.learner[0]).jax_device
    state = initial_state(program, jax.random.key(0), specs.hyper(spec))
    state = jax.device_put(state, device, may_alias=False)  # it is given away
    segment = jax.jit(program.segment, static_argnums=2, donate_argnums=0)
    state, _ = segment(state, program.schedule.warmup, False)
    held = [state]

    def run(iterations: int) -> None:
        held[0], metrics = segment(held[0], iterations, True)
        jax.block_until_ready(metrics)

    run(1)
    iterations, taken = 1, timing.once(lambda: run(1))
    while taken < seconds / 4:  # a few tell little of many, as each call has its own cost
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
    """The steps of a mapping that runs, and pairs of them; of the store apart if asked for."""
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
    """Whether two steps may run at once: one worker takes both `learn` and `sync`."""
    return {first, second} != {"learn", "sync"}
