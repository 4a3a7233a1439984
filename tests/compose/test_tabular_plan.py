"""Which backend takes a training from a log: measured where it runs, modelled on DPUs."""

import pytest
from kernels_present import needs_kernels

from accel_rl import compose, datasets, envs, pim, tabular

SCHEDULE = pim.MergeSchedule(passes=4, period=2)
RULE = tabular.make_rule("q_learning", tabular.make_numerics("fp32"))


@pytest.fixture(scope="module")
def log():
    mdp = envs.make_mdp("FrozenLake-v1")
    return datasets.collect(mdp, "random", 640, seed=0, environment="FrozenLake-v1")


def plan(log, **changes):
    return compose.plan_log(log, RULE, SCHEDULE, **{"dpus": 8, "seconds": 0.02, **changes})


@needs_kernels
def test_what_runs_is_measured_and_dpus_are_modelled(log):
    found = plan(log)
    assert {name: cost.source for name, cost in found.costs.items()} == {
        "cpu:0": "measured",
        "native": "measured",
        "upmem": "modelled",
    }
    times = [cost.seconds for cost in found.costs.values()]
    assert times == sorted(times)
    assert times[0] > 0
    assert found.backend == {"cpu:0": "jax", "native": "cpu", "upmem": "upmem"}[found.best]
    assert not found.refused


def test_the_modelled_time_is_that_of_the_cost_model(log):
    found = plan(log, devices=("upmem",))
    machine = pim.load_machine()
    kernel = pim.modelled.KernelSettings(
        "q_learning", "fp32", tabular.make_order("SEQ"), 128, 16, *SCHEDULE
    )
    run = pim.modelled.workload(machine, pim.modelled.load_of(log), kernel, 8)
    assert found.costs["upmem"].seconds == sum(pim.modelled.parts(machine, run).values())
    assert found.backend == "upmem"


def test_what_no_device_takes_is_explained(log):
    with pytest.raises(ValueError, match=r"devices must be one of cpu:0, native, upmem, got 'tpu'"):
        plan(log, devices=("tpu",))
    with pytest.raises(compose.Infeasible, match=r"no device offers learner \(upmem: "):
        plan(log, devices=("upmem",), tasklets=99)
