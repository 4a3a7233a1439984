"""Catalogue of agents and samplers by name, with the settings of each."""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Union

import pydantic

from accel_rl import agents, replay, tabular
from accel_rl.agents import Agent
from accel_rl.envs import registry
from accel_rl.experiment import words
from accel_rl.io.validation import STRICT, validated, whole
from accel_rl.io.values import Json
from accel_rl.types import Box, Discrete, Space

NEWEST = "newest"  # replay buffer of the newest transitions, for online learning
TABULAR = ("q_learning", "sarsa", "expected_sarsa", "double_q_learning")


class Setting(NamedTuple):
    """Setting of an agent or a sampler."""

    kind: Any  # type
    default: Any
    meaning: str
    leaf: bool  # True for an array of the state: a sweep over it compiles once


def _rule(name: str) -> Callable[..., Agent]:
    def make(
        observation_space: Space,
        action_space: Space,
        *,
        numerics: Literal["fp32", "int32_scaled", "int32_pow2"] = "fp32",
    ) -> Agent:
        """Make an agent of a tabular rule.

        Args:
          observation_space: Discrete.
          action_space: Discrete.
          numerics: arithmetic of the tables; fixed point allows for gamma up to 0.99.
        """
        rule = tabular.make_rule(name, tabular.make_numerics(numerics))
        return agents.tabular(rule, observation_space, action_space)

    return make


AGENTS: dict[str, Callable[..., Agent]] = {
    "dqn": agents.dqn,
    "rainbow": agents.dqn,  # whose presets choose all of its parts
    "ddpg": agents.ddpg,
    "td3": agents.td3,
    "sac": agents.sac,
    **{name: _rule(name) for name in TABULAR},
}
SAMPLERS: dict[str, Callable[..., Any]] = {**replay.SAMPLERS, NEWEST: lambda: None}


def agent_factory(name: str) -> Callable[..., Agent]:
    """Return the factory of an agent: one of `AGENTS`, or MODULE:NAME of a user's.

    A user's takes an observation and an action space, and options by keyword, which become settings
    if their types are numbers, bools, texts or sequences of these.
    """
    if ":" not in name:
        words.check_known(name, AGENTS, "agent")
        return AGENTS[name]
    found: Callable[..., Agent] | None = getattr(
        registry.import_named(name), name.partition(":")[2], None
    )
    if not callable(found):
        raise ValueError(f"agent {name!r} is no function of its module")
    return found


def static_settings(factory: Callable[..., object]) -> dict[str, Setting]:
    """Return the optional arguments of a factory whose values can be given as text."""
    hints = typing.get_type_hints(factory)
    meanings = documented(factory)
    found = {}
    for name, parameter in inspect.signature(factory).parameters.items():
        kind = _configurable(hints.get(name))
        if parameter.default is inspect.Parameter.empty or kind is None:
            continue
        found[name] = Setting(kind, parameter.default, meanings.get(name, ""), False)
    return found


def agent_leaves(agent: Agent) -> dict[str, Setting]:
    """Return an agent's hyper-parameters as settings."""
    return {
        name: Setting(float, limits.default, limits.meaning, True)
        for name, limits in agent.hyperparameters.items()
    }


def sampler_leaves(buffer: replay.Replay) -> dict[str, Setting]:
    """Return the hyper-parameters of a replay buffer's sampler as settings."""
    accepted = inspect.signature(buffer.parts[0].sampler.init).parameters
    return {
        name: Setting(float, parameter.default, "", True) for name, parameter in accepted.items()
    }


def chosen(
    section: str, given: Mapping[str, Json], static: Mapping[str, Setting]
) -> dict[str, Json]:
    """Return the arguments of a factory: given values over defaults; other names are ignored."""
    return check(section, "", {each: given[each] for each in given if each in static}, static, ())


def check(
    section: str,
    what: str,
    given: Mapping[str, Json],
    known: Mapping[str, Setting],
    own: Iterable[str],
) -> dict[str, Json]:
    """Convert given values to the types of the settings, over their defaults.

    Args:
      section: of the configuration.
      what: name of the agent or sampler, for the message.
      given: values by name.
      known: settings by name.
      own: names of the section's own fields, for the message.
    """
    names = [f"{section}.{each}" for each in (*known, *own)]
    for name in given:
        words.check_known(f"{section}.{name}", names, f"setting of {what}")
    adapter = pydantic.TypeAdapter(model(what, known))
    found = validated(adapter, {name: whole(given[name]) for name in given}, section)
    return {name: _tuple(getattr(found, name)) for name in known}


def model(name: str, settings: Mapping[str, Setting]) -> type[pydantic.BaseModel]:
    """Make the pydantic model of settings, with their types, defaults and descriptions."""
    fields: dict[str, Json] = {
        each: (setting.kind, pydantic.Field(setting.default, description=setting.meaning or None))
        for each, setting in settings.items()
    }
    return pydantic.create_model(name, __config__=STRICT, **fields)


def _tuple(value: object) -> Any:
    """Return sequences as tuples: settings of compiled programs must be hashable."""
    return tuple(value) if isinstance(value, list) else value


def _configurable(kind: Any) -> Any:
    """Return the part of a type whose values can be given as text; None if there is none."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        kinds = [each for each in map(_configurable, arguments) if each is not None]
        return None if kinds in ([], [type(None)]) else Union[tuple(kinds)]  # noqa: UP007
    if origin in (tuple, list, Sequence):
        return kind if _configurable(arguments[0]) else None
    return kind if origin is Literal or kind in (bool, int, float, str, type(None)) else None


@functools.cache
def documented(factory: Callable[..., object]) -> dict[str, str]:
    """Return the description of each argument in a factory's docstring, on one line."""
    try:
        import docstring_parser
    except ImportError:
        # A plain checkout may lack it, such as on a machine with an accelerator: settings work
        # without descriptions, which only help and schemas show.
        return {}
    found = docstring_parser.parse(inspect.getdoc(factory) or "").params
    return {each.arg_name: " ".join((each.description or "").split()).rstrip(".") for each in found}


def accepted(agent: str) -> list[str]:
    """List dotted names of the settings of an agent, if it is known, and of all samplers."""
    known = agent in AGENTS or ":" in agent
    found = [f"agent.{each}" for each in describe_agent(agent)] if known else []
    for name in SAMPLERS:
        found += [f"replay.{each}" for each in describe_sampler(name)]
    return list(dict.fromkeys(found))


def describe_agent(name: str) -> dict[str, Setting]:
    """Return all settings of an agent, made for example spaces that it supports."""
    factory = agent_factory(name)
    try:
        agent = factory(Discrete(2), Discrete(2))
    except TypeError:
        agent = factory(Discrete(2), Box((-1.0,), (1.0,), (1,)))
    return {**static_settings(factory), **agent_leaves(agent)}


def describe_sampler(name: str) -> dict[str, Setting]:
    """Return all settings of a sampler."""
    factory = SAMPLERS[name]
    if name == NEWEST:
        return {}
    buffer = replay.make(0.0, 1, 1, factory())
    return {**static_settings(factory), **sampler_leaves(buffer)}
