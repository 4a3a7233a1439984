"""Report pages of tabular learning: a training on DPUs, SwiftRL's experiment, a log."""

from collections.abc import Sequence

import numpy as np

from accel_rl.plot.style import PART_LABELS
from accel_rl.report.page import Found, Page, PageSection, PageTable, Picture, flat, made, number
from accel_rl.report.results import Basis

_SHOWN_STATES = 64  # more make a long page, and a picture or a program reads them better


def table(
    config: Found, results: Found, values: np.ndarray, pictures: Sequence[Picture], when: str
) -> Page:
    """Build the page of a tabular training on emulated DPUs.

    It is built from `config.json`, `results.json` and values [S, A].
    """
    seconds = results["modelled_seconds"]
    worth, best = results["episode_return"], results["optimal_return"]
    figures: list[tuple[str, str, Basis | None]] = []
    if worth is not None:
        figures.append(("Return per episode", number(worth), "measured"))
    if best is not None:
        figures.append(("Best possible return", number(best), None))
    figures += [
        ("Time on UPMEM", f"{number(1e3 * sum(seconds.values()))} ms", "modelled"),
        ("Emulation here", f"{number(results['measured_seconds'])} s", "measured"),
    ]
    parts = [(PART_LABELS.get(name, name), 1e3 * value) for name, value in seconds.items()]
    title, columns = "Parts of a run on DPUs", ("part", "ms")
    shown = PageTable(title, columns, parts, basis="modelled", numbers=("ms",))
    scored = (
        "There is no environment to score in, and so no return."
        if worth is None
        else "The return is exact, of the greedy policy."
    )
    return Page(
        title=f"{results['rule']} on {results['environment']}",
        kind="tabular training on emulated DPUs",
        lead=(
            f"{results['passes']:,} passes on {results['dpus']:,} DPUs with {results['tasklets']} "
            f"tasklets, {results['numerics']}, order {results['order']}, merge "
            f"{results['merge']} with period {results['period']}. {scored}"
        ),
        when=when,
        figures=figures,
        sections=[
            _learned(values, pictures),
            PageSection("Time", f"Modelled from: {results['modelled_from']}.", tables=[shown]),
            PageSection("The data", facts=flat(config["dataset"])),
        ],
        settings=[
            *((name, config.get(name)) for name in ("data", "preset", "machine")),
            *flat(config["settings"]),
        ],
        **made(config),
    )


def _learned(values: np.ndarray, pictures: Sequence[Picture]) -> PageSection:
    """Build the section of greedy actions, as a table if there are few states."""
    states = len(values)
    text = "All values are in table.npz of the run's folder: values, one row for each state."
    if states > _SHOWN_STATES:
        return PageSection("What was learned", f"{states:,} states. {text}", pictures=pictures)
    greedy = values.argmax(axis=1)
    rows = [(state, int(greedy[state]), float(values[state].max())) for state in range(states)]
    columns = ("state", "greedy action", "value")
    shown = PageTable("Greedy action of each state, and its value", columns, rows, numbers=columns)
    text += " A state that the log never left has values of 0, and its action says nothing."
    return PageSection("What was learned", text, pictures=pictures, tables=[shown])


def demo(
    config: Found,
    records: Sequence[Found],
    details: Found,
    pictures: Sequence[Picture],
    when: str,
) -> Page:
    """Build the page of SwiftRL's experiment.

    It is built from `config.json`, `results.json` and `details.json` of `accel-rl demo`.
    """
    scale = config["scale"]
    sections = [PageSection("Pictures", pictures=pictures)]
    for found in details["environments"]:
        name = found["environment"]
        runs = _demo_runs(name, [each for each in records if each["environment"] == name])
        text = f"The best possible return is {number(found['optimal_return'])}."
        sections.append(PageSection(name, text, tables=[runs, *_sarsa(found["sarsa"])]))
    quick = " With few rows, DPUs and passes: a check, not a result." if config["quick"] else ""
    return Page(
        title="SwiftRL's experiment",
        kind="demo",
        lead=(
            f"Q-learning and SARSA on {len(details['environments'])} environments, "
            f"{scale['transitions']:,} transitions, {scale['passes']} passes on {scale['dpus']:,} "
            f"emulated DPUs.{quick} Returns are exact; times by part are modelled."
        ),
        when=when,
        figures=[
            ("Runs", str(len(records)), None),
            ("All of it here", f"{config['measured_seconds']:,.0f} s", "measured"),
        ],
        sections=sections,
        settings=[
            ("seed", config["seed"]),
            ("quick", config["quick"]),
            *flat(scale),
            *flat({"settings": config["settings"]}),
        ],
        **made(config),
    )


def _demo_runs(name: str, records: Sequence[Found]) -> PageTable:
    parts = [f"{part}, ms" for part in PART_LABELS.values()]
    rows = [
        (
            each["rule"],
            each["order"],
            each["numerics"],
            each["merge"],
            f"{each['dpus']:,}",
            f"{each['passes']} ({each['period']})",
            f"{each['episode_return']:.3f}",
            *(1e3 * each["modelled_seconds"][part] for part in PART_LABELS),
        )
        for each in records
    ]
    words = ("rule", "order", "numerics", "merge", "DPUs", "passes (period)")
    return PageTable(
        f"Runs on {name}",
        (*words, "return", *parts),
        rows,
        bases={"return": "measured", **dict.fromkeys(parts, "modelled")},
        numbers=("DPUs", "passes (period)", "return", *parts),
    )


def _sarsa(errors: Sequence[Found]) -> list[PageTable]:
    if not errors:
        return []
    columns = ("policy", "DPUs", "max error", "mean error", "max |value|")
    rows = [
        (
            each["policy"],
            f"{each['dpus']:,}",
            each["max_abs_error"],
            each["mean_abs_error"],
            each["largest_abs_value"],
        )
        for each in errors
    ]
    title = "SARSA's values against the exact values of the policy that it estimates"
    return [PageTable(title, columns, rows, basis="measured", numbers=columns[1:])]


def dataset(name: str, summary: Found, info: Found, when: str) -> Page:
    """Build the page of a log of experience: its counts and origin."""
    return Page(
        title=f"Experience of {summary['environment']}",
        kind="dataset",
        lead=f"{summary['transitions']:,} transitions of a {summary['policy']} policy, in {name}.",
        when=when,
        figures=[
            ("Transitions", f"{summary['transitions']:,}", None),
            ("Episodes", f"{summary['episodes']:,}", None),
            ("Reward per episode", number(summary["reward_per_episode"]), "measured"),
        ],
        sections=[PageSection("Counts", facts=list(summary.items()))],
        settings=flat(info),
    )
