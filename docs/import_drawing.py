"""Draws which folder of the library imports which: `python docs/import_drawing.py` writes the file.

An arrow that follows from others is left out, as `train` to `types` by way of `envs`.
"""

import ast
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "accel_rl"
DRAWING = ROOT / "docs" / "images" / "imports.svg"

_WIDTH, _ROW, _BOX = 900, 90, (96, 34)


def imports() -> dict[str, set[str]]:
    """Return the imports of each folder from other folders and `pim_emu`."""
    found: dict[str, set[str]] = {"pim_emu": set()}
    for path in PACKAGE.rglob("*.py"):
        folder = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if not folder.startswith("__"):
            found.setdefault(folder, set()).update(_imported(path) - {folder})
    return found


def _imported(path: pathlib.Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names]
    inside = {part[1] for part in parts if part[0] == "accel_rl" and len(part) > 1}
    outside = {"pim_emu"} if any(part[0] == "pim_emu" for part in parts) else set()
    return {name for name in inside if not name.startswith("__")} | outside


def reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    """All that is imported from a folder on, however far.

    Args:
      edges: as `imports` gives them, or some of those.
      start: the folder.
    """
    return edges[start].union(*(reachable(edges, each) for each in edges[start]))


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the transitive reduction of the arrows.

    Args:
      edges: as `imports` gives them, without circles.
    """
    return {
        start: ends - set().union(*(reachable(edges, each) for each in ends))
        for start, ends in edges.items()
    }


def drawing(edges: dict[str, set[str]]) -> str:
    """Return the drawing as SVG: importers stand above what they import.

    Args:
      edges: as `imports` gives them.
    """
    depth: dict[str, int] = {}
    for name in sorted(edges, key=lambda each: len(reachable(edges, each))):
        depth[name] = 1 + max((depth[each] for each in edges[name]), default=-1)
    top = max(depth.values())
    places = {}
    for row in range(top + 1):
        names = sorted(name for name in edges if depth[name] == row)
        for column, name in enumerate(names):
            x = _WIDTH * (column + 0.5 + (0.18 if row % 2 else -0.12)) / len(names)
            places[name] = (round(x), (top - row) * _ROW + 40)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top * _ROW + 80}" '
        'font-family="sans-serif" font-size="15">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for start, ends in sorted(reduced(edges).items()):
        for end in sorted(ends):
            (x, y), (to_x, to_y) = places[start], places[end]
            y, to_y = y + _BOX[1] // 2, to_y - _BOX[1] // 2
            bend = (to_y - y) // 2
            lines.append(
                f'<path class="{start} {end}" d="M{x} {y}C{x} {y + bend} {to_x} {to_y - bend} '
                f'{to_x} {to_y}" fill="none" stroke="#667" marker-end="url(#tip)"/>'
            )
    for name, (x, y) in sorted(places.items()):
        lines.append(
            f'<rect x="{x - _BOX[0] // 2}" y="{y - _BOX[1] // 2}" width="{_BOX[0]}" '
            f'height="{_BOX[1]}" rx="5" fill="#eef3fb" stroke="#446"/>'
            f'<text x="{x}" y="{y + 5}" text-anchor="middle">{name}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    DRAWING.write_text(drawing(imports()), encoding="utf-8")
