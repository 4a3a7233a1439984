"""Report page of the results of one or several benchmarks."""

import textwrap
from collections.abc import Sequence
from typing import Any

from accel_rl.report import html
from accel_rl.report.page import (
    Page,
    PageSection,
    PageTable,
    Picture,
    Rows,
    machine_rows,
    number,
)
from accel_rl.report.results import Basis, BenchmarkRecord, Claim, Place, Results

_WIDTH = 38  # of labels, in characters
_VERDICTS = {True: "held", False: "missed", None: "did not run"}


def page_of(found: Sequence[Results], of: str) -> Page:
    """Build the page of results, with a section for each suite.

    Args:
      found: results, at least one.
      of: file or folder of the results.
    """
    claims = [claim for each in found for claim in each.claims]
    counts = [(name, sum(c.holds is holds for c in claims)) for holds, name in _VERDICTS.items()]
    dates = sorted(each.date for each in found)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    alone = found[0] if len(found) == 1 else None
    return Page(
        title=f"Benchmark {alone.title}" if alone else "Benchmark results",
        kind="benchmark" if alone else "benchmarks",
        lead=(
            f"{sum(len(each.records) for each in found):,} figures and {len(claims)} targets, "
            f"beside rivals that ran in the same run: the newest record of each suite in {of}."
        ),
        when=f"Run on {when}",
        figures=[(f"Targets {name}", str(count), None) for name, count in counts],
        sections=[_section(each) for each in found],
        settings=_settings(alone) if alone else (),
        machine=[*machine_rows(alone.machine), *_loads(alone)] if alone else (),
        versions=list(alone.versions.items()) if alone else (),
    )


def conditions(each: Results) -> str:
    """Describe date, commit, machine and load of a run in a sentence."""
    machine, quick = each.machine, {True: "a quick run", False: "a full run", None: "a run"}
    load = each.load.get("before", [])
    cores = machine.get("cores", "unknown")
    parts = [
        f"{quick[each.quick].capitalize()} of {each.date.replace('T', ' ')}",
        f"commit {each.commit[:12]}" if each.commit else "commit not recorded",
        f"{machine.get('cpu', 'unknown CPU')} with {cores} {'core' if cores == 1 else 'cores'}",
    ]
    if machine.get("gpu"):
        parts.append(str(machine["gpu"]))
    if load:
        parts.append(f"load {load[0]:.1f} when it began")
    versions = [f"{name} {each.versions[name]}" for name in ("python", "jax", "gcc")
                if each.versions.get(name)]  # fmt: skip
    return ", ".join(parts + versions) + "."


def _loads(each: Results) -> Rows:
    return [(f"load averages {when}", list(load)) for when, load in each.load.items()]


def _settings(each: Results) -> Rows:
    return [
        ("suite", each.benchmark),
        ("part", each.part or "all"),
        ("quick", each.quick),
        ("commit", each.commit),
        ("random numbers from", each.seeds),
        ("record", each.source),
    ]


def _section(each: Results) -> PageSection:
    targets = PageTable(
        "Targets",
        ("what", "ours", "rival", "value", "target", "verdict", "basis"),
        [_row(each, claim) for claim in each.claims],
        numbers=("ours", "rival", "value", "target"),
    )
    tables = [targets, _figures(each)]
    return PageSection(each.title, conditions(each), pictures=_pictures(each), tables=tables)


def _row(each: Results, claim: Claim) -> tuple[Any, ...]:
    return (
        claim.claim,
        figure(each, claim.ours),
        figure(each, claim.rival),
        None if claim.value is None else number(claim.value),
        f"{_SENSES[claim.sense]} {claim.bound:.4g}",
        _VERDICTS[claim.holds],
        claim.basis,
    )


_SENSES = {">=": "≥", "<=": "≤", "==": "="}


def figure(each: Results, place: Place | None) -> str | None:
    """Format the record at a place: its value, unit and system."""
    record = each.find(place)
    if record is None:
        return None
    value = f"{number(record.value)} {record.unit}".strip()
    return f"{value} ({record.system})"


def _figures(each: Results) -> PageTable:
    rows = [
        (
            record.case,
            record.system,
            record.metric,
            number(record.value),
            "" if record.spread is None else " to ".join(map(number, record.spread)),
            record.unit,
            record.basis,
        )
        for record in each.records
    ]
    columns = ("case", "system", "metric", "value", "spread", "unit", "basis")
    title = f"All {len(rows)} figures of {each.title}"
    return PageTable(title, columns, rows, numbers=("value", "spread"), folded=True)


def _pictures(each: Results) -> list[Picture]:
    """Draw one picture for each metric, with the figures that claims compare."""
    groups: dict[tuple[str, str, Basis], list[tuple[Claim, BenchmarkRecord, BenchmarkRecord]]] = {}
    for claim in each.claims:
        ours, rival = each.find(claim.ours), each.find(claim.rival)
        # What was chosen and the best may be the same: nothing to draw.
        if ours is not None and rival is not None and ours is not rival:
            group = ours.metric, ours.unit, claim.basis
            groups.setdefault(group, []).append((claim, ours, rival))
    return [_picture(each, *group, found) for group, found in groups.items()]


def _picture(
    each: Results,
    metric: str,
    unit: str,
    basis: Basis,
    found: Sequence[tuple[Claim, BenchmarkRecord, BenchmarkRecord]],
) -> Picture:
    from matplotlib.figure import Figure

    from accel_rl import plot

    cases = {
        (ours.place, rival.place): plot.Compared(
            _label(ours, rival), ours.value, rival.value, ours.spread, rival.spread
        )
        for _, ours, rival in found
    }
    lines = sum(case.label.count("\n") + 1 for case in cases.values())
    drawn = Figure(figsize=(8.6, 1.2 + 0.2 * lines + 0.16 * len(cases)), layout="constrained")
    what = f"{metric}, {unit}" if unit else metric
    ax = drawn.subplots()
    plot.draw_comparison(ax, list(cases.values()), xlabel=f"{what}, {basis}")
    ax.tick_params(axis="y", labelsize="small")
    told = "; ".join(
        f"{ours.case}: {number(ours.value)} {ours.system}, {number(rival.value)} {rival.system}"
        for _, ours, rival in found
    )
    title = f"{each.title}: {what}, ours and each rival, with spreads as thin lines"
    return Picture(title, f"{title}. {told}", html.svg(drawn), basis)


def _label(ours: BenchmarkRecord, rival: BenchmarkRecord) -> str:
    systems = f"{ours.system} | {rival.system}"
    return "\n".join([*textwrap.wrap(ours.case, _WIDTH), *textwrap.wrap(systems, _WIDTH)])
