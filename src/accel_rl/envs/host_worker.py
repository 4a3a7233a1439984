"""Group of Gymnasium environments that step in sequence; as a script, a worker process.

This module imports neither JAX nor the rest of the library, so that worker processes start quickly
and stay small.
"""

import contextlib
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    import gymnasium

# 64-bit dtypes are narrowed as in JAX.
_HELD = {"float64": "float32", "int64": "int32", "uint64": "uint32"}


def held_dtype(dtype: DTypeLike) -> np.dtype:
    """Return the dtype in which JAX holds observations and actions of a space's dtype."""
    return np.dtype(_HELD.get(np.dtype(dtype).name, np.dtype(dtype)))


class WorkerGroup:
    """Environments with the same spaces that step in sequence and reset automatically.

    Args:
      makes: one function without arguments for each environment.
      first: number of the first environment, for messages.

    After any error, the environments made so far are closed.
    """

    def __init__(self, makes: Sequence[Callable[[], Any]], first: int = 0) -> None:
        self._first = first
        self._envs: list[Any] = []
        with contextlib.ExitStack() as stack:
            for make in makes:
                env = make()
                stack.callback(env.close)
                self._envs.append(env)
            self._dtype = held_dtype(self._envs[0].observation_space.dtype)
            self.closing = stack.pop_all()

    def spaces(self) -> list[tuple[Any, Any]]:
        """Return Gymnasium's observation and action spaces of each environment."""
        return [(env.observation_space, env.action_space) for env in self._envs]

    def reset(self, seeds: Sequence[int | None]) -> np.ndarray:
        """Start new episodes; return observations [n, *observation]."""
        return self._stack([self._call(_reset, each, seed) for each, seed in enumerate(seeds)])

    def step(
        self, actions: Sequence[Any], truncate: Sequence[bool] | None = None
    ) -> tuple[np.ndarray, ...]:
        """Step all environments, truncate some if told to, and reset those whose episodes stop.

        Where an episode stops, the observation is the first of the next episode and the final
        observation the last of the old one; elsewhere both are the same.

        Returns:
          Observation, reward (float32), terminated, truncated, final observation; each [n, ...].
        """
        cuts = [False] * len(actions) if truncate is None else truncate
        pairs = enumerate(zip(actions, cuts, strict=True))
        rows = [self._call(_step, each, pair) for each, pair in pairs]
        observations, rewards, terminated, truncated, finals = zip(*rows, strict=True)
        return (
            self._stack(observations),
            np.array(rewards, np.float32),
            np.array(terminated, bool),
            np.array(truncated, bool),
            self._stack(finals),
        )

    def close(self) -> None:
        """Close all environments, even if one raises."""
        self.closing.close()

    def _stack(self, observations: Sequence[Any]) -> np.ndarray:
        return np.stack([np.asarray(each, self._dtype) for each in observations])

    def _call(self, function: Callable[[Any, Any], object], number: int, argument: object) -> Any:
        try:
            return function(self._envs[number], argument)
        except Exception as error:
            error.add_note(f"in host environment number {self._first + number}")
            raise


def _reset(env: "gymnasium.Env[Any, Any]", seed: int | None) -> Any:
    return env.reset(seed=seed)[0]


def _step(env: "gymnasium.Env[Any, Any]", pair: tuple[Any, bool]) -> tuple[Any, ...]:
    action, cut = pair
    final, reward, terminated, truncated, _ = env.step(action)
    truncated = truncated or cut
    observation = final
    if terminated or truncated:
        # Copied, since some environments reuse one array for observations.
        final = np.array(final)
        observation, _ = env.reset()
    return observation, reward, terminated, truncated, final


def serve(connection: Connection) -> None:
    """Serve calls of a `WorkerGroup`'s methods until one fails or the other end closes.

    The first message is (sys.path, pickled (makes, first)). Calls are (method, arguments), answers
    (True, result) or (False, traceback).
    """
    path, pickled = connection.recv()
    sys.path[:] = path
    group = None
    try:
        while True:
            try:
                method, arguments = connection.recv()
            except EOFError:
                return
            try:
                if group is None:
                    group = WorkerGroup(*pickle.loads(pickled))
                result = getattr(group, method)(*arguments)
            except Exception:
                connection.send((False, traceback.format_exc()))
                return
            connection.send((True, result))
    finally:
        if group is not None:
            group.close()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    serve(Connection(int(sys.argv[1])))
