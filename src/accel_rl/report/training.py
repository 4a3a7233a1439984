"""Report pages of agent trainings: single, swept, over a replay server, composed over devices."""

from collections.abc import Sequence
from typing import Any

from accel_rl.report.page import (
    Found,
    Page,
    PageSection,
    PageTable,
    Picture,
    Rows,
    flat,
    made,
    number,
)
from accel_rl.report.results import Basis

_SCORES = {
    "mean": "mean",
    "interquartile_mean": "inter-quartile mean",
    "lowest": "lowest seed",
    "highest": "highest seed",
}


def agent(
    config: Found,
    by: Found,
    results: Found | None,
    rows: Sequence[Found],
    pictures: Sequence[Picture],
    when: str,
) -> Page:
    """Build the page of an agent's training.

    It is built from `config.json`, `results.json` if the training has ended, and rows of metrics.
    """
    training, sampler = config["training"], config["replay"]["sampler"]
    figures: list[tuple[str, str, Basis | None]] = []
    sections = [PageSection("Learning curves", pictures=pictures)]
    done = rows[-1]["steps"] if rows else 0
    state = f"It has not ended: {done:,} of {training['steps']:,} steps are recorded."
    if results is not None:
        state = f"It ended: {results['reason']}."
        if len(results["trainings"]) == 1:
            only = results["trainings"][0]
            figures = [
                ("Mean greedy return", _score(only["mean"]), "measured"),
                ("Inter-quartile mean", _score(only["interquartile_mean"]), "measured"),
            ]
        figures.append(("Training", f"{results['training_seconds']:,.0f} s", "measured"))
        sections.append(_scores(results["trainings"], results["episodes"]))
    if rows:
        last = [(key, value) for key, value in rows[-1].items() if key != "per_seed"]
        sections.append(PageSection("The last row of metrics", "Means over the seeds.", facts=last))
    return Page(
        title=f"{config['agent']['name']} on {config['environment']['name']}",
        kind="training of an agent",
        lead=(
            f"{training['steps']:,} environment steps, {training['seeds']} seeds, {sampler} "
            f"replay. {state}"
        ),
        when=when,
        figures=figures,
        sections=sections,
        settings=_settings(config, by),
        **made(by),
    )


def sweep(
    config: Found, by: Found, results: Found | None, pictures: Sequence[Picture], when: str
) -> Page:
    """Build the page of a sweep.

    It is built from the first group's configuration, and `results.json` if the sweep has ended.
    """
    training = config["training"]
    sections = [PageSection("Learning curves", pictures=pictures)]
    figures: list[tuple[str, str, Basis | None]] = []
    state = "It has not ended."
    if results is not None:
        state = f"There were {len(results['combinations'])} combinations of settings."
        best = next((each for each in results["combinations"] if each["best"]), None)
        if best is not None:
            told = ", ".join(f"{key} {value}" for key, value in best["settings"].items())
            figures = [
                ("Best settings", told, None),
                ("Its inter-quartile mean", _score(best["interquartile_mean"]), "measured"),
            ]
        figures.append(("Training", f"{results['training_seconds']:,.0f} s", "measured"))
        sections.insert(0, _scores(results["combinations"], results["episodes"]))
    return Page(
        title=f"Sweep of {config['agent']['name']} on {config['environment']['name']}",
        kind="sweep",
        lead=f"{_effort(training if results is None else results)}{state}",
        when=when,
        figures=figures,
        sections=sections,
        settings=_settings(config, by),
        **made(by),
    )


def _effort(of: Found) -> str:
    """Describe the steps and seeds of a sweep, if they are the same in all its trainings."""
    steps, seeds = of["steps"], of["seeds"]
    if steps is None or seeds is None:
        return "Trainings of several lengths or numbers of seeds. "
    return f"{steps:,} environment steps, {seeds} seeds of each combination. "


def _settings(config: Found, by: Found) -> Rows:
    return [
        ("command", by.get("command")),
        *flat(config),
    ]


def _scores(trainings: Sequence[Found], episodes: int | None) -> PageSection:
    names = list(trainings[0]["settings"])
    rows = [
        (
            *([each["settings"][key] for key in names] or ["as configured"]),
            *(_score(each[score]) for score in _SCORES),
        )
        for each in trainings
    ]
    columns, numbers = (*(names or ["settings"]), *_SCORES.values()), list(_SCORES.values())
    of = "" if episodes is None else f"{episodes} "
    title = f"Greedy returns, {of}episodes of each seed"
    scores = PageTable(title, columns, rows, basis="measured", numbers=numbers)
    return PageSection("What it is worth", tables=[scores])


def _score(value: float | None) -> str:
    return "diverged" if value is None else f"{value:,.4g}"


