"""Price of a host instruction in DPU instructions, by the weights of `weights.toml`.

The price is an estimate: gcc's x86-64 code stands for another compiler's DPU code. Instructions
that both have (loads, stores, jumps, arithmetic) count one for one; artefacts of the host count
nothing; operations that a DPU does in a routine (multiplication, division, floats) have the
routine's price.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping
from importlib import resources

from pim_emu.machine import Constant, parse_constants
from pim_emu.toolchain.assembly import Instruction, Operand, whole_register
from pim_emu.toolchain.constants import Constants, follow, is_reciprocal

_ARITHMETIC = {"add", "sub", "and", "or", "xor", "neg", "not", "inc", "dec", "adc", "sbb"}
_SHIFTS = {"sal", "shl", "shr", "sar", "rol", "ror"}
_FREE = {"cltq", "cqto", "cltd", "cdqe", "cqo", "nop", "nopw", "nopl", "endbr64", "pause", "cld"}
_STRINGS = {"movs", "stos", "cmps", "scas", "lods"}
_SCALING_SHIFT = 3
_STACK_LIMIT = "%fs:112"  # what -fsplit-stack compares with


@dataclasses.dataclass(frozen=True)
class Price:
    """Price of an instruction: DPU instructions executed, and stored in IRAM."""

    executed: float
    stored: float


@functools.cache
def load_weights() -> Mapping[str, Constant]:
    """Load the weights that come with the package."""
    name = "weights.toml"
    text = (resources.files("pim_emu.toolchain") / name).read_text(encoding="utf-8")
    return parse_constants(text, name)


class Pricer:
    """Pricing of instructions, taken in order, one function after the other."""

    def __init__(self, weights: Mapping[str, Constant] | None = None) -> None:
        self._weights = {
            name: constant.value for name, constant in (weights or load_weights()).items()
        }
        self.begin_function()

    def begin_function(self) -> None:
        """Forget the known registers and flags."""
        self._constants: Constants = {}
        self._flags = ""  # what the last comparison or arithmetic was

    def begin_block(self, constants: Constants) -> None:
        """Set the constants that registers hold at the start of a block."""
        self._constants = dict(constants)

    def price(self, instruction: Instruction) -> Price:
        """Return the price of the next instruction."""
        routine = self._routine(instruction)
        rest = self._plain(instruction)
        self._remember(instruction)
        if routine:
            return Price(routine + rest, self._weights["routine_call"] + rest)
        return Price(rest, rest)

    def per_element(self, instruction: Instruction) -> int:
        """Return the price of each element of a repeated copy or fill; 0 for other instructions."""
        name, width = instruction.mnemonic[:-1], instruction.mnemonic[-1]
        if instruction.prefix != "rep" or name not in ("movs", "stos"):
            return 0
        if width == "b":
            return 1  # a DPU's routine goes by words
        return whole(self._weights["copy_element" if name == "movs" else "fill_element"])

    def _routine(self, instruction: Instruction) -> float:
        """Return the price of the part that a DPU does in a routine, or 0."""
        mnemonic, operands = instruction.mnemonic, instruction.operands
        if instruction.is_vector:
            return self._float_routine(mnemonic)
        wide = mnemonic.endswith("q")
        if mnemonic[:-1] in ("div", "idiv"):
            return self._weights["divide_64" if wide else "divide_32"]
        if mnemonic[:-1] == "mul" or (mnemonic[:-1] == "imul" and len(operands) == 1):
            # The high half of a product, for a division by a constant.
            if wide:
                return self._weights["divide_64"]
            factors = {whole_register(operand.text) for operand in operands} | {"a"}
            return self._weights["divide_32" if factors & set(self._constants) else "multiply_64"]
        return self._product(operands, wide) if mnemonic[:-1] == "imul" else 0

    def _product(self, operands: tuple[Operand, ...], wide: bool) -> float:
        values = [operand.constant for operand in operands]
        values += [
            self._constants.get(whole_register(operand.text))
            for operand in operands
            if operand.is_register
        ]
        known = [abs(value) for value in values if value is not None]
        if wide and any(map(is_reciprocal, known)):
            return self._weights["divide_32"]
        if operands[0].constant is not None:
            steps = self._weights["multiply_base"] + abs(operands[0].constant).bit_length()
            return min(steps, self._weights["multiply_32"])
        return self._weights["multiply_64" if wide else "multiply_32"]

    def _float_routine(self, mnemonic: str) -> float:
        kind = "fp64" if mnemonic.endswith("d") else "fp32"
        if mnemonic.startswith("cvt"):
            return self._weights["convert"]
        if mnemonic[-2:] not in ("ss", "sd"):
            return 0
        operation = mnemonic.lstrip("v")[:-2]
        if operation in ("add", "sub", "mul", "div"):
            return self._weights[f"{operation}_{kind}"]
        if operation == "sqrt":
            return self._weights[f"div_{kind}"]
        if operation in ("min", "max", "ucomi", "comi") or operation.startswith("cmp"):
            return self._weights[f"compare_{kind}"]
        return 0

    def _plain(self, instruction: Instruction) -> float:
        """Return the price of an instruction without routines."""
        mnemonic, operands = instruction.mnemonic, instruction.operands
        weights = self._weights
        if _STACK_LIMIT in (operand.text for operand in operands):
            return 0
        if instruction.is_vector:
            return self._vector(instruction)
        if mnemonic == "call":
            name = instruction.target
            return 0 if name.startswith(("__morestack", "__tsan_")) else weights["jump"]
        if mnemonic.startswith("j"):
            free = mnemonic != "jmp" and self._flags == "stack limit"
            fused = mnemonic != "jmp" and self._flags == "arithmetic"
            return 0 if free else weights["fused_jump" if fused else "jump"]
        if mnemonic.startswith("ret"):
            return weights["jump"]
        if mnemonic[:-1] == "lea":
            return self._address(operands)
        if mnemonic in _FREE:
            return 0
        if not operands and mnemonic[:-1] in _STRINGS:
            return self._string(instruction)
        return self._integer(instruction) + self._accesses(instruction)

    def _string(self, instruction: Instruction) -> float:
        if self.per_element(instruction):
            return 0
        if instruction.prefix:
            return self._weights["scan"]
        reads = self._weights["load"] if instruction.mnemonic.startswith("movs") else 0
        return reads + self._weights["store"]

    def _integer(self, instruction: Instruction) -> float:
        """Return the price of an instruction's arithmetic, without memory accesses."""
        mnemonic, operands, weights = instruction.mnemonic, instruction.operands, self._weights
        base = mnemonic[:-1] if mnemonic[-1] in "bwlq" else mnemonic
        if mnemonic.startswith("set"):
            return weights["set_condition"]
        if mnemonic.startswith("cmov"):
            return weights["select"]
        if base in ("cmp", "test", "mul", "imul", "div", "idiv", "push", "pop"):
            return 0
        if base.startswith("mov"):
            return self._move(mnemonic, operands)
        wide = mnemonic.endswith("q")
        if base in _SHIFTS:
            return self._shift(operands, wide)
        if base in _ARITHMETIC:
            number = operands[0].is_immediate and operands[-1].is_register
            return weights["alu_64" if wide and not number else "alu"]
        if base in ("bsf", "tzcnt"):
            return weights["count_zeros"]
        return weights["swap_bytes"] if base == "bswap" else weights["alu"]

    def _move(self, mnemonic: str, operands: tuple[Operand, ...]) -> float:
        if any(operand.is_memory for operand in operands):
            return 0
        if operands[0].is_immediate:
            return self._weights["constant"] * (2 if mnemonic.startswith("movabs") else 1)
        narrow = mnemonic.startswith(("movzb", "movzw", "movsb", "movsw"))
        return self._weights["extend" if narrow else "move"]

    def _shift(self, operands: tuple[Operand, ...], wide: bool) -> float:
        if not wide:
            return self._weights["alu"]
        distance = 1 if len(operands) == 1 else operands[0].constant
        if distance is None:
            return self._weights["shift_64_by_register"]
        return self._weights["alu" if distance <= _SCALING_SHIFT else "shift_64"]

    def _address(self, operands: tuple[Operand, ...]) -> float:
        displacement, base, index = operands[0].parts
        if base == "%rsp" and operands[-1].text in ("%r10", "%r11"):
            return 0  # of a stack check
        terms = sum(bool(part) for part in (displacement, base, index))
        return self._weights["alu"] * max(1, terms - 1)

    def _accesses(self, instruction: Instruction) -> float:
        """Return the price of an instruction's loads and stores."""
        mnemonic, memory, weights = instruction.mnemonic, instruction.memory, self._weights
        if mnemonic.startswith(("push", "pop", "leave")):
            return weights["store" if mnemonic.startswith("push") else "load"]
        if memory is None:
            return 0
        last = memory is instruction.operands[-1]
        plain_store = last and mnemonic.startswith(("mov", "set"))
        reads = not plain_store
        single = mnemonic[:-1] in ("mul", "imul", "div", "idiv")
        writes = last and not mnemonic.startswith(("cmp", "test")) and not single
        return self._access(memory, reads=reads, writes=writes)

    def _access(self, memory: Operand, *, reads: bool, writes: bool, times: int = 1) -> float:
        weights, mram = self._weights, "mram_" if memory.in_mram else ""
        price = weights["index"] if memory.parts[2] else 0.0
        price += times * weights[f"{mram}load"] if reads else 0
        return price + (times * weights[f"{mram}store"] if writes else 0)

    def _vector(self, instruction: Instruction) -> float:
        """Return the price of an instruction on floats or vectors, without routines."""
        mnemonic, operands, memory = instruction.mnemonic, instruction.operands, instruction.memory
        moves = mnemonic.startswith(("mov", "lddq"))
        scalar = mnemonic[-2:] in ("ss", "sd") or mnemonic in ("movd", "movq", "movlps", "movhps")
        scalar = scalar or mnemonic in ("movlpd", "movhpd") or mnemonic.startswith("cvt")
        price = 0.0
        bitwise = mnemonic.startswith(("and", "or", "xor", "pxor", "pand", "por"))
        if memory is not None and not bitwise:
            writes = memory is operands[-1]
            price = self._access(memory, reads=not writes, writes=writes, times=1 if scalar else 2)
        if moves or scalar or mnemonic.startswith(("shuf", "unpck", "punpck", "pshuf", "pins")):
            return price
        if bitwise:
            clears = "xor" in mnemonic and operands[0] == operands[-1]
            return 0 if clears else self._weights["sign"]
        return price + self._weights["vector"]

    def _remember(self, instruction: Instruction) -> None:
        mnemonic, operands = instruction.mnemonic, instruction.operands
        base = mnemonic[:-1]
        if _STACK_LIMIT in (operand.text for operand in operands):
            self._flags = "stack limit"
        elif mnemonic == "call":
            self._flags = ""
        elif base in ("cmp", "test") or mnemonic.startswith(("ucomi", "comi")):
            self._flags = "comparison"
        elif base in _ARITHMETIC | _SHIFTS:
            self._flags = "arithmetic" if operands[-1].is_register else "comparison"
        follow(self._constants, instruction)


def whole(price: float) -> int:
    """Round a price to whole instructions, halves up."""
    return math.floor(price + 0.5)
