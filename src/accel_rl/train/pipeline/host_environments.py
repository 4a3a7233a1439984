"""Host environments of the actors of a pipelined training."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from accel_rl.envs import HostEnvironment
from accel_rl.train.program import Program

HostEnvironmentSource: TypeAlias = (
    HostEnvironment | Sequence[HostEnvironment] | Callable[[int], HostEnvironment]
)
"""Environments of the only actor or of each, or a function of the actor's index that opens them."""


class HostEnvironments:
    """One `HostEnvironment` for each actor; a context manager that closes those that it opened.

    Args:
      program: with the same spaces and number of environments.
      env: None for a program whose environment is compiled.
      num_actors: that share the program's environments.

    Raises:
      ValueError: if there are too few or too many, or they do not match the program.
      TypeError: if `env` is none of these.
    """

    def __init__(
        self, program: Program, env: HostEnvironmentSource | None, num_actors: int
    ) -> None:
        self._program, self._share = program, program.schedule.num_envs // num_actors
        self._hosts: dict[int, HostEnvironment] = {}
        self._open: Callable[[int], HostEnvironment] | None = None
        if env is None:
            return
        if not isinstance(env, (HostEnvironment, Sequence)):
            if not callable(env):
                raise TypeError(
                    "env must be a HostEnvironment, one for each actor, or a function of the "
                    f"actor's index that opens it, got {env!r}"
                )
            self._open = env
            return
        hosts = [env] if isinstance(env, HostEnvironment) else env
        if len(hosts) != num_actors:
            raise ValueError(f"env must be one for each of {num_actors} actors, got {len(hosts)}")
        for number, host in enumerate(hosts):
            self._check(host)
            self._hosts[number] = host

    def of(self, number: int) -> HostEnvironment:
        """Return an actor's environments, to be reset; opened anew where a function opens them.

        Raises:
          ValueError: if opened environments do not match the program.
        """
        if self._open is not None:
            if number in self._hosts:
                self._hosts[number].close()
            self._hosts[number] = self._open(number)
            self._check(self._hosts[number])
        return self._hosts[number]

    def __enter__(self) -> "HostEnvironments":
        return self

    def __exit__(self, *error: object) -> None:
        if self._open is not None:
            for host in self._hosts.values():
                host.close()

    def _check(self, host: HostEnvironment) -> None:
        if host.num_envs != self._share:
            raise ValueError(
                f"env must have {self._share} environments for each actor, got {host.num_envs}"
            )
        for name in ("observation_space", "action_space"):
            ours, theirs = getattr(self._program.env, name), getattr(host, name)
            if ours != theirs:
                raise ValueError(f"env's {name} must be the program's, {ours}, got {theirs}")
