"""Timelines: the steps of each worker over time."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from accel_rl.plot.style import COLORS, quiet

STEPS = ("collect", "insert", "sample", "update", "learn", "sync", "handoff")


def draw_timeline(
    ax: Axes,
    spans: Sequence[tuple[str, str, float, float]],
    *,
    title: str = "",
    seconds: float | None = None,
    colors: Mapping[str, str] | None = None,
) -> None:
    """Draw a Gantt chart: one row for each worker, one bar for each of its steps.

    Args:
        ax: axes to draw on.
        spans: (worker, step, start, end), in seconds.
        title: title of the chart; states whether times are measured, predicted or modelled.
        seconds: end of the time shown, from 0; None for all.
        colors: {step: colour}; the steps of a training program have default colours.

    Raises:
        ValueError: if there are no spans, or a span ends before it starts.
    """
    if not spans:
        raise ValueError("spans must hold at least one step, got none")
    for span in spans:
        if not span[2] <= span[3]:
            raise ValueError(f"spans must end after they start, got {span}")
    known = dict(zip(STEPS, COLORS, strict=False)) | {"handoff": "0.8"} | dict(colors or {})
    workers = list(dict.fromkeys(worker for worker, *_ in spans))
    workers.sort(key=_order)
    most = max(end for *_, end in spans) if seconds is None else seconds
    scale, unit = (1e6, "µs") if most < 2e-3 else (1e3, "ms") if most < 2 else (1.0, "s")
    used: dict[str, str] = {}
    for worker, step, start, end in spans:
        if start >= most:
            continue
        color = known.setdefault(step, COLORS[len(known) % len(COLORS)])
        used[step] = color
        row = workers.index(worker)
        width = (min(end, most) - start) * scale
        ax.barh(row, width, left=start * scale, height=0.7, color=color, linewidth=0)
    ax.set_yticks(range(len(workers)), workers)
    ax.set_ylim(len(workers) - 0.5, -0.5)
    ax.set_xlim(0, most * scale)
    ax.set_xlabel(f"time ({unit})")
    ax.set_title(title)
    order = sorted(used, key=lambda step: STEPS.index(step) if step in STEPS else len(STEPS))
    handles = [Patch(color=used[step], label=step) for step in order]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    quiet(ax)


def _order(worker: str) -> tuple[int, str]:
    """Order workers as transitions flow: from actors through the buffer to the learner."""
    flow = ("actor", "inserter", "buffer", "sampler", "learner", "updater")
    name = worker.split("_")[0]
    return flow.index(name) if name in flow else len(flow), worker
