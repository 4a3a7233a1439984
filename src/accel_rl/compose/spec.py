"""Specs: training, devices and objective, from which plans are made."""

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import jax
import numpy as np
import pydantic

from accel_rl import agents, envs, replay, train
from accel_rl.agents import Agent
from accel_rl.arguments import real
from accel_rl.arguments import whole as whole_number
from accel_rl.compose.workload import Workload
from accel_rl.io.validation import STRICT, validated, whole
from accel_rl.train.pipeline.batching import group_size, prioritised
from accel_rl.types import Box, Discrete, Space

ALGORITHMS: dict[str, Callable[..., Agent]] = {
    "dqn": agents.dqn,
    "ddpg": agents.ddpg,
    "td3": agents.td3,
    "sac": agents.sac,
}
OBJECTIVES = ("throughput", "efficiency", "weighted")
_NETWORKS = {"dqn": 1, "ddpg": 2, "td3": 3, "sac": 3}
_TABLES = ("agent", "sampler", "power")


@dataclasses.dataclass(frozen=True)
class Spec:
    """Training, devices and objective, in names and numbers that TOML can hold.

    Attributes:
      algorithm: one of `ALGORITHMS`.
      environment: a name that `envs.environment` knows.
      replay: sampler name, one of `replay.SAMPLERS`.
      devices: names, see `compose.find`; empty for all executable devices of this machine.
      objective: "throughput", trained samples per second; "efficiency", trained samples per joule;
        "weighted", their weighted geometric mean.
      weight: of efficiency in the weighted objective, 0 to 1.
      batch_size: transitions of an update.
      capacity: transitions in the replay buffer.
      n_step: n of the n-step targets.
      num_envs: environments that step together.
      rollout: steps of each environment in an iteration.
      updates: updates in an iteration.
      learning_starts: environment steps before the first update.
      policy_lag: iterations by which the acting policy may be older than the newest.
      priority_lag: priority updates that a sample need not have seen.
      agent: options of the agent and its hyper-parameters, such as `hidden` or `learning_rate`.
      sampler: the sampler's hyper-parameters, such as `alpha`.
      power: idle and active watts by device name; unlisted devices keep their own, if any.
    """

    __pydantic_config__ = STRICT

    algorithm: str
    environment: str
    replay: str = "uniform"
    devices: tuple[str, ...] = ()
    objective: Literal["throughput", "efficiency", "weighted"] = "throughput"
    weight: float = 0.5
    batch_size: int = 64
    capacity: int = 10_000
    n_step: int = 1
    num_envs: int = 1
    rollout: int = 1
    updates: int = 1
    learning_starts: int = 1_000
    policy_lag: int = 1
    priority_lag: int = 1
    agent: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    sampler: Mapping[str, float] = dataclasses.field(default_factory=dict)
    power: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError if a name is unknown or a number is out of range."""
        for name, known in (
            ("algorithm", tuple(ALGORITHMS)),
            ("replay", tuple(replay.SAMPLERS)),
            ("objective", OBJECTIVES),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        object.__setattr__(self, "devices", tuple(self.devices))
        for name in ("batch_size", "capacity", "n_step"):
            whole_number(name, getattr(self, name), 1)
        if not 0 <= real("weight", self.weight) <= 1:
            raise ValueError(f"weight must be from 0 to 1, got {self.weight}")
        schedule(self)
        for name, watts in self.power.items():
            pair = isinstance(watts, Sequence) and len(watts) == 2
            if not pair or not 0 <= watts[0] <= watts[1] < math.inf:
                raise ValueError(
                    f"power.{name} must be watts idle and active, the first at most the second, "
                    f"got {watts}"
                )

    def to_table(self) -> dict[str, Any]:
        """Return the TOML table: `algorithm`, `environment`, and values that are no defaults."""
        table = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING or value != field.default:
                table[field.name] = dict(value) if field.name in _TABLES else value
        return {name: value for name, value in table.items() if value not in ({}, ())}


_ADAPTER = pydantic.TypeAdapter(Spec)


def from_table(table: Mapping[str, Any]) -> Spec:
    """Make a spec from a TOML table.

    Raises:
      ValueError: if a name is unknown or missing, or a value is of the wrong type or out of range.
    """
    fields = [field.name for field in dataclasses.fields(Spec)]
    for name in table:
        if name not in fields:
            raise ValueError(f"{name} is no setting of a spec: those are {', '.join(fields)}")
    return validated(_ADAPTER, {name: whole(table[name]) for name in table}, "")


def schedule(spec: Spec) -> train.Schedule:
    """Return the schedule; raise ValueError or TypeError as `train.Schedule` does."""
    names = [field.name for field in dataclasses.fields(train.Schedule)]
    return train.Schedule(**{name: getattr(spec, name) for name in names})


def program(spec: Spec, sampler_form: str = "auto") -> train.Program:
    """Build the training program of a spec.

    Args:
      spec: what to train.
      sampler_form: form of the prioritised sampler, see `replay.prioritised`.

    Raises:
      ValueError: if the environment is unknown, or parts are incompatible.
      TypeError: if an option of the agent is unknown.
    """
    env = envs.environment(spec.environment)
    factory = ALGORITHMS[spec.algorithm]
    agent = factory(env.observation_space, env.action_space, **_static(spec))
    sampler: Any = spec.replay
    if spec.replay == "prioritised":
        sampler = replay.prioritised(sampler_form)
    buffer = replay.make(
        train.example(env, agent),
        spec.capacity,
        spec.batch_size,
        sampler,
        num_envs=spec.num_envs,
        n_step=spec.n_step,
    )
    return train.make(env, agent, buffer, **dataclasses.asdict(schedule(spec)))


def group(spec: Spec) -> int | None:
    """Return the updates per call of the pipelined executors; None if replay is prioritised."""
    made = program(spec)
    return None if prioritised(made) else group_size(made)


def hyper(spec: Spec) -> dict[str, Any]:
    """Return the arguments of `program.init`: the spec's hyper-parameters."""
    static = _static(spec)
    given = {name: value for name, value in spec.agent.items() if name not in static}
    own = {"gamma": given.pop("gamma")} if "gamma" in given else {}
    return {"agent": given, "replay": dict(spec.sampler), **own}


