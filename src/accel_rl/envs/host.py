"""Gymnasium environments on the host, stepped in sequence, in threads or in processes.

For the pipelined executors; nothing here is compiled. Importing this module does not import
Gymnasium.
"""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from accel_rl.arguments import one_of, whole
from accel_rl.envs import families, host_pools, host_worker, registry
from accel_rl.envs.adapter import space_of
from accel_rl.envs.atari import atari
from accel_rl.types import ArrayLike, Box, Discrete, Environment, EnvStep, PyTree, Space

ATARI = "ALE/"
EXTRAS = ("mujoco", "box2d")  # named as Gymnasium's modules
BACKENDS = {
    "sync": host_pools.here,
    "threads": host_pools.in_threads,
    "processes": host_pools.in_processes,
}


class HostStep(NamedTuple):
    """Result of one step of E environments, as NumPy arrays."""

    observation: np.ndarray  # [E, *observation], of the next episode where one stopped
    reward: np.ndarray  # [E] float32
    terminated: np.ndarray  # [E] bool
    truncated: np.ndarray  # [E] bool
    final_observation: np.ndarray  # [E, *observation], before any reset
    episode_return: np.ndarray  # [E] float32, of the episode up to and including this step
    episode_length: np.ndarray  # [E] int32, likewise


class HostEnvironment:
    """Batch of E Gymnasium environments that step together, made by `host_environment`.

    Use it as a context manager, or call `close`. If an environment fails, all are closed.
    """

    def __init__(
        self, name: str, makes: Sequence[Callable[[], object]], backend: str, workers: int
    ):
        self.name = name
        self.num_envs = len(makes)
        self._closing = contextlib.ExitStack()
        shares = np.array_split(np.arange(self.num_envs), workers)
        self._bounds = [(int(share[0]), int(share[-1]) + 1) for share in shares]
        with contextlib.ExitStack() as stack:  # closes the environments if a later line fails
            self._calls = BACKENDS[backend](name, makes, self._bounds, stack)
            spaces = [each for group in self._all("spaces", [()] * workers) for each in group]
            if any(each != spaces[0] for each in spaces):
                raise ValueError(f"environments must have the same spaces, got {spaces}")
            observed, acted = spaces[0]
            self.observation_space: Space = _held(space_of(observed, f"{name}'s observation space"))
            self.action_space: Space = _held(space_of(acted, f"{name}'s action space"))
            self._closing = stack.pop_all()
        self._returns = np.zeros(self.num_envs, np.float32)
        self._lengths = np.zeros(self.num_envs, np.int32)
        self.observation: np.ndarray | None = None  # the latest, as `step` and `reset` return it

    @property
    def environment(self) -> Environment:
        """Spaces of one environment as a `types.Environment`, for `train.make` and `train.example`.

        Its `reset` returns zeros, of which only shape and dtype are meaningful. Its `step` raises
        TypeError, since compiled code cannot step a host environment.
        """
        space = self.observation_space

        def reset(key: object) -> tuple[PyTree, PyTree]:
            return jnp.zeros(space.shape, space.dtype), ()

        def step(key: object, state: PyTree, action: PyTree) -> EnvStep:
            raise TypeError(
                f"{self.name} steps on the host: give its environments to train.run or "
                "train.pipelined as env="
            )

        return Environment(self.name, space, self.action_space, reset, step)

    def reset(self, seed: int | Sequence[int] | None = None) -> np.ndarray:
        """Reset all environments.

        Args:
          seed: environment i uses `seed` + i, or `seed[i]`.

        Returns:
          Observations [E, *observation].

        Raises:
          RuntimeError: if a process of environments has ended, or the environments are closed.
        """
        self._returns[:] = 0
        self._lengths[:] = 0
        seeds: Sequence[int | None]
        if seed is None or isinstance(seed, (int, np.integer)):
            seeds = [None if seed is None else seed + number for number in range(self.num_envs)]
        elif len(seed) == self.num_envs:
            seeds = seed
        else:
            raise ValueError(f"seed must be a number or {self.num_envs} of them, got {len(seed)}")
        parts = self._all("reset", [(seeds[a:b],) for a, b in self._bounds])
        self.observation = np.concatenate(parts)
        return self.observation

    def step(self, actions: ArrayLike, truncate: np.ndarray | None = None) -> HostStep:
        """Step each environment, and reset those whose episodes stop.

        Args:
          actions: [E, *action] of the action space.
          truncate: [E] bool, episodes to truncate after this step; None: no other than the
            environments truncate themselves.

        Raises:
          ValueError: if the actions' shape or dtype is wrong.
          RuntimeError: if a process of environments has ended, or the environments are closed.
        """
        actions = self._checked(np.asarray(actions))
        cuts = [None if truncate is None else truncate[a:b] for a, b in self._bounds]
        shares = [(actions[a:b], cut) for (a, b), cut in zip(self._bounds, cuts, strict=True)]
        parts = self._all("step", shares)
        observation, reward, terminated, truncated, final = map(
            np.concatenate, zip(*parts, strict=True)
        )
        self.observation = observation
        self._returns += reward
        self._lengths += 1
        result = HostStep(
            *(observation, reward, terminated, truncated, final),
            self._returns.copy(),
            self._lengths.copy(),
        )
        stopped = terminated | truncated
        self._returns[stopped] = 0
        self._lengths[stopped] = 0
        return result

    def close(self) -> None:
        """Close the environments, and end their threads or processes; idempotent."""
        self._calls = []
        self._closing.close()

    def __enter__(self) -> "HostEnvironment":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        space, shape = self.action_space, (self.num_envs, *self.action_space.shape)
        kinds = "iu" if np.dtype(space.dtype).kind in "iu" else "fiu"
        if actions.shape != shape or actions.dtype.kind not in kinds:
            raise ValueError(
                f"actions must be of shape {shape} and dtype {space.dtype}, got {actions.shape} "
                f"{actions.dtype}"
            )
        return actions if isinstance(space, Discrete) else actions.astype(space.dtype)

    def _all(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        if not self._calls:
            raise RuntimeError(f"{self.name} is closed")
        try:
            # All calls are sent before the first wait, so that the groups run in parallel.
            waiting = [
                call(method, *each) for call, each in zip(self._calls, arguments, strict=True)
            ]
            return [wait() for wait in waiting]
        except BaseException:
            self.close()
            raise


def host_environment(
    name: str | Callable[[], Any],
    num_envs: int = 1,
    backend: str = "sync",
    *,
    workers: int | None = None,
    wrappers: Sequence[Callable[[Any], Any]] = (),
    **kwargs: Any,
) -> HostEnvironment:
    """Make a batch of Gymnasium environments that step together on the host.

    Args:
      name: registered with Gymnasium, such as "LunarLander-v3"; a game of ALE, such as
        "ALE/Breakout-v5", made by `atari`; or a function that makes an environment.
      num_envs: E, the number of environments.
      backend: "sync": in sequence. "threads": in threads, for environments that release the GIL.
        "processes": in other processes; the function and its arguments must be picklable by
        cloudpickle.
      workers: threads or processes, each with an equal share of the environments, 1 to `num_envs`;
        None: the number of processors, but at most that of environments. 1 for "sync".
      wrappers: functions of an environment, the innermost first, such as
        `gymnasium.wrappers.FlattenObservation`.
      **kwargs: arguments of `gymnasium.make`, of `atari`, or of the function.

    Raises:
      ValueError: if a number is out of range, the name of the backend or environment is unknown, or
        a space is neither Discrete (from 0) nor Box.
      ImportError: if the environment needs a package that is not installed.
      RuntimeError: if an environment cannot be made in its process.
    """
    one_of("backend", backend, BACKENDS)
    whole("num_envs", num_envs, 1)
    if workers is None:
        workers = 1 if backend == "sync" else min(num_envs, os.cpu_count() or 1)
    whole("workers", workers, 1, 1 if backend == "sync" else num_envs)
    import gymnasium

    title = name if isinstance(name, str) else getattr(name, "__name__", "environment")
    if not isinstance(name, str):
        make = functools.partial(name, **kwargs)
    elif name.startswith(ATARI):
        make = functools.partial(atari, _game(name), **kwargs)
    else:
        try:
            # By specification, since another process may not have registered the name.
            make = functools.partial(gymnasium.make, gymnasium.spec(_imported(name)), **kwargs)
        except gymnasium.error.Error as error:
            raise ValueError(f"no Gymnasium environment is named {name!r}: {error}") from error

    def wrapped() -> Any:  # nested: cloudpickle then sends it whole, and a process needs no jax
        return functools.reduce(lambda env, wrap: wrap(env), wrappers, make())

    try:
        return HostEnvironment(title, [wrapped if wrappers else make] * num_envs, backend, workers)
    except (gymnasium.error.DependencyNotInstalled, ModuleNotFoundError) as error:
        extra = next((extra for extra in EXTRAS if f".envs.{extra}." in _entry_point(name)), None)
        hint = f": pip install 'accel-rl[{extra}]'" if extra else ""
        raise ImportError(f"{title} needs a package that is not there ({error}){hint}") from error


def is_host(name: str) -> bool:
    """Return whether a name is an environment of Gymnasium's registry, or a game of ALE."""
    import gymnasium

    if families.is_family(name):
        return False
    return name.startswith(ATARI) or _imported(name) in gymnasium.registry


def _imported(name: str) -> str:
    """Import the module of `module:name`, as `gymnasium.make` does; return the name."""
    if ":" in name:
        registry.import_named(name)
    return name.rpartition(":")[2]


def _game(name: str) -> str:
    game, _, version = name.removeprefix(ATARI).partition("-")
    if version != "v5":
        raise ValueError(f"games of ALE are named like ALE/Breakout-v5, got {name!r}")
    return game


def _entry_point(name: str | Callable[..., Any]) -> str:
    import gymnasium

    if not isinstance(name, str) or name not in gymnasium.registry:
        return ""
    return str(gymnasium.registry[name].entry_point)


def _held(space: Space) -> Space:
    if isinstance(space, Box):
        return dataclasses.replace(space, dtype=host_worker.held_dtype(space.dtype))
    return space
