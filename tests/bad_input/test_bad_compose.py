"""Bad input to `compose` and its devices."""

import functools
from pathlib import Path

import jax
import pytest
from refusals import NAN, check_refused, rows_of

from accel_rl import compose, experiment, pim, tabular, train
from accel_rl.hardware_models import associative_memory as hardware
from accel_rl.hardware_models.pearl import pearl_mapping
from accel_rl.hardware_models.portability import performance_portability

SMALL = experiment.load(agent="dqn", environment="CartPole-v1", command="compose")
FUSED = compose.Mapping("fused", "cpu:0", "cpu:0", "cpu:0", ("cpu:0",))
COSTS = compose.Costs(compose.Alike(), {}, {}, {}, 0.0, 0.0)
SCHEDULE = train.Schedule()
RULE = tabular.q_learning()
key = functools.cache(lambda: jax.random.key(0))
here = functools.cache(compose.available)


def run(mapping=FUSED, steps=2_000, **options):
    return compose.run(SMALL, mapping, key(), steps, devices=here(), **options)


def figures():
    return hardware.load_components()


def design(**fields):
    return hardware.Design(**{"capacity": 1024, **fields})


def sampled():
    return hardware.modelled_sample(design(), figures(), energy=False)


TABLE = {
    "compose.Mapping": [
        (
            lambda: compose.Mapping("x", "a", "a", "a", ("a",)),
            *(ValueError, "executor must be one of fused, deterministic, asynchronous, got 'x'"),
        ),
        (lambda: compose.Mapping("fused", "a", "a", "a", ()), ValueError, "learner must be device"),
    ],
    "compose.DeviceLink": [
        (lambda: compose.DeviceLink(NAN, 1.0, "declared"), ValueError, "latency must be at least"),
        (lambda: compose.DeviceLink(0.0, 0.0, "declared"), ValueError, "bandwidth must be above"),
    ],
    "compose.Cost": [
        (lambda: compose.Cost(-1.0, 0.0, "measured"), ValueError, "seconds must be at least 0, go"),
        (lambda: compose.Cost(1.0, NAN, "measured"), ValueError, "spread must be at least 0, got "),
    ],
    "compose.Power": [
        (lambda: compose.Power(2.0, 1.0, "declared", "x"), ValueError, "0 <= idle <= active must"),
    ],
    "compose.Meter": [
        (lambda: compose.Meter(period=NAN), ValueError, "period must be above 0, got nan"),
    ],
    "compose.find": [
        (lambda: compose.find(("x",)), ValueError, "devices must be of cpu:0"),
        (lambda: compose.find("cpu:0"), ValueError, "devices must be of cpu:0"),
    ],
    "compose.pareto": [
        (
            lambda: compose.pareto([compose.Estimate(FUSED, 1.0, 1, {}, None, "measured")]),
            *(ValueError, "joules must be known to compare efficiency, got None"),
        ),
    ],
    "hardware_models.portability.performance_portability": [
        (
            lambda: performance_portability({"a": NAN}),
            *(ValueError, "efficiencies['a'] must be from 0 to 1, got nan"),
        ),
    ],
    "hardware_models.pearl.pearl_mapping": [
        (lambda: pearl_mapping({}, {}, None), ValueError, "host must be one of , got 'CPU'"),
    ],
    "compose.estimate": [
        (lambda: compose.estimate(FUSED, COSTS, SCHEDULE, 0), ValueError, "samples must be at lea"),
    ],
    "compose.plan": [
        (lambda: compose.plan(SMALL, executors=()), compose.Infeasible, "no device offers e"),
        (
            lambda: compose.plan(SMALL, executors=("x",)),
            *(ValueError, "executor must be one of fused, deterministic, asynchronous, got 'x'"),
        ),
        (lambda: compose.plan(SMALL, seconds=NAN), ValueError, "seconds must be finite and above"),
    ],
    "compose.plan_log": [
        (
            lambda: compose.plan_log(None, RULE, pim.MergeSchedule(2), devices=("x",)),
            *(ValueError, "devices must be one of cpu:0, native, upmem, got 'x'"),
        ),
    ],
    "compose.profile": [
        (lambda: compose.profile(SMALL, {}, [], seconds=0), ValueError, "seconds must be finite"),
    ],
    "compose.run": [
        (lambda: run(steps=0), ValueError, "steps must be at least 1, got 0"),
        (lambda: run(steps=2000.5), TypeError, "steps must be an int, got 2000.5"),
        (lambda: run(restarts=1), ValueError, "restarts is for the asynchronous executor, got 1"),
    ],
    "hardware_models.associative_memory.Design": [
        (lambda: design(capacity=0), ValueError, "capacity must be at least 1, got 0"),
        (lambda: design(csp_ratio=NAN), ValueError, "csp_ratio must be above 0 and at most 1, got"),
        (lambda: design(variant="x"), ValueError, "variant must be one of k_best_match"),
    ],
    "hardware_models.associative_memory.Components": [
        (lambda: figures().given(x=1.0), ValueError, "figure must be one of adder_delay"),
    ],
    "hardware_models.associative_memory.load_components": [
        (lambda: hardware.load_components(tcam="x"), ValueError, "tcam must be one of fefet_2fefe"),
        (lambda: hardware.load_components(Path("/no/such")), FileNotFoundError, "/no/such"),
    ],
    "hardware_models.associative_memory.figures_table": [
        (lambda: hardware.figures_table(Path("/no/such")), FileNotFoundError, "/no/such"),
    ],
    "hardware_models.associative_memory.compare_with_measured": [
        (
            lambda: hardware.compare_with_measured(sampled(), NAN, "x"),
            *(ValueError, "measured_per_seconds must be finite and above 0, got nan"),
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "says"), rows_of(TABLE))
def test_refuses(call, error, says):
    check_refused(call, error, says)