def check(spec: Spec) -> None:
    """Raise as `program` does, or if a hyper-parameter is unknown or out of range."""
    made, given = program(spec), hyper(spec)
    jax.eval_shape(lambda: made.init(jax.random.key(0), **given))


def workload(spec: Spec) -> Workload:
    """Return the sizes of a spec's training."""
    made = program(spec)
    policy = jax.eval_shape(lambda: made.agent.policy(made.agent.init(jax.random.key(0))))
    env, action = made.env, made.env.action_space
    defaults = inspect.signature(ALGORITHMS[spec.algorithm]).parameters["hidden"].default
    return Workload(
        algorithm=spec.algorithm,
        sampler=spec.replay,
        observation_size=_size(env.observation_space),
        action_size=_size(action),
        outputs=action.n if isinstance(action, Discrete) else _size(action),
        hidden=tuple(spec.agent.get("hidden", defaults)),
        networks=_NETWORKS[spec.algorithm],
        capacity=spec.capacity,
        batch_size=spec.batch_size,
        rows=spec.num_envs * spec.rollout,
        updates=spec.updates,
        policy_bytes=sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(policy)),
    )


def _static(spec: Spec) -> dict[str, Any]:
    accepted = inspect.signature(ALGORITHMS[spec.algorithm]).parameters
    return {name: value for name, value in spec.agent.items() if name in accepted}


def _size(space: Space) -> int:
    return int(np.prod(space.shape)) if isinstance(space, Box) else 1
