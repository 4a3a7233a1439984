"""How often actors may be started anew after an error, and how often they were."""

import threading
import warnings


class Restarts:
    """Shared by all actors.

    Args:
      limit: of all actors together.
    """

    def __init__(self, limit: int) -> None:
        self.count = 0  # so far
        self._limit = limit
        self._lock = threading.Lock()

    def take(self, error: Exception) -> bool:
        """Whether the actor whose thread this is may be started anew after the error.

        If so it is counted, with a RuntimeWarning.
        """
        with self._lock:
            if self.count == self._limit:
                return False
            self.count += 1
            left = self._limit - self.count
        warnings.warn(
            f"{threading.current_thread().name!r} is started anew after "
            f"{type(error).__name__}: {error} ({left} restarts left)",
            RuntimeWarning,
            stacklevel=2,
        )
        return True
