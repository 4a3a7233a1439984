"""Pages of benchmarks: what they say is what the JSON says, and a browser shows it."""

import dataclasses
import pathlib
import re

import numpy as np
import pytest
import quick
from matplotlib.figure import Figure
from report.browser import needs_chromium, opened, outline

from accel_rl import plot
from accel_rl.report import benchmark, html, results
from accel_rl.report.page import Page, PageSection, PageTable, number

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "results"
FILES = sorted(RESULTS.glob("*.json"))


@pytest.mark.parametrize(
    "path", quick.only(FILES[::6], FILES, others="long"), ids=lambda path: path.stem
)
def test_a_page_says_what_the_record_says(path):
    found = results.read(path)
    text = html.render(benchmark.page_of([found], path.name))
    shown = outline(text)
    for claim in found.claims:
        assert " ".join(claim.claim.split()) in shown.text
    held = [claim.holds for claim in found.claims]
    for verdict, name in ((True, "held"), (False, "missed"), (None, "did not run")):
        assert f"Targets {name} {held.count(verdict)}" in shown.text
        marks = [
            a for a in shown.all("span") if a.get("class") == f"verdict {name.replace(' ', '-')}"
        ]
        assert len(marks) == held.count(verdict)
    assert found.machine["cpu"] in shown.text
    assert f"All {len(found.records)} figures" in shown.text
    modelled = sum(record.basis == "modelled" for record in found.records)
    modelled += sum(claim.basis == "modelled" for claim in found.claims)
    badges = [a for a in shown.all("span") if a.get("class") == "badge modelled"]
    metrics = {each: set() for each in ("measured", "modelled")}
    for record in found.records:
        metrics[record.basis].add(record.metric)
    measured = metrics["measured"] - metrics["modelled"]  # both of DPUs beside CPUs
    drawn = re.findall(r'<figcaption>([^<]*)<span class="badge modelled">', text)
    assert not [caption for caption in drawn if any(metric in caption for metric in measured)]
    assert len(badges) == modelled + len(drawn) + 1  # and what the foot of the page explains
    rows = len(found.records) + len(found.claims)
    assert len(shown.all("tr")) == rows + len(shown.all("table"))


def test_text_is_escaped():
    evil = '<script>alert(1)</script> & "quotes"'
    table = PageTable(evil, (evil, "b"), [(evil, 1.0)], basis="modelled")
    section = PageSection(evil, evil, [(evil, evil)], tables=[table])
    page = Page(evil, evil, evil, evil, [(evil, evil, None)], [section], [(evil, evil)])
    text = html.render(page)
    assert "<script>" not in text
    assert outline(text).text.count("<script>alert(1)</script>") >= 10


def test_numbers_keep_three_digits():
    told = {0: "0", 0.00123: "0.00123", 1234.5: "1,234", 2.5e7: "2.50e+07", -39.99: "-40"}
    assert {value: number(value) for value in told} == told


def test_the_same_page_has_the_same_bytes():
    found = [results.read(RESULTS / "apex_learning-2026-11-22.json")]
    assert html.render(benchmark.page_of(found, "x")) == html.render(benchmark.page_of(found, "x"))


@pytest.mark.parametrize(("cores", "told"), [(1, "x with 1 core,"), (2, "x with 2 cores,")])
def test_cores_are_counted(cores, told):
    found = results.read(RESULTS / "apex_learning-2026-11-22.json")
    machine = {"cpu": "x", "cores": cores}
    assert told in benchmark.conditions(dataclasses.replace(found, machine=machine))


def test_a_comparison_draws_both_sides_of_each_case():
    cases = [plot.Compared("one", 1.0, 20.0, (0.9, 1.1), None), plot.Compared("two", 3.0, 2.0)]
    ax = Figure().subplots()
    plot.draw_comparison(ax, cases, xlabel="s")
    ours, rival = ax.collections
    np.testing.assert_allclose(ours.get_offsets(), [[1, 1], [3, 0]])
    np.testing.assert_allclose(rival.get_offsets(), [[20, 1], [2, 0]])
    assert ax.get_xscale() == "log"
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["one", "two"]
    ax = Figure().subplots()
    plot.draw_comparison(ax, [plot.Compared("one", -1.0, 20.0)], xlabel="s")
    assert ax.get_xscale() == "linear"


@needs_chromium
@pytest.mark.parametrize(
    ("width", "suites"),
    [
        pytest.param(420, 2, marks=pytest.mark.long),  # starts a browser
        pytest.param(1100, 20, marks=pytest.mark.slow),
    ],
)
def test_a_browser_shows_the_page_and_asks_for_nothing(tmp_path, width, suites):
    found = results.newest(RESULTS)[-suites:]
    path = html.write(tmp_path / "report.html", benchmark.page_of(found, "results"))
    seen = opened(path, tmp_path, width)
    pictures = outline(path.read_text(encoding="utf-8")).all("img")
    assert len(seen["images"]) == len(pictures) >= len(found) - 1
    for complete, *size in seen["images"]:
        assert complete
        assert min(size) > 100
    assert [name for name in seen["requests"] if not name.startswith("data:")] == []
    assert seen["headings"] == ["Benchmark results", *(each.title for each in found)]
    assert seen["wide"] <= 0  # tables and pictures scroll within the page, not the page
    for each in found:
        for claim in each.claims:
            assert " ".join(claim.claim.split()) in " ".join(seen["text"].split())
