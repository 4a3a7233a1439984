"""Copies to and from a program's variables: checks of arguments, and explanations of errors."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pim_emu import host_library as lib
from pim_emu.arguments import shown, whole
from pim_emu.program import variables

HEAP = "heap"  # what users call the MRAM that no variable takes
_LIBRARY_HEAP = "__sys_used_mram_end"
_HEAP_IN_MESSAGES = "DPU_MRAM_HEAP_POINTER_NAME"
_COPIED_KINDS = "biufcV"
_OF_PYTHON = (np.dtype(np.int64), np.dtype(np.float64))  # what its numbers become
_MOST_SHOWN = 20


def symbol_name(symbol: str) -> bytes:
    """Return the host library's name of a symbol.

    Raises:
      TypeError: if it is not a string.
      ValueError: if it is empty or has a NUL.
    """
    if not isinstance(symbol, str):
        raise TypeError(f"symbol must be the name of a variable, got {shown(symbol)}")
    if not symbol or "\0" in symbol:
        raise ValueError(f"symbol must be the name of a variable, got {shown(symbol)}")
    return os.fsencode(_LIBRARY_HEAP if symbol == HEAP else symbol)


def sent_array(symbol: str, values: Any) -> np.ndarray:
    """Convert values to an array with the bytes of C variables.

    Raises:
      TypeError: if the values have no C type, or another byte order.
      ValueError: if rows differ in length.
    """
    try:
        data = np.asarray(values, order="C")
    except ValueError as error:
        raise ValueError(f"symbol {symbol!r}: values are not an array: {error}") from None
    _check_dtype(symbol, data.dtype)
    return data


def read_layout(symbol: str, dtype: Any, shape: Any) -> tuple[np.dtype, tuple[int, ...]]:
    """Check the dtype and shape of a read from one DPU's symbol, and return them.

    Raises:
      TypeError: if `dtype` or `shape` is invalid, or the dtype has no C type.
      ValueError: if a length is negative.
    """
    where = f"symbol {symbol!r}"
    try:
        if dtype is None:  # to NumPy, another name for float64
            raise TypeError
        found = np.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(
            f"{where}: dtype must be a type of NumPy such as np.uint32, got {shown(dtype)}"
        ) from None
    _check_dtype(symbol, found)
    lengths = shape if isinstance(shape, tuple | list) else (shape,)
    return found, tuple(whole(f"{where}: shape", each, 0, 2**32 - 1) for each in lengths)


def explained(
    error: lib.DpuError, symbol: str, dtype: np.dtype, program: Path | None
) -> lib.DpuError:
    """Return a transfer's error in the user's terms, with a hint at the correction."""
    text = str(error)
    if symbol == HEAP:
        text = text.replace(f'"{_HEAP_IN_MESSAGES}"', f'"{HEAP}"')
    if error.status == lib.BEYOND_SYMBOL and dtype in _OF_PYTHON:
        text += (
            f"; {dtype} values take 8 B each, and Python's numbers become such: give them the "
            "variable's type in C, as in np.uint32(5)"
        )
    names = variables(program) if error.status == lib.UNKNOWN_SYMBOL and program else []
    if names:
        more = ", ..." if len(names) > _MOST_SHOWN else ""
        text += f"; it has {', '.join(names[:_MOST_SHOWN])}{more} and {HEAP}"
    return lib.DpuError(text, error.status)


def _check_dtype(symbol: str, dtype: np.dtype) -> None:
    for part in _parts(dtype):
        if part.kind not in _COPIED_KINDS or part.hasobject:
            raise TypeError(
                f"symbol {symbol!r}: dtype {dtype} cannot be copied to or from a DPU; numbers and "
                "structures of numbers can, such as np.uint32"
            )
        if not part.isnative:
            raise TypeError(
                f"symbol {symbol!r}: dtype {dtype} has its bytes in another order than a DPU; "
                f"convert it to {dtype.newbyteorder('=')}"
            )


def _parts(dtype: np.dtype) -> Iterator[np.dtype]:
    """Yield the scalar types that a structured or array dtype consists of."""
    if dtype.subdtype is not None:
        yield from _parts(dtype.subdtype[0])
    elif dtype.fields is not None:
        for field in dtype.fields.values():
            yield from _parts(field[0])
    else:
        yield dtype
