"""Base class of objects that a `with` block closes."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Context manager that closes itself on exit."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
