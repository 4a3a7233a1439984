"""Messages between learner and actors in the server's mailbox: policies and reports."""

import dataclasses
import json
import time
from collections.abc import Callable

import jax
import numpy as np
from flax import serialization

from accel_rl.remote.client import ReplayClient
from accel_rl.train.pipeline.actors import Published, Version

LIFE = 1 << 40  # added to the versions of an actor's reports for each restart


def check_free(client: ReplayClient, run: str) -> None:
    """Raise ValueError if the server has a policy of a training with that name."""
    if client.fetch(f"{run}/policy") is not None:
        raise ValueError(
            f"there was a training named {run!r} on this server already: choose another, as "
            "run=NAME, or start another server"
        )


def publish(client: ReplayClient, run: str, version: Version) -> None:
    """Publish a version of the policy, with the critics that actors need, if any."""
    leaves = jax.tree.leaves(version.published)
    arrays = {str(number): np.asarray(leaf) for number, leaf in enumerate(leaves)}
    client.publish(f"{run}/policy", version.updates, serialization.msgpack_serialize(arrays))


class Newest:
    """Newest policy in the mailbox, polled at most every `seconds`.

    Args:
      client: of the server.
      run: name of the training.
      like: a policy with the same structure, shapes and dtypes.
      going: called while no policy is published; if it returns False, the wait ends with a
        RuntimeError.
      seconds: between two polls.
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
        """Return the newest version; wait for the first one."""
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
        wrong = f"{self._name} in the server's mailbox is no policy of this program"
        try:
            arrays = serialization.msgpack_restore(value)
            leaves = [arrays[str(number)] for number in range(len(self._leaves))]
            found = [(leaf.shape, leaf.dtype) for leaf in leaves]
        except Exception as error:  # anybody with the secret can publish anything
            raise ValueError(f"{wrong}: {error}") from error
        if found != [(like.shape, like.dtype) for like in self._leaves]:
            raise ValueError(wrong)
        return jax.tree.unflatten(self._structure, leaves)


@dataclasses.dataclass(frozen=True)
class ActorReport:
    """Progress of an actor since the training began, restarts included."""

    life: int  # number of earlier starts
    iteration: int  # the last one; -1: none
    steps: int  # of all its environments
    updates: int  # seen by its policy
    episodes: int
    episode_return: float  # sum over episodes
    episode_length: float  # sum over episodes


def report(client: ReplayClient, run: str, number: int, done: ActorReport) -> None:
    """Publish an actor's progress: in each life once before it acts, then after new iterations."""
    value = json.dumps(dataclasses.asdict(done)).encode()
    client.publish(f"{run}/actor/{number}", done.life * LIFE + done.iteration + 1, value)


def reported(client: ReplayClient, run: str, number: int) -> ActorReport | None:
    """Return the last report of an actor, or None."""
    name = f"{run}/actor/{number}"
    found = client.fetch(name)
    if found is None:
        return None
    try:
        return ActorReport(**json.loads(found[1]))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} in the server's mailbox is no report of an actor") from error
