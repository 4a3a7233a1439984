"""Functions of the host program that the library calls between a rank's jobs."""

from collections.abc import Callable

from pim_emu import host_library as lib


def as_entry(function: Callable[[int], object], errors: list[BaseException]) -> object:
    """Return a function of the rank's index as the library calls it.

    Args:
      function: it gets the rank's index.
      errors: list to which its exceptions are appended; C code cannot pass them on.
    """

    def run(_: lib.SetHandle, index: int, __: object) -> int:
        try:
            function(index)
        except BaseException as error:
            errors.append(error)
            return lib.INTERNAL
        return 0

    return lib.CALLBACK(run)
