"""Heat maps: one number for each combination of two settings, also written into the cell."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from accel_rl.types import ArrayLike


def draw_heatmap(
    ax: Axes,
    values: ArrayLike,
    rows: Sequence[Any],
    columns: Sequence[Any],
    *,
    row_label: str = "merge",
    column_label: str = "passes between merges, τ",
    value_label: str = "return per episode",
    decimals: int = 2,
    cmap: str = "viridis",
) -> AxesImage:
    """Draw a table of numbers as a heat map, with the numbers in the cells.

    Args:
        ax: axes to draw on.
        values: [R, C]; NaN leaves a cell empty.
        rows: R names, top to bottom.
        columns: C names, left to right.
        row_label: label of the rows.
        column_label: label of the columns.
        value_label: label of the colour bar.
        decimals: decimals of the numbers in the cells.
        cmap: name of a matplotlib colour map.

    Returns:
        The image, for a further colour bar.
    """
    table = np.asarray(values, np.float64)
    palette = mpl.colormaps[cmap].with_extremes(bad="#f1f1f1")
    masked = np.ma.masked_invalid(table)
    image = ax.imshow(masked, cmap=palette, aspect="auto")
    bright = image.to_rgba(masked)[..., :3] @ (0.299, 0.587, 0.114) > 0.5
    for row, column in np.argwhere(~np.isnan(table)):
        ax.text(
            column, row, f"{table[row, column]:.{decimals}f}", ha="center", va="center",
            color="#1b1b1e" if bright[row, column] else "#ffffff",
        )  # fmt: skip
    # Matplotlib compares the numbers of labels and ticks.
    ax.set_xticks(range(table.shape[1]), labels=[str(column) for column in columns])
    ax.set_yticks(range(table.shape[0]), labels=[str(row) for row in rows])
    ax.set(xlabel=column_label, ylabel=row_label)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.figure.colorbar(image, ax=ax, label=value_label, pad=0.03)
    return image
