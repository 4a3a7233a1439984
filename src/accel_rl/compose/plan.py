"""Plans: estimates of all mappings of a spec, and the best for its objective."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Table
from typing import cast

from accel_rl.arguments import instance, one_of, whole
from accel_rl.compose import spec as specs
from accel_rl.compose.assign import Assignment, Constraint, Found, Space, assign
from accel_rl.compose.candidates import alike, distinct, enough, learners, offers
from accel_rl.compose.costs import Costs
from accel_rl.compose.devices import Device, find
from accel_rl.compose.energy import Power
from accel_rl.compose.mapping import EXECUTORS, Mapping, from_names
from accel_rl.compose.model import Estimate, estimate, least_seconds
from accel_rl.compose.objectives import Estimate as Estimated
from accel_rl.compose.objectives import efficiency, throughput, weighted
from accel_rl.compose.profile import Progress, check_seconds, profile
from accel_rl.compose.spec import Spec
from accel_rl.compose.workload import ROLES
from accel_rl.train import Schedule

LIMIT = 1024  # assignments that are all estimated; of more, those that the search visits


@dataclasses.dataclass(frozen=True)
class Plan:
    """Estimates of a spec's mappings, best first, with the costs behind them."""

    spec: Spec
    costs: Costs
    estimates: tuple[Estimate, ...]  # by objective, best first; like devices count once
    found: Found  # result of the search
    refused: Table[str, Table[str, str]]  # role -> device -> reason

    @property
    def best(self) -> Estimate:
        """Estimate of the mapping to run."""
        return self.estimates[0]


def plan(
    spec: Spec,
    *,
    devices: Table[str, Device] | None = None,
    costs: Costs | None = None,
    executors: tuple[str, ...] = EXECUTORS,
    limit: int = LIMIT,
    seconds: float = 0.15,
    progress: Progress | None = None,
) -> Plan:
    """Profile what is not known yet, estimate mappings and choose one.

    Args:
      spec: training, devices and objective.
      devices: by name, custom ones included; those of `find(spec.devices)` if None.
      costs: known costs, such as those of `cache.load`.
      executors: those to choose from. The asynchronous one is left out if the spec allows no
        staleness.
      limit: see `assign.assign`.
      seconds: of each measurement.
      progress: see `profile`.

    Raises:
      TypeError: if an argument is of another type.
      assign.Infeasible: if no mapping is possible; the message has the reasons.
      ValueError: if a device is unknown, a number out of range, or the objective needs watts that
        are unknown.
    """
    instance("spec", spec, Spec)
    if not executors:
        raise ValueError("executors must name at least one, got none")
    for each in executors:
        one_of("each of executors", each, EXECUTORS)
    whole("limit", limit, 0)
    check_seconds(seconds)
    devices = find(spec.devices) if devices is None else devices
    space = space_of(spec, devices, executors)
    watts, score = _power(spec, devices), _objective(spec)
    known = profile(
        spec,
        devices,
        distinct(mappings_of(space), alike(devices)),
        known=costs,
        seconds=seconds,
        progress=progress,
    )
    schedule = specs.schedule(spec)
    samples = specs.workload(spec).trained_samples
    estimates: dict[Mapping, Estimate] = {}

    def evaluate(assignment: Assignment) -> float:
        mapping = from_names(assignment)
        if mapping not in estimates:
            estimates[mapping] = estimate(mapping, known, schedule, samples, watts)
        return score(estimates[mapping])

    bound = Bound(space, known, schedule, samples, watts, score)
    found = assign(space, evaluate, bound, limit=limit)
    ordered = sorted(estimates, key=lambda each: score(estimates[each]))
    ordered = distinct(ordered, alike(devices, spec.power))
    refused = {role: dict(whys) for role, whys in space.refused.items()}
    return Plan(spec, known, tuple(estimates[each] for each in ordered), found, refused)


def space_of(
    spec: Spec, devices: Table[str, Device], executors: tuple[str, ...] = EXECUTORS
) -> Space:
    """Return the search space of executor and roles, without redundant like devices."""
    workload = specs.workload(spec)
    taken, refused = offers(devices, workload)
    few = enough(devices, alike(devices, spec.power))
    teams = learners(taken["learner"], devices, spec.batch_size)
    teams = [team for team in teams if len(team) > 1 or team[0] in few]
    if not (spec.policy_lag and spec.priority_lag):
        executors = tuple(each for each in executors if each != "asynchronous")
        refused["executor"] = {"asynchronous": "policy_lag and priority_lag must allow staleness"}
    options = {role: tuple(each for each in names if each in few) for role, names in taken.items()}
    options |= {"executor": executors, "learner": tuple("+".join(team) for team in teams)}

    def one_place(assignment: Assignment) -> bool:
        if assignment.get("executor") != "fused":
            return True
        names = [assignment[role] for role in ROLES if role in assignment]
        if any("+" in name for name in names):
            return False
        places = [getattr(devices[name], "jax_device", None) for name in names]
        return all(place is not None and place == places[0] for place in places)

    fused = Constraint("one place", "a fused program runs on one device of JAX", one_place)
    return Space(("executor", *ROLES), options, refused, (fused,))


