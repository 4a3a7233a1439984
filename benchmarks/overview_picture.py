"""One picture of the four systems, from this library's own results.

    python benchmarks/overview_picture.py [PATH]

Writes docs/images/overview.png, or PATH. Panels on learning from a log and on replay are computed
anew (the first is *modelled*), those on composing and on transports are drawn from the newest
`compose-*.json` and `transports-*.json` of benchmarks/results. Takes less than a minute on two
cores, and gives the same picture each time.
"""

import argparse
import io
import itertools
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from PIL import Image

from accel_rl import datasets, envs, pim, plot, replay
from accel_rl.experiment.tabular_run import TabularSettings
from accel_rl.io import atomic_write
from accel_rl.pim import modelled

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
ROWS, DPUS = 5_000_000, (125, 250, 500, 1000, 2000)
ITEMS, BATCH, CALLS, BINS = 10_000, 64, 2_000, 40
NEAR = 0.15  # of what was measured
CALL = "sample 64"
# Transports by how they wait: a thread that sleeps, or one that keeps its core busy.
WAITING = {"blocking": plot.COLORS[0], "futex": plot.COLORS[0]}
POLLING = plot.COLORS[4]
COLOURS = 128  # of the file's palette


def main() -> None:
    """Draw the panels and write the picture."""
    parser = argparse.ArgumentParser(description="Draw one picture of the four systems.")
    parser.add_argument(
        "path", nargs="?", type=Path, default=ROOT / "docs" / "images" / "overview.png"
    )
    path = parser.parse_args().path
    with matplotlib.rc_context({**plot.STYLE, "font.size": 8.5}):
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
        figure = Figure(figsize=(10.0, 5.625), layout=layout)
        panels = figure.subfigures(2, 2, squeeze=False)
        for panel, draw in zip(panels.flat, (_swiftrl, _amper, _pearl, _in_network), strict=True):
            draw(panel.subplots())
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=320)
    with atomic_write(path) as file:
        Image.open(drawn).convert("RGB").quantize(COLOURS).save(file, format="png", optimize=True)
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


def _swiftrl(ax: Axes) -> None:
    kernel = TabularSettings(numerics="int32_scaled").kernel
    machine = pim.load_machine("upmem-2560")
    curves: dict[str, Any] = {}
    styles: dict[str, Any] = {}
    reached = {}
    looks = {"FrozenLake-v1": (plot.COLORS[0], 3.0), "Taxi-v3": (plot.COLORS[1], 1.6)}
    for name, (color, width) in looks.items():
        mdp, short = envs.make_mdp(name), name.split("-")[0]
        log = datasets.collect(mdp, "random", ROWS, seed=0, environment=name)
        seconds = modelled.scaling(modelled.load_of(log), kernel, DPUS, machine)
        reached[short] = seconds["cycles"][0] / seconds["cycles"][-1]
        curves |= {
            f"{short}, kernel": seconds["cycles"],
            f"{short}, with launches and transfers": seconds["total"],
        }
        styles |= {
            f"{short}, kernel": {"color": color, "linewidth": width},
            f"{short}, with launches and transfers": {"color": color, "linestyle": ":"},
        }
    plot.draw_scaling(ax, DPUS, curves, styles=styles)
    ax.set_title(f"SwiftRL: 16x the DPUs, kernels {min(reached.values()):.0f}x as fast (modelled)")


