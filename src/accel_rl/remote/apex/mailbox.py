"""Messages between learner and actors in the server's mailbox: policies and reports."""

import contextlib
import dataclasses
import json
import threading
import time
from collections.abc import Callable

import jax
import numpy as np
from flax import serialization

from accel_rl.remote.client import ReplayClient
from accel_rl.remote.errors import OutcomeUnknown, RequestRefused
from accel_rl.train.pipeline.actors import Published, Version

LIFE = 1 << 40  # added to versions for each restart of the actor or learner that publishes them

_BAD_VERSION = 8


def check_free(client: ReplayClient, run: str) -> None:
    """Raise ValueError if the server has a policy of a training with that name."""
    if client.fetch(f"{run}/policy") is not None:
        raise ValueError(
            f"there was a training named {run!r} on this server already: choose another, as "
            "run=NAME, or start another server"
        )


def next_life(client: ReplayClient, run: str) -> int:
    """Return the first life whose policies are newer than the published one."""
    found = client.fetch(f"{run}/policy")
    return 0 if found is None else found[0] // LIFE + 1


def publish(client: ReplayClient, run: str, version: Version, life: int = 0) -> None:
    """Publish a version of the policy, with the critics that actors need, if any.

    A learner that continues from a checkpoint has fewer updates than the published policy, so its
    `life`, the number of earlier starts, comes first in the order of versions.
    """
    leaves = jax.tree.leaves(version.published)
    arrays = {str(number): np.asarray(leaf) for number, leaf in enumerate(leaves)}
    number = life * LIFE + version.updates
    client.publish(f"{run}/policy", number, serialization.msgpack_serialize(arrays))


class Publisher:
    """Publication of a learner's policies, again where a server has forgotten them; thread-safe.

    Args:
      client: of the server.
      run: name of the training.
      life: see `publish`.
    """

    def __init__(self, client: ReplayClient, run: str, life: int) -> None:
        self._client, self._run, self._life = client, run, life
        self._lock = threading.Lock()
        self._session = client.session
        self._newest: Version | None = None

    def __call__(self, version: Version) -> None:
        """Publish a version, unless it is the last one again."""
        with self._lock:
            if self._newest is None or version.updates > self._newest.updates:
                self._newest = version
                self._send()

    def renew(self) -> None:
        """Publish the last version again if the server has been restarted."""
        with self._lock:
            self._client.ping()
            if self._newest is not None and self._client.session != self._session:
                self._send()

    def _send(self) -> None:
        assert self._newest is not None
        for _ in range(2):
            try:
                publish(self._client, self._run, self._newest, self._life)
            except OutcomeUnknown:  # the restarted server may not have it
                continue
            except RequestRefused as error:
                if error.status != _BAD_VERSION:
                    raise  # else the server has it already
            break
        self._session = self._client.session


class Newest:
    """Newest policy in the mailbox, polled at most every `seconds`.

    Args:
      client: of the server.
      run: name of the training.
      like: a policy with the same structure, shapes and dtypes.
      should_continue: called while no policy is published; if False, the wait ends with a
        RuntimeError.
      seconds: between two polls.
    """

    def __init__(
        self,
        client: ReplayClient,
        run: str,
        like: Published,
        should_continue: Callable[[], bool] = lambda: True,
        seconds: float = 0.1,
    ) -> None:
        self._client, self._should_continue, self._seconds = client, should_continue, seconds
        self._name = f"{run}/policy"
        self._leaves, self._structure = jax.tree.flatten(like)
        self._version: Version | None = None
        self._number = 0  # of the version in the mailbox
        self._looked = -float("inf")

    def __call__(self) -> Version:
        """Return the newest version; wait for the first one."""
        while self._version is None:
            self._look(None)
            if self._version is None:
                if not self._should_continue():
                    raise RuntimeError("told to stop before there was a policy")
                time.sleep(self._seconds)
        if time.monotonic() > self._looked + self._seconds:
            self._look(self._number)
        return self._version

    def _look(self, newer_than: int | None) -> None:
        found = self._client.fetch(self._name, newer_than=newer_than)
        self._looked = time.monotonic()
        if found is not None:
            self._number = found[0]
            self._version = Version(self._read(found[1]), found[0] % LIFE)

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
    doubtful: int = 0  # transitions pushed that the server may or may not hold


def report(client: ReplayClient, run: str, number: int, done: ActorReport) -> None:
    """Publish an actor's progress: in each life once before it acts, then after new iterations."""
    value = json.dumps(dataclasses.asdict(done)).encode()
    # A lost report does not matter: the next one has its sums, too.
    with contextlib.suppress(OutcomeUnknown):
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