class Bound:
    """Lower bound on the score of every completion of a partial assignment.

    Each step takes at least its least time over the roles that are still open. An iteration takes
    at least the work of its busiest worker. Its energy is at least the idle power of all devices
    over that time.
    """

    def __init__(
        self,
        space: Space,
        costs: Costs,
        schedule: Schedule,
        samples: int,
        power: Table[str, Power] | None,
        score: Callable[[Estimated], float],
    ) -> None:
        self._space, self._costs, self._schedule = space, costs, schedule
        self._samples, self._score = samples, score
        self._idle = sum(each.idle for each in (power or {}).values())
        self._least: dict[tuple[str, ...], float] = {}

    def __call__(self, partial: Assignment) -> float:
        """Return the bound; infinite if no completion was profiled."""
        seconds = min(
            self._costs.least_stretched(executor)
            * least_seconds(
                executor,
                lambda step: self._cheapest(step, partial),
                self._schedule,
                self._costs.group,
            )
            for executor in ([partial["executor"]] if "executor" in partial else EXECUTORS)
        )
        if seconds == float("inf"):
            return seconds
        # Simulated time sums many parts, so rounding may put it below the exact bound.
        seconds *= 1 - 1e-9
        least = Estimate(_NOWHERE, seconds, self._samples, {}, self._idle * seconds, "modelled")
        return self._score(least)

    def _cheapest(self, step: str, partial: Assignment) -> float:
        roles = _ROLES_OF[step]
        place = (step, *(partial.get(role, "") for role in roles))
        if place not in self._least:
            choices = [
                [partial[role]] if role in partial else self._space.options[role] for role in roles
            ]
            found = (
                self._cost(step, dict(zip(roles, names, strict=True)))
                for names in itertools.product(*choices)
            )
            self._least[place] = min(found, default=float("inf"))
        return self._least[place]

    def _cost(self, step: str, devices: Assignment) -> float:
        anywhere = next(iter(devices.values())).split("+")[0]
        mapping = from_names(
            {"executor": "deterministic", **dict.fromkeys(ROLES, anywhere), **devices}
        )
        try:
            if step == "fused":
                return self._costs.fused(mapping).seconds
            return self._costs.step(mapping, step).seconds
        except KeyError:
            return float("inf")


_NOWHERE = Mapping("deterministic", "", "", "", ("",))  # placeholder; objectives do not read it
# Roles whose devices a step's cost depends on; see `Mapping.involved`.
_ROLES_OF = {
    "collect": ("actor", "learner"),
    "insert": ("replay_manager", "data_storage", "actor"),
    "sample": ("replay_manager", "data_storage", "learner"),
    "update": ("replay_manager", "learner"),
    "learn": ("learner",),
    "sync": ("learner",),
    "fused": ("learner", "replay_manager"),
}


def mappings_of(space: Space) -> Iterator[Mapping]:
    """Iterate over all allowed mappings of a space, in search order."""
    names = itertools.product(*(space.options[role] for role in space.roles))
    every = (dict(zip(space.roles, each, strict=True)) for each in names)
    return (from_names(each) for each in every if space.allows(each))


def _objective(spec: Spec) -> Callable[[Estimated], float]:
    if spec.objective == "throughput":
        return throughput
    return efficiency if spec.objective == "efficiency" else weighted(spec.weight)


def _power(spec: Spec, devices: Table[str, Device]) -> dict[str, Power] | None:
    """Return the watts of all devices, or None if some are unknown."""
    given = {
        name: Power(*watts, status="declared", source="the spec")
        for name, watts in spec.power.items()
    }
    for name in given:
        if name not in devices:
            raise ValueError(f"power must be of the spec's devices, {', '.join(devices)}: {name!r}")
    known = {name: given.get(name) or device.power for name, device in devices.items()}
    missing = [name for name, watts in known.items() if watts is None]
    if missing and spec.objective != "throughput":
        raise ValueError(
            f"power must give watts of {', '.join(missing)} for the objective {spec.objective}: "
            "no figure of theirs is known"
        )
    return None if missing else cast(dict[str, Power], known)
