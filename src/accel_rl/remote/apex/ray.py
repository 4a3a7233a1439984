"""Actors on the nodes of a Ray cluster.

Ray places the actors and reports their end. Transitions do not pass through Ray: actors connect to
the replay server directly, with the replay protocol, which contains no pickles.
"""

import math
import os
import threading
from typing import Any, NamedTuple

from accel_rl.remote.apex.acting import RECONNECT, obey
from accel_rl.remote.apex.launcher import PATIENCE, Actors
from accel_rl.remote.apex.training import ApexTraining
from accel_rl.remote.shard import Address


def _ray() -> Any:
    """Import Ray, a large and optional dependency."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "actors on Ray need the extra ray: pip install 'accel-rl[ray]' "
            f"({error}). LocalActors do without."
        ) from error
    return ray


class _Acting:
    """Ray actor class; Ray gives it one thread for `run` and one for `stop`."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    def run(self, order: str) -> None:
        obey(order, self._ended)

    def stop(self) -> None:
        self._ended.set()


class _Placed(NamedTuple):
    """Actor placed by Ray."""

    handle: Any
    result: Any  # of `run`


class RayActors(Actors[_Placed]):
    """Actors of a training as Ray actors, on any node with free CPUs.

    accel_rl must be installed on the nodes, and the server must be reachable from them: not on the
    loopback interface, and with a secret. Ray's own ports let anyone who reaches them run code.
    """

    def __init__(
        self,
        training: ApexTraining,
        address: Address,
        *,
        secret: bytes | None = None,
        restarts: int = 0,
        reconnect: float = RECONNECT,
        life: int = 0,
        ray_address: str | None = None,
        num_cpus: float = 1.0,
    ) -> None:
        """Start the actors, on an existing cluster or a new one on this machine.

        Args:
          training: from `load`.
          address: of the server, or of several shards.
          secret: shared secret; Ray passes it to the nodes.
          restarts: as in `Actors`.
          reconnect: as in `Actors`.
          life: as in `Actors`.
          ray_address: of the cluster, such as "auto" or "host:6379"; None: the cluster that this
            process is connected to, or a new one on the loopback interface, which `close` ends.
          num_cpus: CPUs of the cluster that each actor takes; an actor waits until they are free.

        Raises:
          ImportError: if Ray is not installed.
          ConnectionError: if there is no cluster at the address, or none could be started.
        """
        self._ray, self._num_cpus = _ray(), num_cpus
        self._own = not self._ray.is_initialized()
        if self._own:
            self._begin(ray_address, training.num_actors)
        self._actor = self._ray.remote(_Acting)
        try:
            super().__init__(
                training,
                address,
                secret=secret,
                restarts=restarts,
                reconnect=reconnect,
                life=life,
            )
        except BaseException:
            if self._own:
                self._ray.shutdown()
            raise

    def _begin(self, address: str | None, actors: int) -> None:
        try:
            if address is not None:
                self._ray.init(address=address)
                return
            self._ray.init(
                address="local",  # not a cluster that happens to run on this machine
                num_cpus=max(os.cpu_count() or 1, math.ceil(self._num_cpus * actors)),
                include_dashboard=False,
                _node_ip_address="127.0.0.1",  # or Ray chooses an address that others can reach
            )
        except Exception as error:  # Ray has no exception type for it
            self._ray.shutdown()
            raise ConnectionError(f"no Ray cluster: {error}") from error

    def _start(self, number: int) -> _Placed:
        # `Actors` restarts actors: it counts restarts over all, and each start has its own keys.
        handle = self._actor.options(
            num_cpus=self._num_cpus, max_restarts=0, max_concurrency=2
        ).remote()
        return _Placed(handle, handle.run.remote(self._order(number)))

    def _how(self, actor: _Placed) -> str | None:
        try:
            ready, _ = self._ray.wait([actor.result], timeout=0)
            if not ready:
                return None
            self._ray.get(actor.result)
        except Exception as error:  # a Ray error, or a type that Ray derives from the actor's error
            lines = str(error).strip().splitlines()
            return f"{type(error).__name__}: {lines[-1] if lines else 'without a message'}"
        return "no error"

    def _stop(self) -> None:
        for actor in self.running:
            actor.handle.stop.remote()
        results = [actor.result for actor in self.running]
        if results:
            self._ray.wait(results, num_returns=len(results), timeout=PATIENCE)
        for actor in self.running:
            self._ray.kill(actor.handle)
        if self._own:
            self._ray.shutdown()
