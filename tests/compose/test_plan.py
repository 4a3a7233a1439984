"""Plans from made-up costs: the best mapping, and what is refused."""

import dataclasses

import jax
import pytest
import quick
from kernels_present import needs_kernels
from tables import SMALL_DQN, devices_of, loaded, made_up, mappings

from accel_rl import compose
from accel_rl.compose import Estimate, Infeasible, Mapping, Power, estimate, find
from accel_rl.compose.candidates import mappings_of, options
from accel_rl.compose.devices import JaxDevice
from accel_rl.compose.objectives import joules_per_sample, seconds_per_sample, weighted
from accel_rl.compose.workload import ROLES, workload_of

DEVICES = ("cpu:0", "cpu:1", "native")


def test_the_best_mapping_is_the_one_of_least_time():
    costs = made_up(seed=3, slowdown=1.5)
    plan = compose.plan(SMALL_DQN, costs=costs)
    schedule = SMALL_DQN.program.schedule
    every = [estimate(each, costs, schedule, 8).seconds for each in mappings()]
    assert plan.best.seconds == min(every)
    assert [each.seconds for each in plan.estimates] == sorted(every)
    assert plan.refused["learner"]["native"].startswith("it has kernels for the Replay Manager")


@pytest.mark.parametrize("seed", quick.only(range(5), range(20)))
def test_no_mapping_is_better_than_the_best(seed):
    lags = {"policy_lag": 1 + seed % 3, "priority_lag": 1 + seed % 2}
    objective = ("throughput", "efficiency", "weighted")[seed % 3]
    watts = {name: (float(seed % 4), 9.0 + n) for n, name in enumerate(DEVICES)}
    wanted = loaded(
        schedule={**lags, "updates": 1 + seed % 2}, compose={"objective": objective, "power": watts}
    )
    costs = made_up(wanted, seed, slowdown=1 + seed % 3)
    stretch = {"fused": 1.0, "deterministic": 1.4, "asynchronous": 0.8}
    costs.trials.update({key: stretch[key.steps[0]] for key in costs.trials})
    power = {name: Power(*each, "declared", "a test") for name, each in watts.items()}
    score = (seconds_per_sample, joules_per_sample, weighted(0.5))[seed % 3]
    schedule, devices = wanted.program.schedule, devices_of(wanted)
    samples = workload_of(wanted).trained_samples
    plan = compose.plan(wanted, costs=costs)
    mappings = mappings_of(options(wanted, devices)[0], devices)
    every = [estimate(each, plan.costs, schedule, samples, power) for each in mappings]
    least = min(map(score, every))
    joules = min(joules_per_sample(each) for each in every if score(each) <= 1.01 * least)
    assert score(plan.best) <= 1.01 * least
    assert joules_per_sample(plan.best) == joules


@needs_kernels
def test_objectives_choose_by_joules():
    # Sharing the work is fastest; one of the devices draws so much that idling it costs less.
    costs = made_up(seed=3)
    watts = {"cpu:0": (0.0, 500.0), "cpu:1": (0.0, 1.0), "native": (0.0, 1.0)}
    wanted = loaded(compose={"objective": "efficiency", "power": watts})
    plan = compose.plan(wanted, costs=costs)
    joules = [each.joules / each.samples for each in plan.estimates]
    assert joules == sorted(joules)
    fastest = compose.plan(loaded(compose={"power": watts}), costs=costs).best
    assert fastest.seconds < plan.best.seconds
    assert fastest.joules > plan.best.joules
    front = compose.pareto(plan.estimates)
    assert plan.best.mapping in [each.mapping for each in front]
    both = {"objective": "weighted", "weight": 0.5, "power": watts}
    middle = compose.plan(loaded(compose=both), costs=costs)
    assert middle.best.mapping in [each.mapping for each in front]


def test_watts_that_are_not_known_are_asked_for():
    wanted = loaded(compose={"objective": "efficiency", "power": {"cpu:0": (1.0, 2.0)}})
    with pytest.raises(ValueError, match="power must give watts of cpu:1, native"):
        compose.plan(wanted, costs=made_up())
    with pytest.raises(ValueError, match=r"compose\.power must be one of cpu:0, .* got 'gpu:7'"):
        compose.plan(loaded(compose={"power": {"gpu:7": (1.0, 2.0)}}), costs=made_up())


@dataclasses.dataclass(frozen=True)
class Part(JaxDevice):
    """A device of JAX that takes some roles."""

    roles: tuple[str, ...] = ()

    def refuses(self, role, workload):
        return None if role in self.roles else "it has another part"


def test_what_is_impossible_is_explained():
    with pytest.raises(Infeasible, match=r"no device offers actor .native: it has kernels for"):
        compose.plan(loaded(compose={"devices": ["native"]}))
    with pytest.raises(Infeasible, match="policy_lag and priority_lag must allow staleness"):
        compose.plan(
            loaded(schedule={"policy_lag": 0}), costs=made_up(), executors=("asynchronous",)
        )
    with pytest.raises(Infeasible, match=r"no device offers executor \(none was asked\)"):
        compose.plan(SMALL_DQN, costs=made_up(), executors=())
    one, two = (find((name,))[name].jax_device for name in ("cpu:0", "cpu:1"))
    apart = {"a": Part("a", one, roles=ROLES[:-1]), "b": Part("b", two, roles=ROLES[-1:])}
    with pytest.raises(Infeasible, match="no device of JAX takes every role, as fused needs"):
        compose.plan(SMALL_DQN, devices=apart, costs=made_up(), executors=("fused",))
    with pytest.raises(ValueError, match=r"devices must be of cpu:0, .* got 'tpu:0'"):
        compose.plan(loaded(compose={"devices": ["tpu:0"]}))


