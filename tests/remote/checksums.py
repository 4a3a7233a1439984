"""Frames with the checksum of the replay protocol, which our Python client never sends."""

from accel_rl.remote import wire

CHECKED, CHECKSUM_AT = 2, 36  # flag, and offset in the header


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(data: bytes | bytearray) -> int:
    """Return the CRC-32C (Castagnoli) of bytes."""
    rest = 0xFFFFFFFF
    for byte in data:
        rest = _TABLE[(rest ^ byte) & 0xFF] ^ rest >> 8
    return rest ^ 0xFFFFFFFF


def checked(frame: bytes | bytearray) -> bytes:
    """Return the frame with the flag and the checksum."""
    frame = bytearray(frame)
    frame[6] |= CHECKED
    wire.U32.pack_into(frame, CHECKSUM_AT, 0)
    wire.U32.pack_into(frame, CHECKSUM_AT, crc32c(frame))
    return bytes(frame)
