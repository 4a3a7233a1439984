"""Pictures of `amper_learning.py`: curves by replay size, and what the final policies return."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from amper_learning_train import AMPER_FR, AMPER_K, PER, SAMPLERS, UNIFORM, Learned
from matplotlib.figure import Figure

from accel_rl import plot

CONFIDENCE = 0.9  # of all intervals
COLOURS = {
    UNIFORM: "#7f7f7f",
    PER: "#000000",
    AMPER_K: plot.COLORS[4],
    AMPER_FR: plot.COLORS[2],
}


def draw(
    results: Mapping[tuple[str, int, str], Learned],
    environment: str,
    sizes: Sequence[int],
    path: Path,
) -> None:
    """Draw an environment's results as PNG: a column for each size of replay."""
    with matplotlib.rc_context({"font.size": 8, "axes.titlesize": 9}):
        figure = Figure(figsize=(3.4 * len(sizes) + 0.6, 5.4), layout="constrained")
        grid = figure.subplots(2, len(sizes), sharey="row", squeeze=False, height_ratios=(3, 1.4))
        for (top, bottom), size in zip(grid.T, sizes, strict=True):
            found = {name: results[environment, size, name] for name in SAMPLERS}
            steps, means, bands = {}, {}, {}
            for name, each in found.items():
                steps[name] = each.steps
                means[name] = plot.interquartile_mean(each.curves)
                bands[name] = plot.bootstrap([each.curves], confidence=CONFIDENCE)
            styles = {name: {"color": COLOURS[name]} for name in found}
            plot.draw_curves(
                top, steps, means, bands=bands, styles=styles, xlabel="environment steps",
                ylabel="return while training",
            )  # fmt: skip
            top.set_title(f"replay of {size:,}")
            rng = np.random.default_rng(0)
            for number, (name, each) in enumerate(found.items()):
                where = number + rng.uniform(-0.2, 0.2, each.final.size)
                bottom.plot(where, each.final, ".", markersize=3, alpha=0.5, color=COLOURS[name])
                middle = plot.interquartile_mean(each.final)
                bottom.plot([number - 0.3, number + 0.3], [middle] * 2, color=COLOURS[name])
            bottom.set_xticks(range(len(found)), list(found))
            bottom.set_ylabel("final, greedy")
        for ax in grid[:, 1:].flat:
            ax.set_ylabel("")
        seeds = len(next(iter(results.values())).final)
        figure.suptitle(
            f"DQN on {environment}: inter-quartile means of {seeds} seeds, 90 % intervals; below, "
            "each seed's greedy return"
        )
        figure.savefig(path, dpi=90, format="png")
