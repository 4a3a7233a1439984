"""Offsets and types of fixed fields: one table against C++, Python and the specification."""

import csv
import re
import struct
from pathlib import Path

import pytest

from accel_rl.remote import wire

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "replay-protocol.md").read_text(encoding="utf-8")
HEADER = ROOT / "kernels" / "replay_server" / "protocol" / "fields.hpp"

SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "f32": 4, "f64": 8, "u8[16]": 16}
CPP = {f"uint{bits}_t": f"u{bits}" for bits in (8, 16, 32, 64)}
CPP |= {"float": "f32", "double": "f64", "uint8_t[16]": "u8[16]"}
CODES = {"B": "u8", "H": "u16", "I": "u32", "Q": "u64", "f": "f32", "d": "f64", "16s": "u8[16]"}

# Layouts of Python and the offset where each begins: the frame's start, or the fixed fields.
LAYOUTS = {
    "header": (wire.HEADER, 0),
    "hello": (wire.HELLO, wire.FIXED),
    "welcome": (wire.WELCOME, wire.FIXED),
    "open_table": (wire.OPEN_TABLE, wire.FIXED),
    "push": (wire.PUSH, 0),
    "push_reply": (wire.PUSH_REPLY, wire.FIXED),
    "sample": (wire.SAMPLE, 0),
    "sample_reply": (wire.SAMPLE_REPLY, wire.FIXED),
    "update": (wire.UPDATE, 0),
    "update_reply": (wire.UPDATE_REPLY, wire.FIXED),
    "stats_reply": (wire.STATS_REPLY, wire.FIXED),
    "publish": (wire.PUBLISH, wire.FIXED),
    "fetch": (wire.FETCH, wire.FIXED),
    "remove": (wire.DELETE, wire.FIXED),
    "next_table": (wire.NEXT_TABLE, wire.FIXED),
    "fetch_reply": (wire.FETCH_REPLY, wire.FIXED),
}
# What Python neither writes nor reads: datagrams are C++'s, and a publisher knows its version.
ONLY_CPP = {"ack", "cookie", "publish_reply"}


def table():
    """Fields by frame: lists of name, offset, type."""
    with (ROOT / "tests" / "remote" / "golden" / "fields.csv").open(encoding="utf-8") as file:
        fields = {}
        for row in csv.DictReader(file):
            entry = (row["field"], int(row["offset"]), row["type"])
            fields.setdefault(row["frame"], []).append(entry)
        return fields


FIELDS = table()


def layout(packed, base):
    """Offsets and types of a struct's fields; padding is none."""
    format = packed.format
    assert format[0] == "<"
    found, at = [], base
    for code in re.findall(r"\d*[a-zA-Z]", format[1:]):
        if not code.endswith("x"):
            found.append((at, CODES[code]))
        at += struct.calcsize("<" + code)
    return found


def in_cpp():
    """Fields by frame as the header of C++ has them."""
    fields, frame = {}, None
    for line in HEADER.read_text(encoding="utf-8").splitlines():
        if opened := re.match(r"namespace (\w+) \{", line):
            frame = opened[1]
        if found := re.match(r"constexpr Field<([\w\[\]]+)> (\w+)\{(\d+)\};", line):
            fields.setdefault(frame, []).append((found[2], int(found[3]), CPP[found[1]]))
    return fields


def on_page():
    """Offsets and types by frame as the specification has them, in its order."""
    texts = {"header": PAGE.partition("| header |")[2].partition("\n\n")[0]}
    texts["ack"] = PAGE.partition("| ACK (15)")[2].partition("\n\n")[0]
    texts["cookie"] = PAGE.partition("COOKIE (17)")[2].partition("\n\n")[0]
    texts["open_table"] = PAGE.partition("**OPEN_TABLE (5).**")[2].partition("\n\nDtypes")[0]
    for op in ("HELLO", "WELCOME"):
        [texts[op.lower()]] = re.findall(rf"^\| {op} \| \d+ \| (.*)$", PAGE, re.MULTILINE)
    for op in ("PUSH", "SAMPLE", "UPDATE", "STATS", "PUBLISH", "FETCH"):
        text = re.search(rf"\*\*{op} \(\d+\)\.\*\*(.*?)\n\n", PAGE, re.DOTALL)[1]
        texts[op.lower()], _, texts[f"{op.lower()}_reply"] = text.partition("Reply:")
    texts["remove"] = PAGE.partition("**DELETE (18).**")[2].partition("\n\n")[0]
    texts["next_table"] = PAGE.partition("**NEXT_TABLE (19).**")[2].partition("\n\n")[0]
    fields = {}
    for frame, text in texts.items():
        found = []
        pattern = r"(?<![\d,.])(\d+) (?:\| )?([uf]\d+(?:\[16\])?(?:, [uf]\d+)*)(?!\w)"
        for at, types in re.findall(pattern, text.replace("\n", " ")):
            offset = int(at)
            for each in types.split(", "):
                found.append((offset, each))
                offset += SIZES[each]
        if found:
            fields[frame] = found
    return fields


def bare(fields):
    return {frame: [entry[1:] for entry in entries] for frame, entries in fields.items()}


@pytest.mark.parametrize("frame", FIELDS)
def test_fields_do_not_overlap(frame):
    end = 0 if frame == "header" else wire.FIXED
    for name, offset, kind in FIELDS[frame]:
        assert offset >= end, name
        end = offset + SIZES[kind]
    most = {"header": wire.FIXED, "open_table": wire.NAMES}.get(frame, wire.BODY)
    assert end <= most


def test_cpp_has_the_table():
    assert in_cpp() == FIELDS


def test_the_specification_has_the_table():
    assert on_page() == bare(FIELDS)


def test_layouts_of_python_have_the_table():
    assert LAYOUTS.keys() | ONLY_CPP == FIELDS.keys()
    for frame, (packed, base) in LAYOUTS.items():
        expected = bare(FIELDS)[frame]
        if base == 0 and frame != "header":
            expected = bare(FIELDS)["header"] + expected
        assert layout(packed, base) == expected, frame


def test_offsets_of_python_have_the_table():
    offsets = {name: offset for name, offset, _ in FIELDS["header"]}
    for name in ("op", "session", "request", "table"):
        assert getattr(wire, f"{name.upper()}_AT") == offsets[name]
    assert layout(wire.SESSION_AND_REQUEST, wire.SESSION_AT) == bare(FIELDS)["header"][4:6]
