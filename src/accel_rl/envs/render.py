"""Rendering of grid worlds as text for a terminal."""

import numpy as np

from accel_rl.arguments import whole
from accel_rl.types import GridLayout

_REVERSE, _PLAIN = "\x1b[7m", "\x1b[0m"
_COLORS = {
    "goal": "\x1b[32m",
    "D": "\x1b[32m",
    "hole": "\x1b[34m",
    "cliff": "\x1b[31m",
    "P": "\x1b[35m",
}


def render_ansi(
    layout: GridLayout, state: int | None = None, action: int | None = None, *, color: bool = True
) -> str:
    """Render the map with the agent in brackets, in lines that end with a newline.

    Args:
        layout: from `accel_rl.envs.layout`; for Taxi, of the passenger and destination of `state`.
        state: the agent's state; None to draw the map alone.
        action: the action that led there, named above the map.
        color: use ANSI colours; brackets and letters carry the same information without them.
    """
    if state is not None and not np.any(layout.states == state):
        picture = f" ({layout.caption})" if layout.caption else ""
        raise ValueError(f"state {state} is not in this layout{picture}")
    marks = {(row, column): mark for row, column, mark in layout.marks}
    lines = [layout.caption] if layout.caption else []
    if action is not None:
        lines.append(f"({layout.actions[whole('action', action, 0, len(layout.actions) - 1)]})")
    border = "+" + "-" * (4 * len(layout.cells[0]) - 1) + "+"
    lines.append(border)
    for row, tiles in enumerate(layout.cells):
        line = "|"
        for column, tile in enumerate(tiles):
            mark = marks.get((row, column), "")
            here = state is not None and layout.states[row, column] == state
            text = f"[{tile}]" if here else f" {tile} "
            style = _COLORS.get(mark) or _COLORS.get(layout.meaning[tile], "")
            style += _REVERSE if here else ""
            line += f"{style}{text}{_PLAIN}" if color and style else text
            line += "|" if column == len(tiles) - 1 or (row, column) in layout.walls else " "
        lines.append(line)
    return "\n".join([*lines, border, ""])
