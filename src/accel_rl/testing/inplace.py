"""Check that a compiled program updates its state in place."""

import re
from collections.abc import Callable, Iterator

import jax

from accel_rl.types import PyTree

_COMPUTATION = re.compile(r"^(?:ENTRY )?%?(?P<name>[\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(
    r"^\s+(?P<root>ROOT )?%?[\w.\-]+ = (?P<type>\w+)\[(?P<shape>[\d,]*)\]\S* (?P<opcode>[\w\-]+)"
    r"\((?P<operand>%?[\w.\-]+)?"
)
_CALLED = re.compile(r"calls=%?(?P<name>[\w.\-]+)")
_ALWAYS_FOUND = {"copy", "copy-start", "rewrite"}
# What passes an array on, fills a new one, or writes a part of one.
_HARMLESS = {
    *("parameter", "get-tuple-element", "bitcast", "while", "conditional", "call", "custom-call"),
    *("constant", "broadcast", "iota", "dynamic-update-slice", "scatter", "copy-done"),
}
_TYPES = {
    "pred": "bool",
    **{f"s{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"f{n}": f"float{n}" for n in (16, 32, 64)},
    "bf16": "bfloat16",
}


def assert_inplace(
    fn: Callable[..., PyTree],
    state: PyTree,
    *args: PyTree,
    least_bytes: int = 4096,
    temporary_bytes: int | None = None,
) -> None:
    """Check that `fn(state, *args)`, compiled with `state` donated, changes it in place.

    The program is compiled, not run. It fails if it copies an array of the dtype and size of one in
    the state or writes a whole one (as `jnp.where` over a buffer does), if it needs temporary
    memory for one, or if it does not give the state's memory to its results. Whole arrays that one
    fusion of XLA's writes together with others are only found as temporary memory.

    Args:
      fn: a function whose results hold a new state, such as a scan over training steps.
      state: a pytree of arrays, such as the state of a replay buffer.
      *args: further arguments.
      least_bytes: size of the smallest array that is looked at. Take a state whose arrays are
        larger than batches are.
      temporary_bytes: for programs with work over whole arrays that is seldom done: the temporary
        memory that this may take. Whole arrays may then be written, but not copied.
    """
    large = [leaf for leaf in jax.tree.leaves(state) if leaf.nbytes >= least_bytes]
    if not large:
        raise ValueError(f"state must have an array of least_bytes ({least_bytes}) or more")
    compiled = jax.jit(fn, donate_argnums=0).lower(state, *args).compile()
    sizes = {(str(leaf.dtype), leaf.size) for leaf in large}
    found = [
        f"{opcode} of {kind}[{shape}]"
        for opcode, kind, shape in _whole_writes(compiled.as_text() or "")
        if (_TYPES.get(kind), _size(shape)) in sizes
        and (opcode in _ALWAYS_FOUND or temporary_bytes is None)
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


def _whole_writes(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield opcode, type and shape of each HLO instruction that writes its whole result."""
    bodies: dict[str, list[tuple[re.Match[str], str]]] = {}
    for line in text.splitlines():
        if start := _COMPUTATION.match(line):
            body = bodies.setdefault(start["name"], [])
        elif instruction := _INSTRUCTION.match(line):
            calls = _CALLED.search(line)
            body.append((instruction, calls["name"] if calls else ""))
    fused = {name for body in bodies.values() for _, name in body if name}
    roots = {name: _written_by(body) for name, body in bodies.items()}
    for name, body in bodies.items():
        for instruction, called in body if name not in fused else ():
            opcode = instruction["opcode"]
            if opcode == "fusion":
                opcode = roots[called]
            if opcode not in _HARMLESS:
                yield str(opcode), instruction["type"], instruction["shape"]


def _written_by(body: list[tuple[re.Match[str], str]]) -> str:
    """Return the opcode of a fusion's root, or "rewrite" if its slice update copies the array.

    XLA's CPU backend writes a whole array again to update a slice of it if the fusion also reads a
    slice of it at a constant position.
    """
    for instruction, _ in body:
        if instruction["root"]:
            updates = instruction["opcode"] == "dynamic-update-slice"
            array = instruction["operand"]
            read = any(
                other["opcode"] == "slice" and other["operand"] == array for other, _ in body
            )
            return "rewrite" if updates and read else str(instruction["opcode"])
    return "fusion"  # of several results, whose types are a tuple's


def _size(shape: str) -> int:
    size = 1
    for length in filter(None, shape.split(",")):
        size *= int(length)
    return size
