"""Base class of objects that a `with` block closes."""

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Context manager that closes itself on exit."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
