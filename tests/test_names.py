"""One name, one concept: names of classes and modules, read from the sources."""

import ast
import collections
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = sorted([*(ROOT / "src" / "accel_rl").rglob("*.py"), *(ROOT / "pim_emu").rglob("*.py")])


def test_no_two_classes_share_a_name():
    found = collections.defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(ROOT)))
    shared = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert not shared
    assert len(found) > 250
