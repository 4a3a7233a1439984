"""Assertions of checks; they raise AssertionError whatever the interpreter's options."""

import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from accel_rl.types import PyTree


def expect(holds: Any, message: str) -> None:
    """Raise AssertionError with the message unless all elements of `holds` are true."""
    if not np.all(holds):
        raise AssertionError(message)


def expect_equal(found: PyTree, wanted: PyTree, what: str) -> None:
    """Raise AssertionError unless both are equal."""
    if found != wanted:
        raise AssertionError(f"{what} must be {wanted}, got {found}")


def expect_refusal(
    error: type[Exception],
    pattern: str,
    function: Callable[..., object],
    *arguments: object,
    by: str = "",
) -> None:
    """Raise AssertionError unless the call raises this error with a message of this pattern.

    `by` names a function of the library that raises such an error.
    """
    hint = f" ({by} does)" if by else ""
    try:
        function(*arguments)
    except error as raised:
        said = str(raised)
        if not re.search(pattern, said):
            raise AssertionError(
                f"a refusal must say {pattern!r}{hint}, it says: {said}"
            ) from raised
        return
    raise AssertionError(
        f"this must be refused with a {error.__name__} that says {pattern!r}{hint}"
    )


def expect_close(found: PyTree, wanted: PyTree, message: str) -> None:
    """Raise AssertionError unless two pytrees are equal up to rounding."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5, err_msg=message)