def _amper(ax: Axes) -> None:
    priorities = np.random.default_rng(7).exponential(size=ITEMS)
    edges = np.linspace(0, np.quantile(priorities, 0.998), BINS + 1)
    exact = np.histogram(priorities, edges, weights=priorities / priorities.sum())[0]
    keys = jax.random.split(jax.random.key(11), CALLS)
    systems = {
        "uniform": ("uniform replay", replay.uniform()),
        "prioritised": ("prioritised, sum tree", replay.prioritised()),
        "amper_fr": ("AMPER-fr, no tree", replay.amper_fr("dithered", groups=20)),
    }
    for name, (label, sampler) in systems.items():
        memory = replay.make(np.int32(0), ITEMS, BATCH, sampler)
        alpha = {} if name == "uniform" else {"alpha": jnp.float32(1)}
        items = jnp.arange(ITEMS, dtype=jnp.int32)
        state = memory.add(memory.init(**alpha), items, jnp.asarray(priorities, jnp.float32))
        drawn = jax.lax.map(jax.jit(lambda key, m=memory, s=state: m.sample(s, key).indices), keys)
        found = np.histogram(priorities[np.asarray(drawn).ravel()], edges)[0] / drawn.size
        if name == "uniform":
            ax.stairs(found, edges, color=plot.SAMPLER_COLORS[name], linestyle="--", label=label)
            continue
        plot.draw_distribution(
            ax,
            edges,
            exact,
            found,
            color=plot.SAMPLER_COLORS[name],
            labels=("wanted: in proportion to priority" if name == "amper_fr" else "", label),
        )
    ax.set(ylabel="share of the draws", xlabel="priority of the item drawn")
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles, labels, fontsize="small")
    ax.set_title("AMPER: draws like prioritised replay, without a tree")


def _pearl(ax: Axes) -> None:
    times: dict[tuple[str, str], dict[str, Any]] = {}
    for record in _newest("compose")["records"]:
        if record["metric"] in ("iteration", "iteration, predicted"):
            of = times.setdefault((record["case"], record["system"]), {})
            of[record["metric"]] = record
    both = {key: of for key, of in times.items() if len(of) == 2}
    pairs = {
        key: (of["iteration, predicted"]["value"], of["iteration"]["value"])
        for key, of in both.items()
    }
    near = sum(_as_predicted(*pairs[key], both[key]["iteration"]["spread"]) for key in pairs)
    cases = list(dict.fromkeys(case for case, _ in pairs))
    looks = itertools.cycle(zip(plot.COLORS, "osD^vPX", strict=True))
    for case, (color, marker) in zip(cases, looks, strict=False):
        points = 1e-3 * np.array([pair for (of, _), pair in pairs.items() if of == case])
        ax.plot(*points.T, marker, color=color, markersize=4, alpha=0.8, label=case)
    every = 1e-3 * np.array(list(pairs.values()))
    ends = np.array([every.min() / 1.5, every.max() * 1.5])
    ax.plot(ends, ends, color="#666666", linewidth=1.0, zorder=1)
    band = ends / (1 + NEAR), ends / (1 - NEAR)
    ax.fill_between(ends, *band, color="#666666", alpha=0.15, linewidth=0)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter("{x:g}")
    counted = f"as predicted: within {100 * NEAR:.0f} % or twice the spread"
    ax.set(xlabel=f"predicted iteration, ms ({counted})", ylabel="measured, ms")
    ax.legend(fontsize="x-small", loc="upper left", handlelength=1.0)
    ax.set_title(f"PEARL: {near} of {len(every)} mappings run as predicted")


def _as_predicted(predicted: float, measured: float, spread: tuple[float, float] | None) -> bool:
    """By the criterion of compose.py; a single round has no spread."""
    low, high = spread or (measured, measured)
    return abs(predicted - measured) <= max(NEAR * measured, 2 * (high - low))


def _in_network(ax: Axes) -> None:
    records = [r for r in _newest("transports")["records"] if r["case"] == CALL]
    records.sort(key=lambda record: record["value"])
    rows, colors = {}, {}
    for record in records:
        name, waiting = record["system"].split(", ")
        color = WAITING.get(waiting, POLLING)
        label = f"{name}, {'sleeps' if waiting in WAITING else 'polls'}"
        rows[label] = (record["spread"][0], record["value"], record["spread"][1])
        colors[label] = color
    plot.draw_latency(ax, {CALL: rows}, colors=colors)
    ax.set_xlabel("measured time to sample 64 items, µs: median and quartiles")
    fastest, slowest = records[0]["value"], records[-1]["value"]
    ax.set_title(f"In-network replay: 64 items in {fastest:.1f} to {slowest:.0f} µs")


def _newest(name: str) -> dict[str, Any]:
    found = sorted(RESULTS.glob(f"{name}-[0-9]*.json"))
    if not found:
        raise FileNotFoundError(f"no {name}-DATE.json in {RESULTS}: run benchmarks/{name}.py")
    report: dict[str, Any] = json.loads(found[-1].read_text(encoding="utf-8"))
    return report


if __name__ == "__main__":
    main()
