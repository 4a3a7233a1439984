"""Time of the composer's plans by the number of devices."""

import dataclasses
from typing import Any

import jax
from growth_fit import least_seconds

from accel_rl import experiment
from accel_rl.compose.candidates import alike, distinct, mappings_of, options
from accel_rl.compose.costs import Cost, Costs
from accel_rl.compose.devices import JaxDevice
from accel_rl.compose.model import estimate
from accel_rl.compose.objectives import seconds_per_sample
from accel_rl.compose.workload import workload_of

MOST_DEVICES = 64


@dataclasses.dataclass(frozen=True)
class OtherKind(JaxDevice):
    """JAX device of a kind of its own."""

    @property
    def kind(self) -> str:
        """Kind: the name."""
        return self.name


KINDS: dict[str, type[JaxDevice]] = {"like": JaxDevice, "unlike": OtherKind}


class _Constant(dict[Any, Cost]):
    """Costs that are all alike, so that nothing has to be measured."""

    def __missing__(self, key: object) -> Cost:
        return Cost(1e-3, 0.0, "measured")


def plan_seconds(kind: str, count: int) -> float:
    """Return the CPU time to estimate all distinct mappings, without the measurement of steps."""
    if jax.config.jax_num_cpu_devices < MOST_DEVICES:
        jax.config.update("jax_num_cpu_devices", MOST_DEVICES)
    places = jax.devices("cpu")[:count]
    devices = {f"cpu:{n}": KINDS[kind](f"cpu:{n}", each) for n, each in enumerate(places)}
    settings = {"agent.hidden": (32, 32), "schedule.policy_lag": 1, "schedule.priority_lag": 1}
    wanted = experiment.load(
        None, settings, agent="dqn", environment="CartPole-v1", command="compose"
    )
    schedule, samples = wanted.program.schedule, workload_of(wanted).trained_samples
    costs = Costs(alike(devices), _Constant(), {}, _Constant(), 1e-5, 1e-6)

    def plan() -> None:
        offered, _ = options(wanted, devices)
        every = distinct(mappings_of(offered, devices), alike(devices))
        found = [estimate(each, costs, schedule, samples) for each in every]
        found.sort(key=seconds_per_sample)

    return least_seconds(plan, 2)
