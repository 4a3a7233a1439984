"""Functions of the host program that the library calls between a rank's jobs."""

import itertools
import threading
from collections.abc import Callable

from pim_emu import host_library as lib


class Callbacks:
    """Functions that the library has yet to call.

    One C function calls them all, by the number that the library passes to it: a C function of
    each could not be freed when it was called, since it still has to return.

    Attributes:
      entry: the C function.
      errors: exceptions of functions that were not raised yet; C code cannot pass them on.
    """

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.entry = lib.CALLBACK(self._run)
        self._functions: dict[int, tuple[Callable[[int], object], list[None]]] = {}
        self._numbers = itertools.count(1)
        self._threads: list[int] = []  # that run a function

    def __len__(self) -> int:
        return len(self._functions)

    def add(self, function: Callable[[int], object], times: int) -> int:
        """Keep a function of the rank's index until it was called `times`; return its number."""
        number = next(self._numbers)
        self._functions[number] = function, [None] * times
        return number

    def remove(self, number: int) -> None:
        """Forget a function, if it is still kept."""
        self._functions.pop(number, None)

    def clear(self) -> None:
        """Forget all functions."""
        self._functions.clear()

    def is_running_here(self) -> bool:
        """Tell whether a function calls this, in its thread."""
        return threading.get_ident() in self._threads

    def _run(self, _: lib.SetHandle, index: int, number: int) -> int:
        function, calls_left = self._functions[number]
        thread = threading.get_ident()
        self._threads.append(thread)
        try:
            function(index)
        except BaseException as error:
            self.errors.append(error)
            return lib.INTERNAL
        finally:
            self._threads.remove(thread)
            calls_left.pop()  # ranks call it at the same time: one operation decides who is last
            if not calls_left:
                self.remove(number)
        return 0
