"""Experiments: environment, agent, replay buffer and program of a configuration."""

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from accel_rl import agents, envs, replay, train
from accel_rl.agents import Agent
from accel_rl.arguments import whole
from accel_rl.experiment import catalogue, configuration, layers, words
from accel_rl.experiment.configuration import Configuration
from accel_rl.experiment.hosted import HostSource, host_source, is_hosted
from accel_rl.io.values import Json
from accel_rl.types import Array, Environment

# Hyper-parameters of the program, with their dotted names in a configuration.
_PROGRAM = {
    "gamma": "agent.gamma",
    "beta": "replay.beta",
    "beta_end": "replay.beta_end",
    "beta_steps": "replay.beta_steps",
}
_CAPACITY, _BATCH = 10_000, 128


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Program of a configuration, with its environments, hyper-parameters and keys."""

    configuration: Configuration  # complete: all defaults are filled in
    env: Environment
    program: train.Program
    hyper: dict[str, Json]  # arguments of `program.init`: floats, or [trainings] if swept
    key: Array  # PRNG key, or [trainings] of them
    leaves: tuple[str, ...]  # dotted names of all hyper-parameters
    host: HostSource | None = None  # of environments on the host; `env` does not step

    @property
    def trainings(self) -> int:
        """Number of trainings that run at once: seeds times combinations of the sweep."""
        return math.prod(self.key.shape)

    def with_settings(self, settings: Mapping[str, Json]) -> "Experiment":
        """Assemble the experiment again with other values of some settings, by dotted name."""
        tables = configuration.to_mapping(self.configuration)
        changed = layers.shares(layers.merge(tables, layers.tables(settings)))
        swept = {configuration.SWEEP: self.configuration.sweep}
        return assemble(configuration.from_mapping({**changed, **swept}))

    def train(
        self, directory: str | Path | None = None, *, resume: bool = False, bar: bool = False
    ) -> train.RunResult:
        """Train as configured.

        Args:
          directory: folder for metrics, checkpoints and results; nothing is written if None.
          resume: continue from the newest checkpoint in the folder.
          bar: show a progress bar on stderr.

        Raises:
          ValueError: if the folder holds another training, or a damaged one.
          OSError: if a file cannot be written.
        """
        from accel_rl.experiment import training  # it imports this module

        if directory is None:
            return training.train_with(self)
        path = Path(directory)
        return training.run(path, self, "Experiment.train", resume=resume, bar=bar)[0]


def assemble(wanted: Configuration) -> Experiment:
    """Assemble the program of a configuration, and fill in the configuration's defaults.

    Args:
      wanted: the configuration; settings of agent and sampler may be left out.
    """
    with _as_value_errors():
        host = host_source(wanted.environment) if is_hosted(wanted.environment) else None
        env = _environment(wanted.environment, host)
        agent, agent_options = _agent(wanted, env)
        buffer, replay_config = _buffer(wanted, env, agent)
        scale, schedule = wanted.environment.reward_scale, dataclasses.asdict(wanted.schedule)
        program = train.make(env, agent, buffer, reward_scale=scale, **schedule)
        complete = dataclasses.replace(
            wanted,
            agent=dataclasses.replace(wanted.agent, options=agent_options),
            replay=replay_config,
        )
        paths = _paths(agent, buffer)
        for name in complete.sweep:
            words.check_known(name, paths, "hyper-parameter that is an array")
        for combination in complete.combinations():
            hyper = _hyper(complete, paths, combination)
            jax.eval_shape(lambda hyper=hyper: program.init(jax.random.key(0), **hyper))
            buffer.parts[0].sampler.init(**hyper["replay"])  # checks values, but not tracers
    if len(complete.combinations()) > 1:
        hyper = _swept(complete, paths)
    keys = _keys(complete)
    if keys.ndim and wanted.training.executor != "fused":
        raise ValueError(
            "training.seeds must be 1, without a sweep, for executors other than fused, got "
            f"{keys.size} trainings: train each seed by a command of its own, with another --seed"
        )
    return Experiment(complete, env, program, hyper, keys, tuple(paths), host)


@contextlib.contextmanager
def _as_value_errors() -> Iterator[None]:
    """Re-raise errors of types and missing packages as ValueError: they come from settings here."""
    try:
        yield
    except (TypeError, ImportError) as error:
        raise ValueError(str(error)) from error


def _environment(wanted: configuration.EnvironmentConfig, host: HostSource | None) -> Environment:
    if host is not None:
        return host.environment
    env = envs.environment(wanted.name, **wanted.arguments)
    if wanted.time_limit is not None:
        env = envs.wrappers.time_limit(env, wanted.time_limit)
    if wanted.dtype is not None:
        env = envs.wrappers.cast_observations(env, wanted.dtype)
    if wanted.flatten:
        env = envs.wrappers.flatten_observations(env)
    return env


def _agent(wanted: Configuration, env: Environment) -> tuple[Agent, dict[str, Json]]:
    name, given = wanted.agent.name, wanted.agent.options
    factory = catalogue.agent_factory(name)
    static = catalogue.static_settings(factory)
    arguments = catalogue.chosen("agent", given, static)
    agent = factory(env.observation_space, env.action_space, **arguments)
    if wanted.agent.normalise:
        agent = agents.normalise_observations(agent)
    known = {**static, **catalogue.agent_leaves(agent)}
    own = configuration.fields("agent")
    return agent, catalogue.check("agent", name, given, known, own)


def _buffer(
    wanted: Configuration, env: Environment, agent: Agent
) -> tuple[replay.Replay, configuration.ReplayConfig]:
    config, num_envs = wanted.replay, wanted.schedule.num_envs
    name, given, own = config.sampler, config.options, configuration.fields("replay")
    words.check_known(name, catalogue.SAMPLERS, "sampler")
    example = train.example(env, agent)
    online = name == catalogue.NEWEST
    default_capacity, default_batch = (num_envs, num_envs) if online else (_CAPACITY, _BATCH)
    capacity = default_capacity if config.capacity is None else config.capacity
    batch_size = default_batch if config.batch_size is None else config.batch_size
    static = catalogue.static_settings(catalogue.SAMPLERS[name])
    if online:
        if (capacity, batch_size, config.n_step) != (num_envs, num_envs, 1):
            raise ValueError(
                f"replay.sampler newest learns from each step once: replay.capacity and "
                f"replay.batch_size must be schedule.num_envs, {num_envs}, and replay.n_step 1, "
                f"got {capacity}, {batch_size} and {config.n_step}"
            )
        buffer = replay.newest(example, num_envs)
    else:
        buffer = replay.make(
            example,
            capacity,
            batch_size,
            catalogue.SAMPLERS[name](**catalogue.chosen("replay", given, static)),
            num_envs=num_envs,
            n_step=config.n_step,
            stratified=config.stratified,
            weights_over=config.weights_over,
        )
    known = {**static, **catalogue.sampler_leaves(buffer)}
    return buffer, dataclasses.replace(
        config,
        capacity=capacity,
        batch_size=batch_size,
        options=catalogue.check("replay", name, given, known, own),
    )


def _paths(agent: Agent, buffer: replay.Replay) -> dict[str, tuple[str, ...]]:
    """Map dotted names of hyper-parameters to their paths in the arguments of `program.init`."""
    return {
        **{f"agent.{name}": ("agent", name) for name in agent.hyperparameters},
        **{f"replay.{name}": ("replay", name) for name in catalogue.sampler_leaves(buffer)},
        **{dotted: (name,) for name, dotted in _PROGRAM.items()},
    }


def _hyper(
    complete: Configuration,
    paths: Mapping[str, tuple[str, ...]],
    instead: Mapping[str, Json] | None = None,
) -> dict[str, Json]:
    """Return arguments of `program.init`: values in `instead`, else the configuration's."""
    tables = configuration.to_mapping(complete)
    hyper: dict[str, Json] = {"agent": {}, "replay": {}}
    for dotted, path in paths.items():
        section, name = dotted.split(".")
        value = (instead or {}).get(dotted, tables[section][name])
        (hyper if len(path) == 1 else hyper[path[0]])[path[-1]] = value
    return hyper


def _swept(complete: Configuration, paths: Mapping[str, tuple[str, ...]]) -> dict[str, Json]:
    """Return arguments of `program.init` with swept values as arrays [combinations * seeds]."""
    combinations, seeds = complete.combinations(), complete.training.seeds
    arrays = {
        name: np.repeat(np.array([each[name] for each in combinations], np.float32), seeds)
        for name in complete.sweep
    }
    return _hyper(complete, paths, arrays)


def _keys(complete: Configuration) -> Array:
    """Return one key for each seed, tiled over combinations; a scalar key for one training.

    Keys are [combinations * seeds]. The key of seed n does not depend on the number of seeds.
    """
    training = complete.training
    whole("training.seeds", training.seeds, 1)
    whole("training.seed", training.seed, 0, 2**32 - 1)
    key = jax.random.key(np.uint32(training.seed))
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(training.seeds))
    number = len(complete.combinations())
    if training.seeds == number == 1:
        return keys[0]
    return jnp.tile(keys, number)
