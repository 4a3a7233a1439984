"""Parser of gcc's x86-64 assembly, in AT&T syntax, line by line."""

import dataclasses
import functools
import re

_OPERAND = re.compile(r"(?:\([^)]*\)|[^,(])+")
_ADDRESS = re.compile(r"([^(]*)\(\s*([^,)]*)(?:,\s*([^,)]*))?(?:,\s*[^)]*)?\)")
_PREFIXES = {"rep", "repz", "repnz", "repe", "repne", "lock", "notrack", "bnd", "data16"}


@dataclasses.dataclass(frozen=True)
class Operand:
    """Operand of an instruction."""

    text: str

    @property
    def is_immediate(self) -> bool:
        """True for a constant."""
        return self.text.startswith("$")

    @property
    def is_register(self) -> bool:
        """True for a register."""
        return self.text.startswith("%") and ":" not in self.text

    @property
    def is_memory(self) -> bool:
        """True for an operand in memory."""
        return not self.is_immediate and not self.is_register

    @property
    def is_vector(self) -> bool:
        """True for a register of floats and vectors."""
        return self.text.startswith("%xmm")

    @property
    def in_mram(self) -> bool:
        """True for an operand in MRAM."""
        return self.text.startswith("%gs:")

    @property
    def parts(self) -> tuple[str, str, str]:
        """Displacement, base and index of an address; absent parts are empty."""
        match = _ADDRESS.fullmatch(self.text.split(":")[-1])
        if match is None:
            return self.text, "", ""
        return match[1].strip(), match[2].strip(), (match[3] or "").strip()

    @property
    def constant(self) -> int | None:
        """Value of an immediate; None for an address or another operand."""
        if not self.is_immediate:
            return None
        try:
            return int(self.text[1:], 0)
        except ValueError:
            return None


@dataclasses.dataclass(frozen=True)
class Instruction:
    """Instruction: optional prefix, mnemonic with its suffix, and operands."""

    prefix: str
    mnemonic: str
    operands: tuple[Operand, ...]

    @property
    def memory(self) -> Operand | None:
        """Operand in memory, or None."""
        return next((operand for operand in self.operands if operand.is_memory), None)

    @property
    def is_vector(self) -> bool:
        """True for an instruction on floats or vectors."""
        named = any(operand.is_vector for operand in self.operands)
        return named or self.mnemonic.startswith("cvt")

    @property
    def target(self) -> str:
        """Target of a jump or call."""
        return self.operands[0].text if self.operands else ""


@functools.lru_cache(maxsize=4096)
def parse_instruction(text: str) -> Instruction:
    """Parse an instruction without its label and comment."""
    words = text.split(None, 1)
    prefix = ""
    while words[0] in _PREFIXES and len(words) > 1:
        prefix = words[0]
        words = words[1].split(None, 1)
    arguments = words[1] if len(words) > 1 else ""
    operands = tuple(Operand(match[0].strip()) for match in _OPERAND.finditer(arguments))
    return Instruction(prefix, words[0], operands)


_NAMES = {
    **{f"{name}{end}": name for name in ("a", "b", "c", "d") for end in ("x", "l")},
    **{name: name for name in ("si", "di", "bp", "sp", "sil", "dil", "bpl", "spl")},
}


def whole_register(text: str) -> str:
    """Return the name of the 64-bit register that a register is part of."""
    name = text.lstrip("%")
    numbered = re.fullmatch(r"r(\d+)[dwb]?", name)
    if numbered:
        return f"r{numbered[1]}"
    name = name.removesuffix("l") if name in ("sil", "dil", "bpl", "spl") else name
    name = name[1:] if len(name) == 3 and name[0] in "re" else name
    return _NAMES.get(name, name)
