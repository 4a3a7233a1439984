"""Instruction counting: an estimate of the DPU's instructions, summed in r15 at run time.

gcc does not use r15 (-ffixed-r15). Each basic block starts with `leaq N(%r15), %r15`, which does
not change the flags; N is the price of the block's instructions.
"""

import re
from collections.abc import Mapping

from pim_emu.toolchain.assembly import parse_instruction, whole_register
from pim_emu.toolchain.constants import Constants, constants_at_labels
from pim_emu.toolchain.pricing import Pricer, whole

_LABEL = re.compile(r"([\w.$]+):")
_LOCAL = re.compile(r"\.L[\w.$]+")
_SECTION = re.compile(r"\.(?:section\s+([^,\s]+)|(text|data|bss)\b)")
_NOT_CODE = (".loc", ".cfi", ".size", ".file", ".type", ".ident", ".p2align", ".align")
_COUNT = "\tleaq\t{}(%r15), %r15"


def count_instructions(text: str, pricer: Pricer | None = None) -> str:
    """Add counting to assembly.

    Args:
      text: assembly that gcc made from C with -ffixed-r15.
      pricer: price of each instruction; by default from the package's weights.

    Returns:
      The assembly with a count in every basic block. Section .emu.iram has, for each section of
      code, an estimate of its instructions in IRAM. Each number is linked with its section: the
      linker drops both or none.
    """
    counter = _InstructionCounter(
        _jump_targets(text), constants_at_labels(text), pricer or Pricer()
    )
    for line in text.splitlines():
        counter.add(line)
    return "\n".join(counter.finish()) + "\n"


def _jump_targets(text: str) -> set[str]:
    """Return the local labels that start blocks: those named in code or data, not for debuggers."""
    targets: set[str] = set()
    section = ".text"
    for line in text.splitlines():
        word = line.strip()
        match = _SECTION.match(word)
        if match:
            section = match[1] or f".{match[2]}"
        elif section.startswith(".debug") or word.startswith(_NOT_CODE):
            continue
        elif line.startswith("\t") and ".L" in word:
            targets.update(_LOCAL.findall(word))
    return targets


class _InstructionCounter:
    """Rewriter of an assembly file, line by line, that inserts the counts."""

    def __init__(
        self, targets: set[str], constants: Mapping[str, Constants], pricer: Pricer
    ) -> None:
        self._targets = targets
        self._constants = constants
        self._written: list[str] = []
        self._pricer = pricer
        self._section = ".text"
        self._stored: dict[str, float] = {}  # instructions in IRAM, by section
        self._reached = True
        self._begin_block()

    def _begin_block(self) -> None:
        self._block: list[str] = []
        self._executed = 0.0
        self._argument = 0.0  # price of what last wrote the first argument of a call

    def _end_block(self) -> None:
        count = whole(self._executed)
        if count:
            self._written.append(_COUNT.format(count))
        self._written += self._block
        self._begin_block()

    def add(self, line: str) -> None:
        """Process the next line."""
        word = line.strip()
        label = _LABEL.match(line)
        if label:
            self._add_label(label[1], line)
        elif not word or word[0] in ".#":
            section = _SECTION.match(word)
            if section:
                self._end_block()
                self._section = section[1] or f".{section[2]}"
            # What stands before the first instruction stays before the count.
            (self._block if self._block else self._written).append(line)
        else:
            self._add_instruction(word, line)

    def _add_label(self, name: str, line: str) -> None:
        if name in self._targets or not name.startswith(".L"):
            self._end_block()
            self._reached = True
            if not name.startswith(".L"):
                self._pricer.begin_function()
            self._pricer.begin_block(self._constants.get(name, {}))
        (self._block if self._block else self._written).append(line)

    def _add_instruction(self, word: str, line: str) -> None:
        instruction = parse_instruction(word.split("\t#")[0].split(" #")[0])
        price = self._pricer.price(instruction)
        executed, stored = (price.executed, price.stored) if self._reached else (0, 0)
        each = self._pricer.per_element(instruction)
        if each:
            self._block.append(f"\tleaq\t(%r15,%rcx,{each}), %r15")
            stored += each
        operands = instruction.operands
        if operands and operands[-1].is_register and whole_register(operands[-1].text) == "di":
            self._argument = executed
        if instruction.mnemonic == "call" and instruction.target.startswith("__tsan_"):
            executed -= self._argument
            self._argument = 0
        self._block.append(line)
        self._executed += executed
        self._stored[self._section] = self._stored.get(self._section, 0) + stored
        if instruction.mnemonic == "call" and instruction.target == "__morestack":
            self._executed = 0  # a fault, from which nothing returns
            self._reached = False
        if instruction.mnemonic in ("jmp", "ret", "ud2"):
            self._reached = False
        if instruction.mnemonic.startswith(("j", "ret", "call", "ud2")):
            self._end_block()

    def finish(self) -> list[str]:
        """Return all lines, followed by the IRAM estimates of the sections."""
        self._end_block()
        for section, stored in self._stored.items():
            self._written.append(f'\t.section\t.emu.iram,"o",@progbits,{section}')
            self._written.append(f"\t.long\t{whole(stored)}")
        return self._written