def apex(config: Found, results: Found, pictures: Sequence[Picture], when: str) -> Page:
    """Build the page of a finished Ape-X training from `config.json` and `results.json`."""
    returns = [float(value) for value in results["evaluation_returns"]]
    rate = results["steps"] / results["seconds"] if results["seconds"] else None
    rows = [
        ("environment steps that learning saw", f"{results['steps']:,}"),
        ("steps that actors took", f"{results['acted_steps']:,}"),
        ("updates", f"{results['updates']:,}"),
        ("actors started again", results["actor_restarts"]),
        ("environment steps per second", rate),
        ("lowest and highest return", f"{number(min(returns))} to {number(max(returns))}"),
    ]
    title = f"Figures of the run, and of {len(returns)} greedy episodes after it"
    shown = PageTable(title, ("figure", "value"), rows, basis="measured", numbers=("value",))
    return Page(
        title=f"Ape-X on {config['environment']['name']}",
        kind="training over a replay server",
        lead=(
            f"{results['steps']:,} environment steps of actors in processes of their own, learned "
            "from a prioritised replay server."
        ),
        when=when,
        figures=[
            ("Mean greedy return", number(results["evaluation"]), "measured"),
            ("Updates", f"{results['updates']:,}", "measured"),
            ("Time", f"{results['seconds']:,.1f} s", "measured"),
        ],
        sections=[
            PageSection("While training", pictures=pictures),
            PageSection("The run", tables=[shown]),
        ],
        settings=flat(config),
        **made(results),
    )


def apex_so_far(
    config: Found, by: Found, rows: Sequence[Found], pictures: Sequence[Picture], when: str
) -> Page:
    """Build the page of an Ape-X training that still runs, or was killed.

    It is built from `config.json`, if there is one, and rows of metrics.
    """
    steps = config.get("training", {}).get("steps")
    done = f"{rows[-1]['steps'] if rows else 0:,}" + (f" of {steps:,}" if steps else "")
    sections = [PageSection("While training", pictures=pictures)]
    if rows:
        sections.append(PageSection("The last row of metrics", facts=list(rows[-1].items())))
    return Page(
        title=f"Ape-X on {config['environment']['name']}" if config else "Ape-X",
        kind="training over a replay server",
        lead=f"It has not ended: {done} steps are recorded.",
        when=when,
        figures=[],
        sections=sections,
        settings=flat(config),
        **made(by),
    )


def composed(
    plan: Found, run: Found | None, config: Rows, pictures: Sequence[Picture], when: str
) -> Page:
    """Build the page of a composed training.

    It is built from `plan.json`, `measured.json` if the plan was run, and `config.json`.
    """
    best, count = plan["estimates"][0], len(plan["estimates"])
    figures: list[tuple[str, str, Basis | None]] = [
        ("Planned mapping", best["name"], None),
        ("Its iteration", _micro(best["predicted_iteration_seconds"]), "modelled"),
    ]
    sections = [PageSection("Pictures", pictures=pictures)] if pictures else []
    if run is not None:
        if run["name"] != best["name"]:
            figures.append(("Mapping that ran", run["name"], None))
        if not run["simulated"]:
            measured = _micro(run["measured_iteration_seconds"])
            figures.append(("Iteration of the run", measured, "measured"))
        sections.append(PageSection("The run", facts=_run_facts(run)))
    text = (
        "Iterations are simulated from the costs of steps, which are measured or modelled as the "
        "last column says."
    )
    sections.append(PageSection("Predictions", text, tables=_predictions(plan)))
    return Page(
        title="A composed training",
        kind="plan" if run is None else "plan and run",
        lead=(
            f"{count} mappings of a training to devices, planned for {plan['objective']}"
            + (". It was not run." if run is None else ", and a run.")
        ),
        when=when,
        figures=figures,
        sections=sections,
        settings=config,
        **made(plan),
    )


def _predictions(plan: Found) -> list[PageTable]:
    numbers = ("iteration", "samples/s", "samples/J", "stretch")
    rows = [
        (
            each["name"],
            _micro(each["predicted_iteration_seconds"]),
            f"{each['predicted_samples_per_second']:,.0f}",
            each["modelled_samples_per_joule"],
            each["stretch"],
            each["costs"],
        )
        for each in plan["estimates"]
    ]
    title = f"{len(rows)} mappings, best {plan['objective']} first"
    bases: Any = dict.fromkeys(numbers, "modelled")
    columns = ("mapping", *numbers, "costs of steps")
    tables = [PageTable(title, columns, rows, bases=bases, numbers=numbers)]
    refused = [
        (role, device, why)
        for role, whys in plan["refused"].items()
        for device, why in whys.items()
    ]
    return tables + (
        [PageTable("Not offered", ("role", "device", "why"), refused)] if refused else []
    )


def _run_facts(run: Found) -> Rows:
    predicted, measured = (
        _micro(run[f"{what}_iteration_seconds"]) for what in ("predicted", "measured")
    )
    facts: list[tuple[str, Any]] = [
        ("mapping", run["name"]),
        ("environment steps", f"{run['steps']:,} ({run['ended']})"),
        ("iteration, predicted (modelled)", predicted),
        ("iteration, measured", measured),
        ("return of episodes at the end, measured", run["episode_return"]),
    ]
    if run["simulated"]:
        facts.insert(1, ("simulated", "the host stood in for devices that cannot run"))
    for each in run["measured_joules"]:
        facts.append((each["boundary"], f"{number(each['measured_joules'])} J, measured"))
    for each in run["joules_unreadable"]:
        facts.append((each["boundary"], f"no joules: {each['reason']}"))
    return facts


def _micro(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:,.0f} us"
