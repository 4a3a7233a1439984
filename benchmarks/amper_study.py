"""How near AMPER draws to exact prioritised replay: what it costs in the distribution.

    python benchmarks/amper_study.py [--quick] [--json PATH] [--plot DIR]

Memories are full, and their priorities follow a law. Each system draws 3,000 batches of 64 through
`Replay.sample`, and the drawn priorities are compared with P(i) = p_i / sum p by the KL divergence
of histograms, over 50 bins of equal width and over 50 parts of equally many items. Recorded beside:
how many of the items are drawn in as many draws as there are items, how often the 1 % of highest
priorities are, from how many candidates a call drew, and how well the given probabilities correct
for the drawing. This measures distributions, not time; nothing is learned.

Uniform replay and a sum tree draw the same number of batches. What the tree shows is what is left
of the divergence when only the number of draws limits it. `--plot` draws the distributions and the
divergences into a folder.
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import amper_study_plot
import numpy as np
from amper_study_draws import (
    AMPER,
    AMPER_K,
    DITHERED,
    EXACT,
    LAWS,
    PER,
    PLAIN,
    PREFIX,
    UNIFORM,
    Drawn,
    Setting,
    draw,
)
from amper_study_plot import at
from common import Claim, Report
from rich.console import Console
from rich.markup import escape
from rich.table import Table

SIZES = (5_000, 10_000, 20_000)
GROUPS = (4, 10, 20, 40)
RATIOS = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3)
BASE_SIZE, BASE_GROUPS, BASE_RATIO = 10_000, 20, 0.15
CALLS, QUICK_CALLS = 3_000, 1_000
KL = "KL of priorities, 50 bins"
BOUNDS = {EXACT: 0.003, DITHERED: 0.003, PREFIX: 0.025, AMPER_K: 0.01}
PACKAGES = ("jax", "jaxlib", "numpy")
Results = dict[tuple[str, Setting], Drawn]


def grid(quick: bool) -> Iterator[tuple[str, Setting]]:
    """Systems and settings, those that share compiled programs together."""
    for size in SIZES:
        for system in PLAIN:
            yield from ((system, Setting(law, size)) for law in LAWS)
        for system in AMPER:
            for groups in GROUPS if size == BASE_SIZE or not quick else (BASE_GROUPS,):
                whole = groups == BASE_GROUPS or (size == BASE_SIZE and not quick)
                ratios = RATIOS if whole else (BASE_RATIO,)
                for ratio in ratios:
                    for law in LAWS:
                        yield system, Setting(law, size, groups, ratio)


def study(report: Report, calls: int, quick: bool) -> Results:
    """Draw at every point of the grid, and record."""
    results: Results = {}
    for system, setting in grid(quick):
        found = results[system, setting] = draw(system, setting, calls)
        record(report, system, setting, found)
    return results


def record(report: Report, system: str, setting: Setting, found: Drawn) -> None:
    case = setting.case
    report.add(case, system, KL, "nats", [found.divergence])
    report.add(
        case, system, "KL of priorities, 50 parts of the items", "nats", [found.divergence_by_part]
    )
    report.add(case, system, "items drawn in N draws", "of N", found.coverage)
    report.add(
        case, system, "error of weights, by 50 parts of the items", "of 1", found.weight_errors
    )
    report.add(case, system, "draws of the highest 1 %", "of PER's", [found.highest])
    report.add(case, system, "draws given a probability of 0", "of the draws", [found.unknown])
    if system in AMPER:
        report.add(case, system, "candidates of a call", "of N", [found.candidates])


def base(size: int | None = None) -> Setting:
    """Return the setting that others are varied from."""
    return Setting("uniform", size or BASE_SIZE, BASE_GROUPS, BASE_RATIO)


def claims(report: Report) -> None:
    """Bounds on the divergence; null where the system, the tree or uniform replay did not run."""
    setting = base()
    plain = Setting(setting.law, setting.size)
    rivals = [report.find(plain.case, system, KL) for system in PLAIN]
    for system, bound in BOUNDS.items():
        found = report.find(setting.case, system, KL)
        value = None if found is None or None in rivals else found.value
        text = f"{system}, {setting.case}: KL against exact PER at most {bound:g}"
        holds = None if value is None else value <= bound
        ours = report.place(setting.case, system, KL)
        report.claims.append(Claim(text, value, bound, holds, sense="<=", ours=ours))


def divergences(results: Results) -> Table:
    """Divergences at the base setting, by law, with both ways to cut the items."""
    table = Table(title=f"KL against exact PER; m = {BASE_GROUPS}, CSP ratio {BASE_RATIO}")
    for name in ("priorities, items", *PLAIN, *AMPER):
        table.add_column(escape(name), justify="right")
    for size in SIZES:
        for law in LAWS:
            cells = []
            for system in (*PLAIN, *AMPER):
                found = results.get((system, at(base(size), system, law)))
                both = () if found is None else (found.divergence, found.divergence_by_part)
                cells.append(" / ".join(f"{value:.4f}" for value in both))
            table.add_row(f"{law}, {size:,}", *cells)
    return table


def others(results: Results) -> Table:
    """Record the other metrics at the base setting."""
    title = f"m = {BASE_GROUPS}, CSP ratio {BASE_RATIO}, {BASE_SIZE:,} items"
    table = Table("priorities, system", title=title)
    for name in (
        "items drawn in N draws",
        "candidates of a call",
        "median error of weights",
        "draws of the highest 1 %, of PER's",
    ):
        table.add_column(name, justify="right")
    for law in LAWS:
        for system in (*PLAIN, *AMPER):
            found = results.get((system, at(base(), system, law)))
            if found is not None:
                table.add_row(
                    f"{law}, {escape(system)}",
                    f"{np.median(found.coverage):.3f}",
                    f"{found.candidates:.3f}" if system in AMPER else "",
                    f"{np.median(found.weight_errors):.3f}",
                    f"{found.highest:.3f}",
                )
    return table


def verdicts(report: Report) -> Table:
    table = Table("claim", "value", "holds", title="Claims")
    for claim in report.claims:
        value = "did not run" if claim.value is None else f"{claim.value:.2g}"
        verdict = {True: "yes", False: "[bold]NO[/bold]", None: "null"}[claim.holds]
        table.add_row(escape(claim.claim), value, verdict)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Return the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer calls and points")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the report there")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="draw pictures (PNG) into it")
    options = parser.parse_args(arguments)
    seeds = "7 of priorities, JAX's key 11 of draws"
    report = Report(PACKAGES, "amper_study", quick=options.quick, seeds=seeds)
    console = Console(width=160)
    calls = QUICK_CALLS if options.quick else CALLS
    results = study(report, calls, options.quick)
    claims(report)
    report.load["after"] = list(os.getloadavg())
    console.print(divergences(results), others(results), verdicts(report))
    console.print(f"{calls:,} calls of each; {UNIFORM} and {PER} are there to compare with")
    if options.json is not None:
        report.write(options.json)
        console.print(f"wrote {options.json}", highlight=False, markup=False)
    if options.plot is not None:
        options.plot.mkdir(parents=True, exist_ok=True)
        for path in amper_study_plot.draw_all(results, base(), options.plot):
            console.print(f"wrote {path}", highlight=False, markup=False)


if __name__ == "__main__":
    main()