@needs_kernels
def test_the_native_sum_tree_is_offered_to_prioritised_replay_alone():
    offered, refused = options(loaded(replay={"sampler": "uniform"}), devices_of(SMALL_DQN))
    assert offered["replay_manager"] == ("cpu:0", "cpu:1")
    assert "none for uniform" in refused["replay_manager"]["native"]


@needs_kernels
def test_a_fused_program_is_on_one_device():
    devices = devices_of(SMALL_DQN)
    every = mappings_of(options(SMALL_DQN, devices)[0], devices)
    fused = [each for each in every if each.executor == "fused"]
    # native runs on the host's first device.
    assert {(each.replay_manager, each.learner) for each in fused} == {
        ("cpu:0", ("cpu:0",)),
        ("cpu:1", ("cpu:1",)),
        ("native", ("cpu:0",)),
    }


@pytest.mark.long  # models its arrays
def test_an_associative_memory_is_planned_with_and_not_run():
    searched = {"sampler": "amper_fr", "capacity": 256}
    wanted = loaded(replay=searched, compose={"devices": ["cpu:0", "am"]})
    here = loaded(replay=searched, compose={"devices": ["cpu:0"]})
    costs = made_up(here)
    mapping = Mapping("deterministic", "cpu:0", "cpu:0", "cpu:0", ("cpu:0",))
    for store in ("write", "gather"):
        costs.steps[costs.key(mapping, store)] = costs.step(mapping, "insert")
    plan = compose.plan(wanted, costs=costs)
    placed = [each for each in plan.estimates if each.mapping.replay_manager == "am"]
    assert placed
    assert all(each.source == "modelled" for each in placed)
    assert all(each.mapping.executor != "fused" for each in placed)
    # Sampling is the arrays' time, the link's, and the measured gathering of the batch.
    found: Estimate = placed[0]
    sample = plan.costs.step(found.mapping, "sample").seconds
    am = find(("am",))["am"]
    work = workload_of(wanted)
    linked = am.modelled_seconds("sample", work) + am.link.seconds(work.index_bytes)
    assert sample == pytest.approx(linked + costs.step(mapping, "gather").seconds)
    with pytest.raises(ValueError, match="am is modelled"):
        compose.run(wanted, found.mapping, jax.random.key(0), 100)


def test_an_fpga_takes_the_sum_tree_and_the_learner():
    wanted = loaded(compose={"devices": ["cpu:0", "fpga"]})
    device = find(("fpga",))["fpga"]
    work = workload_of(wanted)
    assert device.refuses("actor", work).endswith("none for the actor")
    assert device.refuses("replay_manager", dataclasses.replace(work, sampler="uniform"))
    # Memory on the chip is the limit of networks: 2**14 * 2**14 weights are more than there are.
    large = dataclasses.replace(work, hidden=(2**14, 2**14))
    assert "bits of memory" in device.refuses("learner", large)
    # 64 slots are two levels of 16; a sampling of 8 is B + 2 D + 2 cycles at 250 MHz.
    assert device.modelled_seconds("sample", work) == pytest.approx((8 + 2 * 2 + 2) / 250e6)
    here = loaded(compose={"devices": ["cpu:0"]})
    costs = made_up(here)
    mapping = Mapping("deterministic", "cpu:0", "cpu:0", "cpu:0", ("cpu:0",))
    for store in ("write", "gather"):
        costs.steps[costs.key(mapping, store)] = costs.step(mapping, "insert")
    plan = compose.plan(wanted, costs=costs)
    both = Mapping("deterministic", "cpu:0", "fpga", "cpu:0", ("fpga",))
    assert both in [each.mapping for each in plan.estimates]
    update = plan.costs.step(both, "update").seconds
    assert update == device.modelled_seconds("update", work)
    apart = Mapping("deterministic", "cpu:0", "fpga", "cpu:0", ("cpu:0",))
    linked = device.link.seconds(work.bytes_of("update"))
    assert plan.costs.step(apart, "update").seconds == pytest.approx(update + linked)
    # Three levels more than fit: their sums take more memory than the part has.
    assert "bits of memory" in device.refuses(
        "replay_manager", dataclasses.replace(work, capacity=2_000_000)
    )


@pytest.mark.long  # builds programs of DPUs
def test_dpus_search_for_amper_and_learn_no_networks():
    device = find(("upmem",))["upmem"]
    work = dataclasses.replace(workload_of(SMALL_DQN), sampler="amper_fr", capacity=4096)
    assert device.status == "simulated"
    assert "learns tables (see pim.train)" in device.refuses("learner", work)
    assert "not as prioritised" in device.refuses("replay_manager", workload_of(SMALL_DQN))
    why = device.refuses("replay_manager", work)
    if why is not None:
        pytest.skip(f"no DPU programs can be built here: {why}")
    one, four = (device.modelled_seconds("sample", w) for w in (work, more(work)))
    assert 0 < one < four < 1
    assert 0 < device.modelled_seconds("update", work) < 1


def more(work):
    return dataclasses.replace(work, capacity=4 * work.capacity)
