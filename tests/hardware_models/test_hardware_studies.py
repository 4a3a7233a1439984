"""Designs of AM hardware: what is refused, sweeps, comparisons, and what their page prints."""

import dataclasses
import math
import pathlib

import pytest
from designs import clocked, latency, small

from accel_rl.hardware_models import associative_memory as hardware
from accel_rl.hardware_models.associative_memory import Design, modelled_sample, modelled_update

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "am-hardware.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("capacity", 0, "capacity must be at least 1, got 0"),
        ("key_bits", 65, "key_bits must be from 1 to 64, got 65"),
        ("rows_per_array", 0, "rows_per_array must be at least 1"),
        ("variant", "tree", "variant must be one of"),
        ("overlap", "none", "overlap must be one of"),
        ("csp_ratio", 1.5, "csp_ratio must be above 0 and at most 1, got 1.5"),
        ("csp_ratio", 0.0, "csp_ratio must be above 0"),
        ("csp_size", 61, "csp_size must be from 1 to 60, got 61"),
        ("csp_size", 0, "csp_size must be from 1 to 60, got 0"),
        ("batch_size", -1, "batch_size must be at least 1"),
        ("csp_ports", 5, "csp_ports must be from 1 to 4, got 5"),
        ("write_ports", 5, "write_ports must be from 1 to 4, got 5"),
        ("range_queries", 0.5, "range_queries must be finite and at least 1"),
        ("best_match_searches", 0, "best_match_searches must be at least 1"),
    ],
)
def test_designs_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        small(**{field: value})


def test_candidates_from_the_ratio():
    assert Design(10_000).candidates == 1_500
    assert Design(3, csp_ratio=0.01).candidates == 1
    assert Design(10_000, csp_size=7).candidates == 7


def test_sweep_marks_what_it_assumes():
    points = hardware.sweep(
        Design(5_000),
        hardware.load_components(tcam="cmos_tcam_65nm"),
        fields={"groups": (10, 20), "overlap": hardware.OVERLAPS},
        assumed_ranges={"search_delay": (0.5, 5.0)},
    )
    assert len(points) == 8
    first, second = points[:2]
    assert first.fields == {"groups": 10, "overlap": "serial"}
    assert (first.assumed_range, second.assumed_range) == (
        {"search_delay": 0.5},
        {"search_delay": 5.0},
    )
    assert first.modelled.modelled_latency_ns < second.modelled.modelled_latency_ns
    only = hardware.sweep(Design(5_000), hardware.load_components())
    assert [point.modelled for point in only] == [
        modelled_sample(Design(5_000), hardware.load_components())
    ]
    with pytest.raises(TypeError, match="speed"):
        hardware.sweep(Design(5_000), hardware.load_components(), fields={"speed": (1,)})


def test_comparison_names_both_sides():
    run = modelled_sample(Design(10_000), hardware.load_components())
    found = hardware.compare_with_measured(run, 25e-6, "2 EPYC cores, cpprb")
    assert found.label == (
        "modelled AMPER on fefet_2fefet_45nm versus PER measured on 2 EPYC cores, cpprb"
    )
    assert found.measured_per_latency_ns == pytest.approx(25_000)
    assert found.measured_over_modelled == pytest.approx(25_000 / run.modelled_latency_ns)
    for seconds in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="measured_per_seconds must be finite and above 0"):
            hardware.compare_with_measured(run, seconds, "here")
    components = hardware.load_components(tcam="camasim_tcam_64")
    update = modelled_update(Design(100), components, energy=False)
    with pytest.raises(ValueError, match="operation must be one of sample, got 'update'"):
        hardware.compare_with_measured(update, 1e-6, "here")


def test_the_page_prints_what_the_model_says():
    assert hardware.figures_table() in PAGE
    components = hardware.load_components()
    for capacity in (5_000, 10_000, 20_000, 1_000_000):
        design = Design(capacity)
        in_parallel = dataclasses.replace(design, csp_ports=16)
        serial = dataclasses.replace(design, overlap="serial")
        energy = modelled_sample(design, components).modelled_energy_pj
        times = [latency(each, components) for each in (serial, design, in_parallel)]
        line = " | ".join(f"{time:,.0f}" for time in times)
        assert f"| {capacity:,} | {design.arrays:,} | {line} | {energy / 1e3:,.1f} |" in PAGE
    for variant in hardware.VARIANTS:
        design = Design(10_000, variant=variant)
        run = modelled_sample(design, components)
        assert (
            f"| `{variant}` | {design.searches:,} | {run.modelled_latency_ns:,.0f} "
            f"| {run.modelled_energy_pj / 1e3:,.1f} |"
        ) in PAGE


def test_the_page_prints_the_clocked_latency():
    components = clocked(4.0)
    for capacity in (5_000, 10_000, 20_000):
        found = modelled_sample(Design(capacity), components, energy=False)
        cycles = found.modelled_latency_ns / 4
        assert f"| {capacity:,} | {cycles:,.0f} | {found.modelled_latency_ns:,.0f} |" in PAGE


def test_the_page_says_that_nothing_was_run():
    words = " ".join(PAGE.split())
    assert "Nothing here was run on AM hardware" in words
    assert "the abstract claims 55x to 270x lower latency than PER on a GPU" in words
