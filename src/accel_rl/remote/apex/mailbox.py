"""What learner and actors leave for one another in the server's mailbox."""

import dataclasses
import json
import time
from collections.abc import Callable

import jax
import numpy as np
from flax import serialization

from accel_rl.remote.client import ReplayClient
from accel_rl.train.pipeline.actors import Published, Version

LIFE = 1 << 40  # versions of an actor's reports go on from here each time it is started again


def check_free(client: ReplayClient, run: str) -> None:
    """Raises ValueError if a training of that name has left a policy on the server."""
    if client.fetch(f"{run}/policy") is not None:
        raise ValueError(
            f"there was a training named {run!r} on this server already: choose another, as "
            "run=NAME, or start another server"
        )


def publish(client: ReplayClient, run: str, version: Version) -> None:
    """Leaves a version of the policy, with what actors need of the critics."""
    leaves = jax.tree.leaves(version.published)
    arrays = {str(number): np.asarray(leaf) for number, leaf in enumerate(leaves)}
    client.publish(f"{run}/policy", version.updates, serialization.msgpack_serialize(arrays))


class Newest:
    """The newest policy in the mailbox, looked for once in a while.

    Args:
      client: of the server.
      run: the training's name.
      like: a policy with the same structure, shapes and dtypes.
      going: asked while there is none; RuntimeError where it says no.
      seconds: between two looks.
    """

    def __init__(
        self,
        client: ReplayClient,
        run: str,
        like: Published,
        going: Callable[[], bool] = lambda: True,
        seconds: float = 0.1,
    ) -> None:
        self._client, self._going, self._seconds = client, going, seconds
        self._name = f"{run}/policy"
        self._leaves, self._structure = jax.tree.flatten(like)
        self._version: Version | None = None
        self._looked = -float("inf")

    def __call__(self) -> Version:
        """Waits for the first.

        Raises:
          ValueError: if what is published does not fit the program.
          RemoteError: if the server is lost.
        """
        while self._version is None:
            self._look(None)
            if self._version is None:
                if not self._going():
                    raise RuntimeError("told to stop before there was a policy")
                time.sleep(self._seconds)
        if time.monotonic() > self._looked + self._seconds:
            self._look(self._version.updates)
        return self._version

    def _look(self, newer_than: int | None) -> None:
        found = self._client.fetch(self._name, newer_than=newer_than)
        self._looked = time.monotonic()
        if found is not None:
            self._version = Version(self._read(found[1]), found[0])

    def _read(self, value: bytes) -> Published:
        arrays = serialization.msgpack_restore(value)
        leaves = [arrays.get(str(number)) for number in range(len(self._leaves))]
        for leaf, like in zip(leaves, self._leaves, strict=True):
            if leaf is None or (leaf.shape, leaf.dtype) != (like.shape, like.dtype):
                raise ValueError("what the learner publishes is not of this program")
        return jax.tree.unflatten(self._structure, leaves)


@dataclasses.dataclass(frozen=True)
class Report:
    """What an actor has done since the training began, however often it was started again."""

    life: int  # how often it was started before
    iteration: int  # its last; -1: none
    steps: int  # of its environments
    updates: int  # that its policy had seen
    episodes: int
    episode_return: float  # sum over episodes
    episode_length: float  # sum over episodes


def report(client: ReplayClient, run: str, number: int, done: Report) -> None:
    """Leaves what an actor has done; in each life once before it acts, then of more each time."""
    value = json.dumps(dataclasses.asdict(done)).encode()
    client.publish(f"{run}/actor/{number}", done.life * LIFE + done.iteration + 1, value)


def reported(client: ReplayClient, run: str, number: int) -> Report | None:
    """What an actor did; None if it has not said."""
    found = client.fetch(f"{run}/actor/{number}")
    return None if found is None else Report(**json.loads(found[1]))
