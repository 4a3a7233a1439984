"""Q-learning in C (`tabular_baselines.c`), compiled on the spot and called with NumPy arrays."""

import ctypes
import functools
from pathlib import Path
from typing import Any

import numpy as np
from common import compile_c

SOURCE = Path(__file__).with_suffix(".c")
LANES = 64


class Baselines:
    """The C loops for one arithmetic, number of actions and target block.

    Rows are int32 [D, T, 4] words as `accel_rl.tabular` encodes them, `lengths` int32 [D]; tables
    are changed in place. alpha and gamma are coefficients of the numerics.
    """

    def __init__(
        self,
        directory: Path,
        numerics: str,
        num_actions: int,
        target_block: int,
        contracted: bool = True,
    ) -> None:
        """Compiles.

        Args:
          directory: where to put the library.
          numerics: "fp32", "int32_scaled" or "int32_pow2", with their default scales.
          num_actions: A.
          target_block: B.
          contracted: whether FP32 may use FMA, which is faster and rounds differently.

        Raises:
          FileNotFoundError: there is no gcc.
          RuntimeError: gcc failed.
        """
        defines = {numerics.upper(): 1, "ACTIONS": num_actions, "BLOCK": target_block}
        flags = () if contracted else ("-ffp-contract=off",)
        self._library = compile_c(SOURCE, directory, defines, flags)
        self.dtype = np.dtype(np.float32 if numerics == "fp32" else np.int32)
        self._scalar: Any = ctypes.c_float if numerics == "fp32" else ctypes.c_int32

    def sequential(
        self,
        rows: np.ndarray,
        lengths: np.ndarray,
        tables: np.ndarray,
        alphas: np.ndarray,
        gamma: Any,
        prefetch: bool = False,
    ) -> None:
        """One pass over every chunk, for one step size after the other: tables [R, D, E].

        With `prefetch` a chunk's table is asked for as a whole before its first row.
        """
        entries = tables.shape[-1]
        flag = ctypes.c_int(prefetch)
        self._passes("sequential", rows, lengths, tables, entries, alphas, gamma, flag)

    def lanes(
        self,
        rows: np.ndarray,
        lengths: np.ndarray,
        tables: np.ndarray,
        alphas: np.ndarray,
        gamma: Any,
    ) -> None:
        """Return the same, 64 step sizes side by side: tables [R / 64, D, E, 64]."""
        self._passes("lanes", rows, lengths, tables, tables.shape[-2], alphas, gamma)

    def shared_table(
        self, rows: np.ndarray, table: np.ndarray, alpha: Any, gamma: Any, threads: int
    ) -> None:
        """One pass by threads that race on one table: rows [N, 4], table [E]."""
        arguments = (ctypes.c_int64(len(rows)), self._pointer(table), *self._scalars(alpha, gamma))
        _check(self._library.shared_table(_words(rows), *arguments, ctypes.c_int(threads)))

    def private_tables(
        self, rows: np.ndarray, table: np.ndarray, alpha: Any, gamma: Any, threads: int
    ) -> None:
        """One pass by threads with a table each, averaged at the end: rows [N, 4], table [E]."""
        sizes = (ctypes.c_int64(len(rows)), self._pointer(table), ctypes.c_int64(table.size))
        scalars = (*self._scalars(alpha, gamma), ctypes.c_int(threads))
        _check(self._library.private_tables(_words(rows), *sizes, *scalars))

    def _passes(
        self,
        name: str,
        rows: np.ndarray,
        lengths: np.ndarray,
        tables: np.ndarray,
        entries: int,
        alphas: np.ndarray,
        gamma: Any,
        *flags: Any,
    ) -> None:
        chunks, capacity, _ = rows.shape
        assert tables.size == len(alphas) * chunks * entries
        assert lengths.dtype == np.int32
        getattr(self._library, name)(
            _words(rows),
            ctypes.c_void_p(lengths.ctypes.data),
            ctypes.c_int64(chunks),
            ctypes.c_int64(capacity),
            self._pointer(tables),
            ctypes.c_int64(entries),
            self._pointer(alphas),
            ctypes.c_int64(len(alphas)),
            self._scalar(gamma),
            *flags,
        )

    def _pointer(self, array: np.ndarray) -> ctypes.c_void_p:
        assert array.dtype == self.dtype
        assert array.flags.c_contiguous
        return ctypes.c_void_p(array.ctypes.data)

    def _scalars(self, *values: Any) -> list[Any]:
        return [self._scalar(value) for value in values]


@functools.cache
def baselines(
    directory: Path, numerics: str, num_actions: int, target_block: int, contracted: bool = True
) -> Baselines | None:
    """Return the compiled loops, or None where there is no gcc."""
    try:
        return Baselines(directory, numerics, num_actions, target_block, contracted)
    except FileNotFoundError:
        return None


def _words(rows: np.ndarray) -> ctypes.c_void_p:
    assert rows.dtype == np.int32
    assert rows.flags.c_contiguous
    return ctypes.c_void_p(rows.ctypes.data)


def _check(status: int) -> None:
    if status:
        raise RuntimeError("a thread of the C baseline could not start, or memory is short")
