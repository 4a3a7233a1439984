"""Reader of ELF files: the sections and symbols that the driver checks (64-bit little endian)."""

import dataclasses
import struct
from pathlib import Path

ALLOCATED = 2  # SHF_ALLOC
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE, _NO_BITS = 2, 8


@dataclasses.dataclass(frozen=True)
class ElfSection:
    """Section header."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int


class ElfFile:
    """ELF file, read into memory."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path}: not a 64-bit ELF file")
        (table,) = struct.unpack_from("<Q", self.data, 40)
        size, count, names = struct.unpack_from("<HHH", self.data, 58)
        raw = [_SECTION.unpack_from(self.data, table + size * i) for i in range(count)]
        text = raw[names][4]
        self.sections = [
            ElfSection(self._text(text + name), kind, flags, address, offset, length, link)
            for name, kind, flags, address, offset, length, link, *_ in raw
        ]

    def _text(self, offset: int) -> str:
        end = self.data.index(b"\0", offset)
        return self.data[offset:end].decode(errors="replace")

    def section(self, name: str) -> ElfSection | None:
        """Return the section of that name, or None."""
        return next((section for section in self.sections if section.name == name), None)

    def contents(self, name: str) -> bytes:
        """Return the bytes of a section; empty if it does not exist or has no contents."""
        section = self.section(name)
        if section is None or section.kind == _NO_BITS:
            return b""
        return self.data[section.offset : section.offset + section.size]

    def words(self, name: str) -> list[int]:
        """Return the 32-bit words of a section."""
        data = self.contents(name)
        return list(struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4]))

    def symbols(self) -> dict[str, int]:
        """Return the addresses of symbols, by name."""
        found = {}
        for table in self.sections:
            if table.kind != _SYMBOL_TABLE:
                continue
            names = self.sections[table.link].offset
            for at in range(table.offset, table.offset + table.size, _SYMBOL.size):
                name, _, _, _, address, _ = _SYMBOL.unpack_from(self.data, at)
                if name:
                    found[self._text(names + name)] = address
        return found
