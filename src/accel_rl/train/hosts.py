"""The host environments of a pipelined training's actors."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from accel_rl.envs import HostEnvironment
from accel_rl.train.program import Program

Given: TypeAlias = HostEnvironment | Sequence[HostEnvironment] | Callable[[int], HostEnvironment]


class Hosts:
    """One `HostEnvironment` for each actor: given, or opened by a function of the actor's number.

    A context manager, which closes those that it opened.

    Args:
      program: whose environments they are.
      env: the only actor's, or one for each; or what opens them; None: there are none.
      num_actors: how many share the program's environments.

    Raises:
      ValueError: if those given are too few or too many, or do not fit the program.
      TypeError: if `env` is none of these.
    """

    def __init__(self, program: Program, env: Given | None, num_actors: int) -> None:
        self._program, self._share = program, program.schedule.num_envs // num_actors
        self._hosts: dict[int, HostEnvironment] = {}
        self._open: Callable[[int], HostEnvironment] | None = None
        if env is None:
            return
        if not isinstance(env, (HostEnvironment, Sequence)):
            if not callable(env):
                raise TypeError(
                    "env must be a HostEnvironment, one for each actor, or a function of the "
                    f"actor's number that opens it, got {env!r}"
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
        """An actor's, to be reset: that which was given, or else a new one in place of the last.

        Raises:
          ValueError: if what was opened does not fit the program.
        """
        if self._open is not None:
            if number in self._hosts:
                self._hosts[number].close()
            self._hosts[number] = self._open(number)
            self._check(self._hosts[number])
        return self._hosts[number]

    def __enter__(self) -> "Hosts":
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
