"""Map of a grid world with the values of its states and a policy."""

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from accel_rl.types import ArrayLike, GridLayout

# Cells in which nothing is decided carry no value: they show what they are instead.
_FILL = {"hole": "#33415c", "cliff": "#7d4f50", "goal": "#e76f1e"}
_MARK_FILL = {"P": "#b5179e", "D": "#e76f1e"}
_PLAIN_FILL = "#f1f1f1"
_DARK, _LIGHT = "#1b1b1e", "#ffffff"


def draw_policy(
    ax: Axes,
    layout: GridLayout,
    values: ArrayLike | None = None,
    policy: ArrayLike | None = None,
    *,
    cmap: str = "viridis",
    numbers: bool | None = None,
    colorbar: bool = True,
) -> AxesImage:
    """Draws a map, coloured by value, with an arrow (or the action's name) in each cell.

    Args:
        ax: where to draw; its limits, ticks and, if there is a caption, title are set.
        layout: from `accel_rl.envs.layout`.
        values: [S] state values, or [S, A] action values, of which the largest is shown; None for
            the map alone.
        policy: [S] int actions of the layout; None for no arrows.
        cmap: a matplotlib colour map's name.
        numbers: write the values into the cells; None does so where they fit.
        colorbar: add a colour bar; only where there are values.

    Returns:
        The image of the values, for a colour bar of the caller's own.
    """
    decided = np.array([[cell not in layout.no_action for cell in row] for row in layout.cells])
    shown = _cell_values(layout, values)
    actions = _cell_actions(layout, policy)
    height, width = decided.shape
    masked = np.ma.masked_where(~decided | np.isnan(shown), shown)
    low, high = (masked.min(), masked.max()) if masked.count() else (0.0, 1.0)
    if low == high:
        high = low + 1.0
    palette = mpl.colormaps[cmap].with_extremes(bad=_PLAIN_FILL)
    image = ax.imshow(masked, cmap=palette, vmin=low, vmax=high)
    colors = image.to_rgba(masked)  # [H, W, 4]
    for row, column in np.argwhere(~decided):
        fill = _FILL[layout.meaning[layout.cells[row][column]]]
        colors[row, column] = mpl.colors.to_rgba(fill)
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=fill))
    ink = np.where(colors[..., :3] @ (0.299, 0.587, 0.114) > 0.5, _DARK, _LIGHT)

    size = _cell_points(ax, height, width)
    if numbers is None:
        numbers = size > 36
    for row, column in np.ndindex(height, width):
        _label_cell(ax, layout, row, column, ink[row, column], size)
        if not decided[row, column]:
            continue
        if actions is not None:
            _draw_action(ax, layout, row, column, int(actions[row, column]), ink[row, column], size)
        if numbers and not np.isnan(shown[row, column]):
            text = _number(shown[row, column], high - low)
            _text(ax, column, row + 0.38, text, ink[row, column], 0.14 * size)
    _draw_frame(ax, layout, height, width)
    if colorbar and masked.count():
        ax.figure.colorbar(image, ax=ax, label="value", fraction=0.046 * height / width, pad=0.03)
    return image


def _cell_values(layout: GridLayout, values: ArrayLike) -> np.ndarray:
    """Return the values of cells, [H, W] float64; NaN where there are none."""
    if values is None:
        return np.full(layout.states.shape, np.nan)
    table = np.asarray(values, np.float64)
    if table.ndim == 2:
        table = table.max(axis=1)
    return table[layout.states]


def _cell_actions(layout: GridLayout, policy: ArrayLike) -> np.ndarray | None:
    """Return the actions of cells, [H, W] int, or None."""
    if policy is None:
        return None
    actions = np.asarray(policy)[layout.states]
    if actions.dtype.kind not in "iu" or not set(actions.flat) <= set(range(len(layout.actions))):
        raise ValueError(f"policy must be integers from 0 to {len(layout.actions) - 1}")
    return actions


def _draw_action(
    ax: Axes, layout: GridLayout, row: int, column: int, action: int, color: str, size: float
) -> None:
    move = layout.moves[action]
    if move is None:
        _text(ax, column, row, layout.actions[action], color, 0.17 * size, weight="bold")
        return
    down, right = 0.21 * move[0], 0.21 * move[1]
    head = f"head_width={0.009 * size:.2f},head_length={0.016 * size:.2f}"
    ax.annotate(
        "",
        xy=(column + right, row + down),
        xytext=(column - right, row - down),
        arrowprops={
            "arrowstyle": f"-|>,{head}",
            "color": color,
            "linewidth": max(0.8, 0.03 * size),
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


def _label_cell(
    ax: Axes, layout: GridLayout, row: int, column: int, color: str, size: float
) -> None:
    """Draw a cell's character, unless it is plain ground, and its marks."""
    cell = layout.cells[row][column]
    if cell in layout.no_action:
        _text(ax, column, row, cell, color, 0.3 * size, weight="bold")
    elif layout.meaning[cell] not in ("floor", "ice"):
        _text(ax, column - 0.36, row - 0.34, cell, color, 0.17 * size, weight="bold")
    for number, mark in enumerate(m for r, c, m in layout.marks if (r, c) == (row, column)):
        box = {"boxstyle": "circle,pad=0.25", "facecolor": _MARK_FILL[mark], "edgecolor": _LIGHT}
        x = column + 0.33 - 0.28 * number
        _text(ax, x, row - 0.31, mark, _LIGHT, 0.14 * size, weight="bold", bbox=box)


def _draw_frame(ax: Axes, layout: GridLayout, height: int, width: int) -> None:
    ax.set_xticks(np.arange(-0.5, width), labels=[])
    ax.set_yticks(np.arange(-0.5, height), labels=[])
    ax.grid(color=_LIGHT, linewidth=1.0)
    ax.tick_params(length=0)
    for color, linewidth in ((_LIGHT, 7), (_DARK, 4)):  # a light rim shows on dark cells
        for row, column in layout.walls:
            ends = [row - 0.5, row + 0.5]
            ax.plot([column + 0.5] * 2, ends, color=color, linewidth=linewidth, zorder=2)
    for spine in ax.spines.values():
        spine.set(color=_DARK, linewidth=1.5, visible=True)
    ax.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    if layout.caption:
        ax.set_title(layout.caption)


def _text(ax: Axes, x: float, y: float, text: str, color: str, points: float, **style: Any) -> None:
    ax.text(x, y, text, color=color, fontsize=points, ha="center", va="center", **style)


def _number(value: float, spread: float) -> str:
    """Format a value with decimals that suit the spread of the values, at most two."""
    decimals = int(np.clip(2 - np.floor(np.log10(spread)), 0, 2))
    return f"{value:.{decimals}f}"


def _cell_points(ax: Axes, height: int, width: int) -> float:
    """Return the side of a cell in points, by which text and arrows scale."""
    box = ax.get_window_extent()
    return min(box.width / width, box.height / height) * 72 / ax.figure.dpi
