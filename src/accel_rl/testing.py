"""Checks that users can make of their own compiled programs."""

import re
from collections.abc import Callable
from typing import Any

import jax

# Opcodes that write a whole array anew. What a fusion writes shows as temporary memory instead.
_COPY = re.compile(r"= (?P<type>\w+)\[(?P<shape>[\d,]*)\]\S* (?:copy|copy-start)\(")
_TYPES = {
    "pred": "bool",
    **{f"s{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"f{n}": f"float{n}" for n in (16, 32, 64)},
    "bf16": "bfloat16",
}


def assert_inplace(
    fn: Callable[..., Any],
    state: Any,
    *args: Any,
    least_bytes: int = 4096,
    temporary_bytes: int | None = None,
) -> None:
    """Check that `fn(state, *args)`, compiled with `state` donated, changes it in place.

    The program is compiled, not run. It fails if it copies an array of the size of one in the
    state, needs temporary memory for one (as `jnp.where` over a buffer does), or does not give the
    state's memory to its results. Arrays below `least_bytes` are not looked at; take a state whose
    arrays are larger than batches are, and of different sizes than those.

    Args:
      fn: a function whose results hold a new state, such as a scan over training steps.
      state: a pytree of arrays, such as the state of a replay memory.
      *args: further arguments.
      least_bytes: size of the smallest array that is looked at.
      temporary_bytes: temporary memory that the program may take; less than the smallest array that
        is looked at if None. Branches that are seldom taken count as well.

    Raises:
      AssertionError: if the memory is not used in place, with what was found.
      ValueError: if no array of the state is large enough to be looked at.
    """
    large = [leaf for leaf in jax.tree.leaves(state) if leaf.nbytes >= least_bytes]
    if not large:
        raise ValueError(f"state must have an array of least_bytes ({least_bytes}) or more")
    compiled = jax.jit(fn, donate_argnums=0).lower(state, *args).compile()
    sizes = {(str(leaf.dtype), leaf.size) for leaf in large}
    found = [
        f"copy of {match['type']}[{match['shape']}]"
        for match in _COPY.finditer(compiled.as_text() or "")
        if (_TYPES.get(match["type"]), _size(match["shape"])) in sizes
    ]
    memory = compiled.memory_analysis()
    donated = sum(leaf.nbytes for leaf in large)
    smallest = min(leaf.nbytes for leaf in large)
    allowed = smallest - 1 if temporary_bytes is None else temporary_bytes
    if memory is not None and memory.temp_size_in_bytes > allowed:
        found.append(
            f"{memory.temp_size_in_bytes} bytes of temporary memory, more than {allowed}: an array "
            f"of the state takes {smallest}"
        )
    if memory is not None and memory.alias_size_in_bytes < donated:
        found.append(
            f"{memory.alias_size_in_bytes} bytes of the state go to results, of {donated}: a "
            "changed state must be among the results, with the same shapes and dtypes"
        )
    if found:
        raise AssertionError(f"the program is not in place: {'; '.join(sorted(set(found)))}")


def _size(shape: str) -> int:
    size = 1
    for length in filter(None, shape.split(",")):
        size *= int(length)
    return size
