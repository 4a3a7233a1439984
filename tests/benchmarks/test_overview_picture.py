"""The overview's panels on composing and on transports show what the records hold."""

import json
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import overview_picture


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(overview_picture, "RESULTS", tmp_path)

    def write(name, *records):
        keys = ("case", "system", "metric", "value", "spread")
        rows = [dict(zip(keys, record, strict=True)) for record in records]
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"records": rows}), encoding="utf-8")

    return write


def test_mappings_that_run_as_predicted_are_counted(results):
    near, far, spread = (1000.0, 1150.0), (1000.0, 1300.0), [1200.0, 1400.0]
    cases = (("a", "x", near, None), ("a", "y", far, None), ("b", "x", far, spread))
    results(
        "compose-2026-01-02",
        *(
            record
            for case, system, (predicted, measured), rounds in cases
            for record in (
                (case, system, "iteration, predicted", predicted, None),
                (case, system, "iteration", measured, rounds),
            )
        ),
        ("b", "never run", "iteration, predicted", 500.0, None),
    )
    results("compose-overlap-2026-01-03")  # another benchmark's
    ax = Figure().subplots()
    overview_picture._pearl(ax)
    assert ax.get_title(loc="center") == "PEARL: 2 of 3 mappings run as predicted"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert ax.lines[0].get_xdata().tolist() == [1.0, 1.0]
    assert ax.lines[0].get_ydata().tolist() == pytest.approx([1.15, 1.3])


def test_transports_stand_by_their_time(results):
    results("transports-2026-01-02", ("sample 64", "TCP, busy", "p50", 1.0, [1.0, 1.0]))
    results(
        "transports-2026-01-03",
        ("sample 64", "TCP, blocking", "p50", 33.8, [31.4, 38.9]),
        ("sample 64", "shared memory, busy", "p50", 3.6, [3.4, 5.0]),
        ("ping 64 B", "TCP, blocking", "p50", 23.9, [23.1, 25.7]),
    )
    ax = Figure().subplots()
    overview_picture._in_network(ax)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["shared memory, polls", "TCP, sleeps"]
    assert ax.get_title(loc="center") == "In-network replay: 64 items in 3.6 to 34 µs"


def test_absent_records_are_told(results):
    with pytest.raises(FileNotFoundError, match=r"no transports-DATE.json in .*transports.py"):
        overview_picture._in_network(Figure().subplots())
