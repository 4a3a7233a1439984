"""Analysis of registers that hold reciprocals, by which gcc multiplies instead of dividing."""

import re
from collections.abc import Iterable, Iterator

from pim_emu.toolchain.assembly import Instruction, parse_instruction, whole_register

Constants = dict[str, int]  # by register

_RECIPROCAL = 1 << 24  # a multiplier at least so large stands for a division by a constant
_CALLER_SAVED = ("a", "c", "d", "si", "di", "r8", "r9", "r10", "r11")
_HIDDEN = {"cltq": ["a"], "cwtl": ["a"], "cltd": ["d"], "cqto": ["d"], "leave": ["bp"]}
_STRINGS = ("movs", "stos", "scas", "cmps")
_READERS = ("cmp", "test", "bt", "push")
_EXCHANGES = ("xchg", "xadd", "cmpxchg")
_LABEL = re.compile(r"([\w.$]+):")
_COLD = re.compile(r".*\.cold(\.\d+)?")


def is_reciprocal(value: int | None) -> bool:
    """Return whether a product with this constant stands for a division."""
    return value is not None and abs(value) >= _RECIPROCAL


def follow(constants: Constants, instruction: Instruction) -> None:
    """Update the known constants after an instruction."""
    operands = instruction.operands
    moved = _moved(constants, instruction)
    for register in _written(instruction):
        constants.pop(register, None)
    if moved is not None and is_reciprocal(moved):
        constants[whole_register(operands[-1].text)] = moved


def _moved(constants: Constants, instruction: Instruction) -> int | None:
    """Return the constant that an instruction moves to a general register, or None."""
    mnemonic, operands = instruction.mnemonic, instruction.operands
    if not mnemonic.startswith("mov") or instruction.is_vector or len(operands) != 2:
        return None
    source, target = operands
    if not target.is_register:
        return None
    value = source.constant
    if source.is_register and mnemonic in ("movl", "movq"):
        value = constants.get(whole_register(source.text))
    # The upper half of the register becomes 0.
    return value & 0xFFFFFFFF if value is not None and mnemonic == "movl" else value


def _written(instruction: Instruction) -> list[str]:
    """Return the general registers that an instruction writes, or may write."""
    mnemonic, operands = instruction.mnemonic, instruction.operands
    if mnemonic == "call":
        return list(_CALLER_SAVED)
    base = mnemonic[:-1]
    if not operands:
        return ["c", "si", "di"] if base in _STRINGS else _HIDDEN.get(mnemonic, [])
    if base in ("mul", "imul", "div", "idiv") and len(operands) == 1:
        return ["a", "d"]
    if base in _READERS:
        return []
    if base in _EXCHANGES:
        named = [whole_register(operand.text) for operand in operands if operand.is_register]
        return [*named, "a"] if base == "cmpxchg" else named
    return [whole_register(operands[-1].text)] if operands[-1].is_register else []


def constants_at_labels(text: str) -> dict[str, Constants]:
    """Return the constants that registers hold at each label, on every path to it."""
    found: dict[str, Constants] = {}
    for blocks in _functions(text):
        found |= _of_function(blocks)
    return found


Block = tuple[str, list[Instruction]]


def _functions(text: str) -> Iterator[list[Block]]:
    """Yield the blocks of each function, in order: label and instructions.

    gcc places a function's cold part after it, under another name; it belongs to the function.
    """
    blocks: list[Block] = []
    for line in text.splitlines():
        word, label = line.strip(), _LABEL.match(line)
        if label:
            if not label[1].startswith(".L") and not _COLD.fullmatch(label[1]):
                yield blocks
                blocks = []
            blocks.append((label[1], []))
        elif blocks and word and word[0] not in ".#":
            blocks[-1][1].append(parse_instruction(word.split("\t#")[0].split(" #")[0]))
    yield blocks


def _of_function(blocks: list[Block]) -> dict[str, Constants]:
    index = {label: k for k, (label, _) in enumerate(blocks)}
    known: dict[int, Constants] = {0: {}}
    waiting = [0] if blocks else []

    def reach(k: int, constants: Constants) -> None:
        old = known.get(k)
        both = dict(constants if old is None else old.items() & constants.items())
        if old is None or both != old:
            known[k] = both
            waiting.append(k)

    def targets(jump: Instruction) -> Iterable[int]:
        if jump.target.startswith("*"):  # a computed one
            return range(len(blocks))
        return [index[jump.target]] if jump.target in index else []

    while waiting:
        k = waiting.pop()
        constants, open_end = dict(known[k]), True
        for instruction in blocks[k][1]:
            if instruction.mnemonic.startswith("j"):
                for target in targets(instruction):
                    reach(target, constants)
            follow(constants, instruction)
            if instruction.mnemonic in ("jmp", "ret", "ud2"):
                open_end = False
                break
        if open_end and k + 1 < len(blocks):
            reach(k + 1, constants)
    return {blocks[k][0]: constants for k, constants in known.items() if constants}
