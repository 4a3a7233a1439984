"""The drawing of imports in the architecture is that of the code as it is."""

import pathlib
import re

from test_imports import PACKAGE, imported

DRAWING = pathlib.Path(__file__).resolve().parent.parent / "docs" / "images" / "imports.svg"


def closure(edges):
    """All pairs that a chain of arrows joins."""
    while True:
        more = {(start, end) for start, via in edges for other, end in edges if via == other}
        if more <= edges:
            return edges
        edges = edges | more


def test_arrows_are_the_imports():
    text = DRAWING.read_text(encoding="utf-8")
    drawn = {tuple(pair.split()) for pair in re.findall(r'<path class="([^"]+)"', text)}
    boxes = set(re.findall(r"<text[^>]*>(\w+)<", text))
    found = set()
    folders = {"pim_emu"}
    for path in PACKAGE.rglob("*.py"):
        folder = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if not folder.startswith("__"):
            folders.add(folder)
            found |= {(folder, name) for name in imported(path) if not name.startswith("__")}
    found = {(start, end) for start, end in found if start != end}
    assert boxes == folders
    assert drawn <= found, "run docs/import_drawing.py"
    assert closure(drawn) == closure(found), "run docs/import_drawing.py"
